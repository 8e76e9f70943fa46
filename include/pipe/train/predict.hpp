// SPDX-License-Identifier: BSL-1.0
//
// A model's outputs for a data set of any size.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <pipe/base/text.hpp>
#include <pipe/data/batch_check.hpp>
#include <pipe/data/data_set.hpp>
#include <pipe/train/parts/outputs.hpp>

namespace pp {

/// The model's outputs (before the loss) for all samples of a data set, computed by mini-batches.
/// Names are those of Trainer::forward: predict<"labels", "name">(trainer, data, outputs, more).
/// Labels are not needed. An empty data set has no outputs.
///
/// shape:  inputs[n * inputs_per_sample] -> outputs[n * outputs_per_sample_of<Name>] for each name
/// law:    a sample's outputs equal those of Trainer::forward bit for bit, independently of the
///         other samples
/// throws: data_error as Trainer::forward does
template <Text Name = "labels", Text... More, class Trainer>
void predict(Trainer& trainer, typename Trainer::batch const& data,
             typename Trainer::output_values outputs,
             typename detail::named_values<typename Trainer::output_values, More>::type... more) {
  constexpr std::size_t most = std::size_t(Trainer::samples);
  std::size_t const samples = data_set::count<Trainer>(data, false);
  auto const check = [&](detail::batch_part of, std::size_t found, long per_sample) {
    detail::check_size(of, found, samples * std::size_t(per_sample));
  };
  check(detail::output_part<Name>(), outputs.size(), Trainer::template outputs_per_sample_of<Name>);
  (check(detail::output_part<More>(), more.size(), Trainer::template outputs_per_sample_of<More>),
   ...);
  for (std::size_t first = 0; first < samples; first += most) {
    std::size_t const n = samples - first < most ? samples - first : most;
    auto const part = [&](auto const& of) {
      std::size_t const each = of.size() / samples;
      return of.subspan(first * each, n * each);
    };
    trainer.template forward<Name, More...>(data_set::slice<Trainer>(data, first, n), part(outputs),
                                            part(more)...);
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
  std::vector<typename Trainer::element> outputs(
      data_set::count<Trainer>(data, false) *
      std::size_t(Trainer::template outputs_per_sample_of<Name>));
  predict<Name>(trainer, data, outputs);
  return outputs;
}
template <Text Name = "labels", class Trainer>
std::vector<typename Trainer::element> predict(Trainer& trainer,
                                               typename Trainer::template input_values<0> inputs) {
  return predict<Name>(trainer, typename Trainer::batch{inputs, {}});
}

}  // namespace pp
