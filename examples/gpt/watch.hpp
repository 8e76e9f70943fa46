// SPDX-License-Identifier: BSL-1.0
//
// What shows a run: metrics in a file, for TensorBoard and on a page, and the line of progress.
#pragma once

#include <algorithm>
#include <cstdio>
#include <numbers>
#include <optional>
#include <string>
#include <utility>

#include <pipe/metrics/metrics.hpp>
#include <pipe/metrics/tensorboard.hpp>
#include <pipe/report/json_lines.hpp>
#include <pipe/report/live_page.hpp>
#include <pipe/report/progress_line.hpp>
#include <pipe/report/rank_load.hpp>

#include "gpt.hpp"
#include "recent_mean.hpp"

/// The receivers of a run that goes on after some steps. One of several processes writes files.
class run_watch {
 public:
  /// first: the steps that were done before
  run_watch(options const& o, long first, int tokens_per_sample, double predicted_bubble)
      : tokens_per_sample_(tokens_per_sample), every_(std::max(1L, o.steps / 100)),
        line_(o.steps, [this](pp::step_metrics const& m) { return words_of(m); }) {
    if (process() != 0) return;
    if (o.metrics.ends_with(".jsonl"))
      add_file(o, pp::json_lines_file::resumed(o.metrics, first));
    else
      add_file(o,
               pp::metrics_file::resumed(o.metrics, first, {"bits_per_byte", "tokens_per_second"}));
    if (!o.tensorboard.empty()) log_.add(pp::tensorboard_file(o.tensorboard, first));
    if (o.watch || !o.watch_file.empty()) {
      page_.emplace(pp::live_page_settings{.title = "GPT, " + o.schedule,
                                           .steps = o.steps,
                                           .predicted_bubble = predicted_bubble,
                                           .serve = o.watch,
                                           .file = o.watch_file});
      log_.add(*page_);
    }
    if (o.watch) std::printf("watch: %s\n", page_->url().c_str());
    log_.report_failures([](std::string const& what) { warn(what, 1); });
  }
  run_watch(run_watch const&) = delete;
  run_watch& operator=(run_watch const&) = delete;

  template <class Trainer>
  void after_step(Trainer const& trainer, pp::step_result const& r, double rate) {
    double const bits = r.loss / std::numbers::ln2, speed = Trainer::samples / r.seconds;
    bits_.add(bits);
    // Between steps that overlap there is no run that has ended.
    if (page_ && !steps_overlap<Trainer>) page_->show_ranks(pp::rank_loads(trainer, r));
    pp::step_metrics const m{
        .step = trainer.steps(),
        .loss = r.loss,
        .learning_rate = rate,
        .gradient_norm = r.gradient_norm,
        .samples_per_second = speed,
        .seconds = r.seconds,
        .bubble = r.bubble,
        .scalars = {{"bits_per_byte", bits}, {"tokens_per_second", speed * tokens_per_sample_}}};
    log_.write(m);
    line_.write(m);
  }
  /// Mean bits per byte of the last `steps` steps.
  double recent_bits(long steps) const { return bits_.of_last(steps); }

  /// No more steps follow.
  void end() {
    line_.end();
    if (page_) try {
        page_->end();
      } catch (pp::error const& e) {
        warn(e.what(), 1);
      }
  }

 private:
  template <class File>
  void add_file(options const& o, File file) {
    if (file.path() != o.metrics)
      std::printf("metrics: %s ('%s' is of another run)\n", file.path().c_str(), o.metrics.c_str());
    log_.add(std::move(file));
  }
  std::string words_of(pp::step_metrics const& m) const {
    char words[120];
    std::snprintf(words, sizeof words,
                  "%.3f bits/byte  rate %.1e  norm %5.2f  %6.0f tokens/s  bubble %2.0f %%",
                  bits_.of_last(every_), m.learning_rate, m.gradient_norm,
                  m.samples_per_second * tokens_per_sample_, 100 * m.bubble);
    return words;
  }

  int tokens_per_sample_;
  long every_;
  recent_mean bits_;
  pp::metrics_log log_;
  std::optional<pp::live_page> page_;
  pp::progress_line line_;
};
