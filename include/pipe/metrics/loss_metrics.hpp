// SPDX-License-Identifier: BSL-1.0
//
// Each loss of a model with several losses, as a metric of a step.
//
//     log.write({.step = ..., .loss = r.loss, ..., .scalars = loss_metrics<Trainer>(r)});
#pragma once
#ifndef PIPE_SHOWS_WARNINGS
#pragma GCC system_header
#endif

#include <cstddef>
#include <string>
#include <vector>

#include <pipe/metrics/metrics.hpp>
#include <pipe/runtime/job.hpp>

namespace pp {

/// "loss/NAME" of each loss of a model with several losses: columns of a metrics_file.
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

/// The losses of a step as user-defined metrics of these names, which step_words shows. Empty
/// for a model with one loss, which is the metric "loss", and for an inference.
template <class Trainer>
std::vector<detail::named_scalar> loss_metrics(step_result const& r) {
  std::vector<std::string> const names = loss_metric_names<Trainer>();
  std::vector<detail::named_scalar> all;
  if (!names.empty())
    for (int i = 0; i < r.losses.size(); ++i) all.push_back({names[std::size_t(i)], r.losses[i]});
  return all;
}

}  // namespace pp
