// SPDX-License-Identifier: BSL-1.0
//
// Mini-batches for the laws, made from a seed, and what two trainers have in common, bit by bit.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

#include <pipe/pipe.hpp>

namespace laws {

/// Uniform in (-1, 1), a function of (seed, stream, index).
inline double uniform(std::uint64_t seed, std::uint64_t stream, std::uint64_t index) {
  return 2 * double(pp::math::unit_uniform(pp::math::random_block(seed, stream, index).word[0])) -
         1;
}

/// The contents of a mini-batch of a model.
struct batch_contents {
  std::span<pp::detail::input_record const> inputs;
  long samples, labels_per_sample;
  int classes = 0;                // of labels that are ids; 0: labels are numbers
  bool has_unit_targets = false;  // labels are in [0, 1]
  bool pads = false;              // see sample_batch
  long numbers_of(std::size_t input) const { return samples * inputs[input].form.elements(); }
};

inline void pad(std::vector<int>& tokens, long per_sample) {
  for (long s = 1; (s + 1) * per_sample <= long(tokens.size()); s += 2)
    for (long t = s % 6 == 3 ? 0 : per_sample - 1 - s % 3 % per_sample; t < per_sample; ++t)
      tokens[std::size_t(s * per_sample + t)] = -1;
}

/// The numbers of a mini-batch, drawn from a seed.
template <class Input, class Label, class Element>
struct drawn_batch {
  std::vector<Input> inputs;
  std::vector<Label> labels;
  std::vector<int> ids[pp::detail::max_inputs];  // of further inputs
  std::vector<Element> numbers[pp::detail::max_inputs];

