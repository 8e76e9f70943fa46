// SPDX-License-Identifier: BSL-1.0
//
// What shows a run: metrics in a file, for TensorBoard and on a page, and the line of progress.
#pragma once

#include <memory>
#include <numbers>
#include <string>
#include <vector>

#include <pipe/metrics/metrics.hpp>
#include <pipe/report/rank_load.hpp>

#include "command.hpp"
#include "recent_mean.hpp"

/// The receivers of a run that goes on after some steps. One of several processes writes files.
class run_watch {
 public:
  /// first: the steps that were done before; about: lines on the page, which say what the run is
  run_watch(options const& o, long first, int tokens_per_sample, double predicted_bubble,
            std::string about);
  ~run_watch();

  template <class Trainer>
  void after_step(Trainer const& trainer, pp::step_result const& r, double rate) {
    double const bits = r.loss / std::numbers::ln2, speed = Trainer::samples / r.seconds;
    bits_.add(bits);
    // Between steps that overlap there is no run that has ended.
    if (has_page() && !steps_overlap<Trainer>) show_ranks(pp::rank_loads(trainer, r));
    write(
        {.step = trainer.steps(),
         .loss = r.loss,
         .learning_rate = rate,
         .gradient_norm = r.gradient_norm,
         .samples_per_second = speed,
         .seconds = r.seconds,
         .bubble = r.bubble,
         .scalars = {{"bits_per_byte", bits}, {"tokens_per_second", speed * tokens_per_sample_}}});
  }
  /// Mean bits per byte of the last `steps` steps.
  double recent_bits(long steps) const { return bits_.of_last(steps); }

  /// No more steps follow.
  void end();

 private:
  struct receivers;

  bool has_page() const;
  void show_ranks(std::vector<pp::rank_load> const&);
  void write(pp::step_metrics const&);

  int tokens_per_sample_;
  recent_mean bits_;
  std::unique_ptr<receivers> to_;
};
