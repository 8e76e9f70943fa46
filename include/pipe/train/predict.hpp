// SPDX-License-Identifier: BSL-1.0
//
// A model's outputs for a data set of any size.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include <pipe/base/text.hpp>
#include <pipe/data/batch_check.hpp>
#include <pipe/data/data_set.hpp>
#include <pipe/data/length_order.hpp>
#include <pipe/graph/diagnostics.hpp>
#include <pipe/nn/model.hpp>
#include <pipe/train/parts/outputs.hpp>
#include <pipe/train/parts/sample_lengths.hpp>
#include <pipe/train/parts/settings_elsewhere.hpp>

namespace pp {

namespace instead {
// Words of messages: see settings_elsewhere.hpp.
struct network_and_its_forward;
struct Pipeline_of_the_model_as_an_object;
struct a_trainer_before_the_inputs;
}  // namespace instead

namespace detail {

/// Whether T has what predict() reads.
template <class T>
concept has_mini_batches = requires {
  typename T::batch;
  typename T::output_values;
  T::samples;
};
/// Whether a call of predict() gives a trainer its inputs, first of all other arguments.
template <class Trainer, class... Arguments>
inline constexpr bool gives_inputs = false;
template <class Trainer, class Inputs, class... More>
inline constexpr bool gives_inputs<Trainer, Inputs, More...> =
    std::convertible_to<Inputs, typename Trainer::batch const&> ||
    std::convertible_to<Inputs, typename Trainer::template input_values<0>>;

/// The diagnosis of a T that is no trainer, with what to write: for a network or weights, for a
/// model, and for anything else. T is deduced: see word.
template <class T>
constexpr auto diagnose_no_trainer(word<T> given) {
  constexpr auto use = []<class What>(word<What>) { return word<wrong::UseInstead<What>>{}; };
  constexpr auto what = wrong::predict_needs_a_trainer;
  if constexpr (requires { typename T::model; })
    return say<what>(given, use(word<instead::network_and_its_forward>{}));
  else if constexpr (std::derived_from<T, any_model>)
    return say<what>(given, use(word<instead::Pipeline_of_the_model_as_an_object>{}));
  else
    return say<what>(given, use(word<instead::a_trainer_before_the_inputs>{}));
}

/// The first argument of a call of predict() that is no trainer, and any other argument. Converted
/// from whatever is given, so that each function `predict` of a program is a better match.
struct no_trainer {
  template <class Given>
    requires(!has_mini_batches<Given>)
  constexpr no_trainer(Given const&) {
    static_assert(accepted<decltype(diagnose_no_trainer(word<Given>{}))>::value);
  }
};
struct anything {
  template <class... Given>
  constexpr anything(Given const&...) {}
};

/// The number of the output with a name of the first samples of a data set.
template <Text Name, class M>
std::size_t outputs_of(data_set::sample_places const& places, std::size_t samples) {
  constexpr loss_input of = model_tables<M>::loss_inputs[output_number<M, Name>];
  if constexpr (of.axis != 0) {
    constexpr long positions = model_tables<M>::inputs[of.axis - 1].form.elements();
    if (auto const& first = places.first[of.axis - 1]; !first.empty())
      return first[samples] * std::size_t(of.elements / positions);
  }
  return samples * std::size_t(of.elements);
}

/// The output with a name in predict_by_length: of the whole data set, and of a mini-batch.
template <Text Name, class Trainer>
struct predicted {
  using element = typename Trainer::element;
  data_set::sample_places const& places;
  typename Trainer::output_values all;
  std::vector<element> found{};