  drawn_batch(std::uint64_t seed, batch_contents const& of) {
    for (long i = 0; i < of.numbers_of(0); ++i) {
      double const u = uniform(seed, 1, std::uint64_t(i));
      inputs.push_back(of.inputs[0].is_ids ? Input(int((u + 1) / 2 * of.inputs[0].vocabulary))
                                           : Input(u));
    }
    for (std::size_t k = 1; k < of.inputs.size(); ++k)
      for (long i = 0; i < of.numbers_of(k); ++i) {
        double const u = uniform(seed, 10 + k, std::uint64_t(i));
        if (of.inputs[k].is_ids)
          ids[k].push_back(int((u + 1) / 2 * of.inputs[k].vocabulary));
        else
          numbers[k].push_back(Element(of.inputs[k].of_loss ? (u + 1) / 2 : u));
      }
    if (of.pads) {
      if constexpr (std::is_same_v<Input, int>) pad(inputs, of.inputs[0].form.elements());
      for (std::size_t k = 1; k < of.inputs.size(); ++k) pad(ids[k], of.inputs[k].form.elements());
    }
    for (long i = 0; i < of.samples * of.labels_per_sample; ++i) {
      double const u = uniform(seed, 2, std::uint64_t(i));
      if (of.classes > 0)
        labels.push_back(Label(i % 5 == 3 ? -1 : int((u + 1) / 2 * of.classes)));
      else
        labels.push_back(Label(of.has_unit_targets ? (u + 1) / 2 : u));
    }
  }
  /// Gives a batch the first `samples` samples.
  template <class Batch>
  void show(Batch& b, batch_contents const& of, long samples) const {
    auto const first = [&](auto const& all, long per_sample) {
      return std::span(all).first(std::size_t(samples * per_sample));
    };
    b.inputs = first(inputs, of.inputs[0].form.elements());
    b.labels = first(labels, of.labels_per_sample);
    for (std::size_t k = 1; k < of.inputs.size(); ++k)
      if (of.inputs[k].is_ids)
        b.named_ids[k] = first(ids[k], of.inputs[k].form.elements());
      else
        b.named_numbers[k] = first(numbers[k], of.inputs[k].form.elements());
  }
};

/// A mini-batch that owns its numbers. What only a loss reads is positive, as weights must be.
/// About every fifth label of a classifier is -1: a position that does not count. Of a model with a
/// member `pads` every second sample ends in some ids of -1, every sixth has nothing else.
template <class Trainer>
struct sample_batch : drawn_batch<typename Trainer::input_type, typename Trainer::label_type,
                                  typename Trainer::element> {
  using model = typename Trainer::model;
  static constexpr auto const& records = pp::detail::model_tables<model>::inputs;
  static constexpr batch_contents contents = [] {
    batch_contents all{
        {records.items, std::size_t(records.size())}, Trainer::samples, Trainer::labels_per_sample};
    if (model::labels_are_ids) all.classes = pp::detail::model_tables<model>::output.columns();
    // All such ranges are [0, 1].
    if constexpr (requires { model::loss::least_target; }) all.has_unit_targets = true;
    if constexpr (requires { model::pads; }) all.pads = true;
    return all;
  }();

  explicit sample_batch(std::uint64_t seed)
      : drawn_batch<typename Trainer::input_type, typename Trainer::label_type,
                    typename Trainer::element>(seed, contents) {}
  /// The first `samples` samples, as a batch of a trainer of the same model.
  template <class Other = Trainer>
  typename Other::batch view(long samples = Trainer::samples) const {
    typename Other::batch b{};
    this->show(b, contents, samples);
    return b;
  }
};

template <class T>
void disturb_values(std::vector<pp::parameter_view<T>> const& parameters,
                    std::span<pp::detail::parameter const> of, std::uint64_t seed, double amount) {
  std::uint64_t stream = 100;
  for (auto const& p : parameters) {
    if (pp::detail::is_table(of[std::size_t(p.index)].initial.kind)) continue;
    for (std::size_t e = 0; e < p.values.size(); ++e)
      p.values[e] = T(float(double(p.values[e]) + amount * uniform(seed, stream, e)));
    ++stream;
  }
}
/// Moves every parameter by up to `amount`, so that no bias, scale or shift keeps a special value.
/// Tables of positions stay.
template <class Trainer>
void disturb(Trainer& trainer, std::uint64_t seed, double amount) {
  constexpr auto const& of = pp::detail::model_tables<typename Trainer::model>::parameters;
  disturb_values<typename Trainer::element>(trainer.parameters(),
                                            {of.items, std::size_t(of.size())}, seed, amount);
  trainer.parameters_changed();
}

template <class From, class To>
void copy_values(std::vector<pp::parameter_view<From>> const& from,
                 std::vector<pp::parameter_view<To>> const& to) {
  for (std::size_t i = 0; i < from.size(); ++i)
    for (std::size_t e = 0; e < from[i].values.size(); ++e) to[i].values[e] = To(from[i].values[e]);
}
/// Gives `to` the parameters of `from`, whatever the number types.
template <class From, class To>
void copy_parameters(From& from, To& to) {
  copy_values(from.parameters(), to.parameters());
  to.parameters_changed();
}

template <class T>
bool same_bits(T const& a, T const& b) {
  return std::memcmp(&a, &b, sizeof(T)) == 0;
}
template <class A, class B>
bool same_numbers(A const& a, B const& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(a[0])) == 0;
}
/// Whether all losses of two runs are the same.
inline bool same_losses(pp::step_result const& a, pp::step_result const& b) {
  return same_bits(a.loss, b.loss) &&
         same_numbers(std::span<double const>(a.losses), std::span<double const>(b.losses));
}

/// The parameters and gradients of a trainer, copied one after the other.
template <class T>
struct copied_parameters {
  std::vector<T> values, gradients;
  explicit copied_parameters(std::vector<pp::parameter_view<T>> const& parameters) {
    for (auto const& p : parameters) {
      values.insert(values.end(), p.values.begin(), p.values.end());
      gradients.insert(gradients.end(), p.gradients.begin(), p.gradients.end());
    }
  }
};
template <class Trainer>
struct snapshot : copied_parameters<typename Trainer::element> {
  explicit snapshot(Trainer&& trainer) : snapshot(trainer) {}
  explicit snapshot(Trainer& trainer)
      : copied_parameters<typename Trainer::element>(trainer.parameters()) {}
};

}  // namespace laws
