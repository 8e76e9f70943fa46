// SPDX-License-Identifier: BSL-1.0
//
// How far the training is: one line that is written over again and again on a terminal, lines from time to time elsewhere.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include <pipe/train/metrics.hpp>

class progress {
 public:
  explicit progress(long steps) : steps_(steps), every_(std::max(1L, steps / 100)) { bits_.reserve(std::size_t(steps)); }

  void show(pp::step_metrics const& m) {
    bits_.push_back(m.bits_per_byte);
    bool const due = m.step % every_ == 0 || m.step == steps_;
    if (terminal_ ? due || clock::now() - shown_ > std::chrono::milliseconds(200) : due || m.step == 1) {
      shown_ = clock::now();
      print(m);
    }
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

  void print(pp::step_metrics const& m) const {
    int const width = int(std::to_string(steps_).size());
    char text[160];
    std::snprintf(text, sizeof text, "step %*ld/%ld  %.3f bits/byte  rate %.1e  norm %5.2f  %5.0f tokens/s  bubble %2.0f %%",
                  width, m.step, steps_, recent(every_), m.learning_rate, m.gradient_norm, m.tokens_per_second,
                  100 * m.bubble);
    if (!terminal_) {
      std::printf("%s\n", text);
    } else {
      std::string bar(20, '.');
      std::fill_n(bar.begin(), 20 * m.step / steps_, '#');
      std::printf("\r[%s] %s%s", bar.c_str(), text, m.step == steps_ ? "\n" : "");
    }
    std::fflush(stdout);
  }

  long steps_, every_;
  std::vector<double> bits_;
  clock::time_point shown_{};
  bool terminal_ = isatty(STDOUT_FILENO) == 1;
};
