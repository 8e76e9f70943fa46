// SPDX-License-Identifier: BSL-1.0
//
// Mini-batches for the laws, made from a seed, and what two trainers have in common, bit by bit.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include <pipe/pipe.hpp>

namespace laws {

/// Uniform in (-1, 1), a function of (seed, stream, index).
inline double uniform(std::uint64_t seed, std::uint64_t stream, std::uint64_t index) {
  return 2 * double(pp::math::unit_uniform(pp::math::random_block(seed, stream, index).word[0])) -
         1;
}

/// A mini-batch that owns its numbers. What only a loss reads is positive, as weights must be.
/// About every fifth label of a classifier is -1: a position that does not count. Of a model with a
/// member `pads` every second sample ends in some ids of -1, every sixth has nothing else.
template <class Trainer>
struct sample_batch {
  std::vector<typename Trainer::input_type> inputs;
  std::vector<typename Trainer::label_type> labels;
  std::vector<int> ids[pp::detail::max_inputs];  // of further inputs
  std::vector<typename Trainer::element> numbers[pp::detail::max_inputs];

  explicit sample_batch(std::uint64_t seed) {
    using model = typename Trainer::model;
    for (long i = 0; i < Trainer::samples * Trainer::inputs_per_sample; ++i) {
      double const u = uniform(seed, 1, std::uint64_t(i));
      if constexpr (model::graph.inputs[0].is_ids)
        inputs.push_back(int((u + 1) / 2 * model::graph.inputs[0].vocabulary));
      else
        inputs.push_back(typename Trainer::input_type(u));
    }
    for (int k = 1; k < model::graph.size.inputs; ++k)
      for (long i = 0; i < Trainer::samples * model::graph.inputs[k].form.elements(); ++i) {
        double const u = uniform(seed, 10 + std::uint64_t(k), std::uint64_t(i));
        if (model::graph.inputs[k].is_ids)
          ids[k].push_back(int((u + 1) / 2 * model::graph.inputs[k].vocabulary));
        else
          numbers[k].push_back(
              typename Trainer::element(model::graph.inputs[k].of_loss ? (u + 1) / 2 : u));
      }
    if constexpr (requires { model::pads; }) {
      if constexpr (model::graph.inputs[0].is_ids) pad(inputs, Trainer::inputs_per_sample);
      for (int k = 1; k < model::graph.size.inputs; ++k)
        pad(ids[k], model::graph.inputs[k].form.elements());
    }
    for (long i = 0; i < Trainer::samples * Trainer::labels_per_sample; ++i) {
      double const u = uniform(seed, 2, std::uint64_t(i));
      if constexpr (model::labels_are_ids)
        labels.push_back(i % 5 == 3 ? -1 : int((u + 1) / 2 * model::graph.output.columns()));
      else if constexpr (requires { model::loss::least_target; })
        labels.push_back(typename Trainer::label_type((u + 1) / 2));  // all such ranges are [0, 1]
      else
        labels.push_back(typename Trainer::label_type(u));
    }
  }
  static void pad(std::vector<int>& tokens, long per_sample) {
    for (long s = 1; (s + 1) * per_sample <= long(tokens.size()); s += 2)
      for (long t = s % 6 == 3 ? 0 : per_sample - 1 - s % 3 % per_sample; t < per_sample; ++t)
        tokens[std::size_t(s * per_sample + t)] = -1;
  }
  /// The first `samples` samples, as a batch of a trainer of the same model.
  template <class Other = Trainer>
  typename Other::batch view(long samples = Trainer::samples) const {
    typename Other::batch b{
        std::span(inputs).first(std::size_t(samples * Trainer::inputs_per_sample)),
        std::span(labels).first(std::size_t(samples * Trainer::labels_per_sample))};
    for (int k = 1; k < Trainer::model::graph.size.inputs; ++k) {
      std::size_t const n = std::size_t(samples * Trainer::model::graph.inputs[k].form.elements());
      if (Trainer::model::graph.inputs[k].is_ids)
        b.named_ids[k] = std::span(ids[k]).first(n);
      else
        b.named_numbers[k] = std::span(numbers[k]).first(n);
    }
    return b;
  }
};

/// Moves every parameter by up to `amount`, so that no bias, scale or shift keeps a special value.
/// Tables of positions stay.
template <class Trainer>
void disturb(Trainer& trainer, std::uint64_t seed, double amount) {
  using element = typename Trainer::element;
  std::uint64_t stream = 100;
  for (auto& p : trainer.parameters()) {
    if (pp::detail::is_table(Trainer::model::graph.parameters[p.index].initial.kind)) continue;
    for (std::size_t e = 0; e < p.values.size(); ++e)
      p.values[e] = element(float(double(p.values[e]) + amount * uniform(seed, stream, e)));
    ++stream;
  }
  trainer.parameters_changed();
}

/// Gives `to` the parameters of `from`, whatever the number types.
template <class From, class To>
void copy_parameters(From& from, To& to) {
  auto source = from.parameters();
  auto target = to.parameters();
  for (std::size_t i = 0; i < source.size(); ++i)
    for (std::size_t e = 0; e < source[i].values.size(); ++e)
      target[i].values[e] = typename To::element(source[i].values[e]);
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
template <class Trainer>
struct snapshot {
  std::vector<typename Trainer::element> values, gradients;
  explicit snapshot(Trainer&& trainer) : snapshot(trainer) {}
  explicit snapshot(Trainer& trainer) {
    for (auto const& p : trainer.parameters()) {
      values.insert(values.end(), p.values.begin(), p.values.end());
      gradients.insert(gradients.end(), p.gradients.begin(), p.gradients.end());
    }
  }
};

}  // namespace laws
