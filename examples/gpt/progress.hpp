// SPDX-License-Identifier: BSL-1.0
//
// How far the training is: one line that is written over again and again on a terminal, a line per
// hundredth elsewhere.
#pragma once

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <numbers>
#include <string>
#include <vector>

#include <pipe/train/metrics.hpp>

class progress {
 public:
  /// first: steps that were done before
  progress(long steps, int tokens_per_sample, long first)
      : steps_(steps), first_(first), every_(std::max(1L, steps / 100)),
        tokens_per_sample_(tokens_per_sample) {
    bits_.reserve(std::size_t(std::min(steps, 1'000'000L)));
  }

  void show(pp::step_metrics const& m) {
    bits_.push_back(m.loss / std::numbers::ln2);
    bool const due = m.step == first_ + 1 || m.step % every_ == 0 || m.step == steps_;
    if (terminal_ && (due || clock::now() - rewritten_ > std::chrono::milliseconds(200)))
      rewrite(m);
    else if (due)
      std::printf("%s\n", text(m).c_str());
    std::fflush(stdout);
  }

  /// No more steps follow: what is printed next begins on a line of its own.
  void stop() {
    if (terminal_ && !bits_.empty()) std::printf("\n");
  }

  /// Mean bits per byte of the last `steps` steps.
  double recent(long steps) const {
    long const n = std::min(steps, long(bits_.size()));
    double sum = 0;
    for (long i = 0; i < n; ++i) sum += bits_[bits_.size() - std::size_t(i) - 1];
    return sum / double(n);
  }

 private:
  using clock = std::chrono::steady_clock;

  std::string text(pp::step_metrics const& m) const {
    char line[160];
    std::snprintf(
        line, sizeof line,
        "step %*ld/%ld  %.3f bits/byte  rate %.1e  norm %5.2f  %6.0f tokens/s  bubble %2.0f %%",
        int(std::to_string(steps_).size()), m.step, steps_, recent(every_), m.learning_rate,
        m.gradient_norm, m.samples_per_second * tokens_per_sample_, 100 * m.bubble);
    return line;
  }

  /// The line as far as it fits: a longer one could not be written over.
  void rewrite(pp::step_metrics const& m) {
    rewritten_ = clock::now();
    double const seconds = std::chrono::duration<double>(rewritten_ - begin_).count();
    long const left = long(seconds / double(m.step - first_) * double(steps_ - m.step));
    char time[32];
    std::snprintf(time, sizeof time, "%ld:%02ld left  ", left / 60, left % 60);
    std::string bar(16, '.');
    std::fill_n(bar.begin(), 16 * m.step / steps_, '#');
    winsize window{};
    bool const known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col > 1;
    std::string const line =
        ("[" + bar + "] " + time + text(m)).substr(0, known ? window.ws_col - 1u : 79);
    std::printf("\r%s\033[K%s", line.c_str(), m.step == steps_ ? "\n" : "");
  }

  long steps_, first_, every_;
  int tokens_per_sample_;
  std::vector<double> bits_;
  clock::time_point begin_ = clock::now(), rewritten_{};
  bool terminal_ = isatty(STDOUT_FILENO) == 1;
};
