// SPDX-License-Identifier: BSL-1.0
//
// What a training run measured, step by step, as a file of comma-separated values that any tool plots. Each row is on
// disk before the next step, so a run that breaks off leaves all it did.
#pragma once

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>

#include <pipe/base/error.hpp>

namespace pp {

struct step_metrics {
  long step = 0;
  double loss = 0;  ///< nats per token
  double bits_per_byte = 0;
  double learning_rate = 0;
  double gradient_norm = 0;  ///< before clipping
  double tokens_per_second = 0;
  double bubble = 0;  ///< measured share of the ranks' time
};

/// Writes a heading and a row per step. Throws pp::error, naming the file and the reason, as soon as it cannot.
class metrics_file {
 public:
  explicit metrics_file(std::string path) : path_(std::move(path)), file_(std::fopen(path_.c_str(), "w")) {
    if (!file_) fail();
    if (std::fputs("step,loss,bits_per_byte,learning_rate,gradient_norm,tokens_per_second,bubble\n", file_.get()) < 0)
      fail();
    flush();
  }

  void write(step_metrics const& m) {
    if (std::fprintf(file_.get(), "%ld,%.9g,%.6g,%.6g,%.6g,%.6g,%.4g\n", m.step, m.loss, m.bits_per_byte,
                     m.learning_rate, m.gradient_norm, m.tokens_per_second, m.bubble) < 0)
      fail();
    flush();
  }

 private:
  struct closer {
    void operator()(std::FILE* f) const { std::fclose(f); }
  };
  void flush() {
    if (std::fflush(file_.get()) != 0) fail();
  }
  [[noreturn]] void fail() const { throw error("cannot write metrics to '" + path_ + "': " + std::strerror(errno)); }

  std::string path_;
  std::unique_ptr<std::FILE, closer> file_;
};

}  // namespace pp