  std::size_t begin_of(std::size_t sample) const {
    return outputs_of<Name, typename Trainer::model>(places, sample);
  }
  std::size_t count_of(std::size_t sample) const { return begin_of(sample + 1) - begin_of(sample); }
  /// Makes room for the outputs of a mini-batch.
  std::span<element> room_for(std::span<std::size_t const> samples) {
    std::size_t count = 0;
    for (std::size_t const s : samples) count += count_of(s);
    found.resize(count);
    return found;
  }
  /// Copies the outputs of a mini-batch to the places of their samples.
  void put(std::span<std::size_t const> samples) const {
    element const* from = found.data();
    for (std::size_t const s : samples) {
      std::memcpy(all.data() + begin_of(s), from, count_of(s) * sizeof(element));
      from += count_of(s);
    }
  }
};

/// predict() by a trainer with Lengths: mini-batches of samples of like lengths, whose outputs are
/// copied to their places.
///
/// needs: arrays of the right sizes
template <Text... Names, class Trainer>
void predict_by_length(Trainer& trainer, typename Trainer::batch const& data,
                       data_set::sample_places const& places,
                       predicted<Names, Trainer>... outputs) {
  int longest = 0;
  std::vector<int> const lengths = sums_of_lengths(data, places.samples, longest);
  std::vector<std::size_t> order(places.samples);
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  sort_by_length(order, lengths, longest, order.size());
  data_set::copied_samples<Trainer> copies;
  std::size_t n = 0;
  for (std::size_t first = 0; first < order.size(); first += n) {
    std::size_t const left = order.size() - first, most = std::size_t(Trainer::samples);
    n = left < most ? left : most;
    auto const these = std::span(std::as_const(order)).subspan(first, n);
    trainer.template forward<Names...>(copies.gather(data, places, these),
                                       outputs.room_for(these)...);
    (outputs.put(these), ...);
  }
}

}  // namespace detail

/// The model's outputs (before the loss) for all samples of a data set, computed by mini-batches.
/// Names are those of Trainer::forward: predict<"labels", "name">(trainer, data, outputs, more).
/// Labels are not needed. An empty data set has no outputs.
///
/// shape:  inputs[n * inputs_per_sample] -> outputs[n * outputs_per_sample_of<Name>] for each name;
///         with lengths the rows of all samples, as of Trainer::forward
/// law:    a sample's outputs equal those of Trainer::forward bit for bit, independently of the
///         other samples. With Lengths samples of like lengths are computed together.
/// throws: data_error as Trainer::forward does
template <Text Name = "labels", Text... More, class Trainer>
void predict(Trainer& trainer, typename Trainer::batch const& data,
             typename Trainer::output_values outputs,
             typename detail::named_values<typename Trainer::output_values, More>::type... more) {
  [[maybe_unused]] constexpr std::size_t most = std::size_t(Trainer::samples);
  data_set::sample_places const places = data_set::places_in<Trainer>(data, false);
  std::size_t const samples = places.samples;
  using M = typename Trainer::model;
  detail::check_size(detail::output_part<Name>(), outputs.size(),
                     detail::outputs_of<Name, M>(places, samples));
  (detail::check_size(detail::output_part<More>(), more.size(),
                      detail::outputs_of<More, M>(places, samples)),
   ...);
  if constexpr (data_set::takes_lengths<Trainer>) {
    detail::predict_by_length<Name, More...>(trainer, data, places,
                                             detail::predicted<Name, Trainer>{places, outputs},
                                             detail::predicted<More, Trainer>{places, more}...);
  } else {
    for (std::size_t first = 0; first < samples; first += most) {
      std::size_t const n = samples - first < most ? samples - first : most;
      auto const part = [&](auto const& of) {
        std::size_t const each = of.size() / samples;
        return of.subspan(first * each, n * each);
      };
      trainer.template forward<Name, More...>(data_set::slice<Trainer>(data, places, first, n),
                                              part(outputs), part(more)...);
    }
  }
}
template <Text Name = "labels", Text... More, class Trainer>
void predict(Trainer& trainer, typename Trainer::template input_values<0> inputs,
             typename Trainer::output_values outputs,
             typename detail::named_values<typename Trainer::output_values, More>::type... more) {
  predict<Name, More...>(trainer, typename Trainer::batch{inputs, {}}, outputs, more...);
}
template <Text Name = "labels", class Trainer>
std::vector<typename Trainer::element> predict(Trainer& trainer,
                                               typename Trainer::batch const& data) {
  data_set::sample_places const places = data_set::places_in<Trainer>(data, false);
  std::vector<typename Trainer::element> outputs(
      detail::outputs_of<Name, typename Trainer::model>(places, places.samples));
  predict<Name>(trainer, data, outputs);
  return outputs;
}
template <Text Name = "labels", class Trainer>
std::vector<typename Trainer::element> predict(Trainer& trainer,
                                               typename Trainer::template input_values<0> inputs) {
  return predict<Name>(trainer, typename Trainer::batch{inputs, {}});
}
/// Calls without a trainer, or without the inputs, are one error each.
template <Text Name = "labels", Text... More>
std::vector<float> predict(detail::no_trainer, detail::anything = {}, detail::anything = {}) {
  return {};
}
template <Text Name = "labels", Text... More, detail::has_mini_batches Trainer, class... Arguments>
  requires(!detail::gives_inputs<Trainer, Arguments...>)
std::vector<typename Trainer::element> predict(Trainer&, Arguments&&...) {
  static_assert(detail::accepted<decltype(detail::diagnosis_of<wrong::predict_needs_the_inputs,
                                                               Trainer, Arguments...>())>::value);
  return {};
}

}  // namespace pp
