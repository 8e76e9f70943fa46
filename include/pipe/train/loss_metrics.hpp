// SPDX-License-Identifier: BSL-1.0
//
// Each loss of a model with several, as metrics of a step.
//
//     log.write({.step = ..., .loss = r.loss, ..., .scalars = loss_metrics<Trainer>(r)});
#pragma once
#ifndef PIPE_SHOWS_WARNINGS
#pragma GCC system_header
#endif

#include <string>
#include <utility>
#include <vector>

#include <pipe/runtime/job.hpp>
#include <pipe/train/metrics.hpp>

namespace pp {

/// "loss/NAME" of each loss of a model with several: columns of a metrics_file.
///
/// names: Trainer::loss_names
template <class Trainer>
std::vector<std::string> loss_metric_names() {
  std::vector<std::string> names;
  if constexpr (Trainer::loss_names.size() > 1)
    for (auto const name : Trainer::loss_names)
      names.push_back(std::string(detail::loss_prefix) + std::string(name));
  return names;
}

/// The losses of a step as user-defined metrics of these names, which words_of_step shows. None for
/// a model with one loss, which is the metric "loss".
template <class Trainer>
std::vector<detail::named_scalar> loss_metrics(step_result const& r) {
  std::vector<detail::named_scalar> all;
  for (std::string& name : loss_metric_names<Trainer>())
    all.push_back({std::move(name), r.losses[int(all.size())]});
  return all;
}

}  // namespace pp
