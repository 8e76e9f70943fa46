// SPDX-License-Identifier: BSL-1.0
#include "watch.hpp"

#include <algorithm>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>

#include <pipe/base/error.hpp>
#include <pipe/metrics/tensorboard.hpp>
#include <pipe/report/json_lines.hpp>
#include <pipe/report/live_page.hpp>
#include <pipe/report/progress_line.hpp>

struct run_watch::receivers {
  pp::metrics_log log;
  std::optional<pp::live_page> page;
  pp::progress_line line;

  template <class File>
  void add_file(options const& o, File file) {
    if (file.path() != o.metrics)
      std::printf("metrics: %s ('%s' is of another run)\n", file.path().c_str(), o.metrics.c_str());
    log.add(std::move(file));
  }
};

run_watch::run_watch(options const& o, long first, int tokens_per_sample, double predicted_bubble,
                     std::string about)
    : tokens_per_sample_(tokens_per_sample) {
  auto const words = [this, every = std::max(1L, o.steps / 100)](pp::step_metrics const& m) {
    char text[120];
    std::snprintf(text, sizeof text,
                  "%.3f bits/byte  rate %.1e  norm %5.2f  %6.0f tokens/s  bubble %2.0f %%",
                  bits_.of_last(every), m.learning_rate, m.gradient_norm,
                  m.samples_per_second * tokens_per_sample_, 100 * m.bubble);
    return std::string(text);
  };
  to_.reset(new receivers{.log = {}, .page = {}, .line = pp::progress_line(o.steps, words)});
  if (process() != 0) return;
  if (o.metrics.ends_with(".jsonl"))
    to_->add_file(o, pp::json_lines_file::resumed(o.metrics, first));
  else
    to_->add_file(
        o, pp::metrics_file::resumed(o.metrics, first, {"bits_per_byte", "tokens_per_second"}));
  if (!o.tensorboard.empty()) to_->log.add(pp::tensorboard_file(o.tensorboard, first));
  if (o.watch || !o.watch_file.empty()) {
    to_->page.emplace(pp::live_page_settings{.title = "GPT, " + o.schedule,
                                             .about = std::move(about),
                                             .steps = o.steps,
                                             .predicted_bubble = predicted_bubble,
                                             .serve = o.watch,
                                             .file = o.watch_file});
    to_->log.add(*to_->page);
  }
  if (o.watch) std::printf("watch: %s\n", to_->page->url().c_str());
  to_->log.report_failures([](std::string const& what) { warn(what, 1); });
}

run_watch::~run_watch() = default;

bool run_watch::has_page() const { return to_->page.has_value(); }

void run_watch::show_ranks(std::vector<pp::rank_load> const& ranks) {
  to_->page->show_ranks(ranks);
}

void run_watch::write(pp::step_metrics const& m) {
  to_->log.write(m);
  to_->line.write(m);
}

void run_watch::end() {
  to_->line.end();
  if (to_->page) try {
      to_->page->end();
    } catch (pp::error const& e) {
      warn(e.what(), 1);
    }
}
