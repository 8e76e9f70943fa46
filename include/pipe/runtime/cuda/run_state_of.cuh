// SPDX-License-Identifier: BSL-1.0
//
// Facts of a run that need no device: the numbers of the run, and the number of kernels of a step.
#pragma once

#include <pipe/backend/cuda/core/run_state.hpp>
#include <pipe/runtime/actions.hpp>
#include <pipe/runtime/cuda/group_launch.cuh>
#include <pipe/runtime/description.hpp>
#include <pipe/runtime/job.hpp>

namespace pp::detail {

inline cuda::run_state run_state_of(pipeline_description const& d, job const& j) {
  cuda::run_state s;
  s.seed = j.seed;
  s.step = j.step;
  s.first_sample = j.part.first_sample;
  s.loss_scale = float(1 / j.loss.gradient_terms);
  s.clip_value = float(j.update.clip_value / j.update.gradient_scale);
  // In the first step the averages become the parameters.
  s.average_amount = j.step == 1 ? 1.0f : float(1 - d.average_decay);
  s.loss_terms = j.loss.terms;
  s.gradient_scale = j.update.gradient_scale;
  s.clip_norm = j.update.clip_norm;
  s.samples = double(j.update.samples);
  s.further = j.loss.further;
  return s;
}

/// The number of kernels that the actions of a step launch on the ranks of this process.
[[gnu::cold]] inline long kernels_of_step(pipeline_description const& d, cuda_group const* groups,
                                          local_devices const& local) {
  long sum = 0;
  job step;
  step.what = job::kind::train;
  step.batch.samples = d.samples * d.micro_batches;
  auto const ignore = [](auto const&...) {};
  for (int r = local.first_rank(); r < local.end_rank(); ++r)
    for (action const& a : d.rank[r].training)
      run_action(
          d, step, a,
          [&](program_set const& set, program p) {
            program_view const& view = set.programs[int(p)];
            for (int l = 0; l < view.trained; ++l) sum += groups[view.launches[l].group].kernels;
          },
          ignore, ignore, ignore);
  return sum;
}

}  // namespace pp::detail
