// SPDX-License-Identifier: BSL-1.0
//
// A model's outputs for a data set of any size.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <pipe/data/data_set.hpp>

namespace pp {

/// The model's outputs (before the loss) for all samples of a data set, computed by mini-batches.
/// Labels are not needed. An empty data set has no outputs.
///
/// shape:  inputs[n * inputs_per_sample] -> outputs[n * outputs_per_sample]
/// law:    a sample's outputs equal those of Trainer::forward bit for bit, independently of the
///         other samples
/// throws: data_error as Trainer::forward does
template <class Trainer>
void predict(Trainer& trainer, typename Trainer::batch const& data,
             typename Trainer::output_values outputs) {
  constexpr std::size_t per_sample = std::size_t(Trainer::outputs_per_sample),
                        most = std::size_t(Trainer::samples);
  std::size_t const samples = data_set::count<Trainer>(data, false);
  if (outputs.size() != samples * per_sample)
    detail::throw_error<data_error>(
        {"outputs: expected ", samples * per_sample, " numbers, got ", outputs.size()});
  for (std::size_t first = 0; first < samples; first += most) {
    std::size_t const n = samples - first < most ? samples - first : most;
    trainer.forward(data_set::slice<Trainer>(data, first, n),
                    outputs.subspan(first * per_sample, n * per_sample));
  }
}
template <class Trainer>
void predict(Trainer& trainer, typename Trainer::template input_values<0> inputs,
             typename Trainer::output_values outputs) {
  predict(trainer, typename Trainer::batch{inputs, {}}, outputs);
}
template <class Trainer>
std::vector<typename Trainer::element> predict(Trainer& trainer,
                                               typename Trainer::batch const& data) {
  std::vector<typename Trainer::element> outputs(data_set::count<Trainer>(data, false) *
                                                 std::size_t(Trainer::outputs_per_sample));
  predict(trainer, data, outputs);
  return outputs;
}
template <class Trainer>
std::vector<typename Trainer::element> predict(Trainer& trainer,
                                               typename Trainer::template input_values<0> inputs) {
  return predict(trainer, typename Trainer::batch{inputs, {}});
}

}  // namespace pp
