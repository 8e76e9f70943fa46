// SPDX-License-Identifier: BSL-1.0
//
// Progress of a run: on a terminal one line that is rewritten, with the time left; elsewhere a line
// for every hundredth of the run.
//
//     pp::progress_line line(steps);
//     while (trainer.steps() < steps) {
//       ...
//       line.write(record);  // or once before the loop: log.add(line)
//     }
//     line.end();
#pragma once
#ifndef PIPE_SHOWS_WARNINGS
#pragma GCC system_header
#endif

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include <sys/ioctl.h>
#include <unistd.h>

#include <pipe/base/config.hpp>
#include <pipe/base/real_text.hpp>
#include <pipe/io/record_file.hpp>
#include <pipe/metrics/metrics.hpp>
#include <pipe/report/escape.hpp>
#include <pipe/report/pace.hpp>

namespace pp {

namespace console {

/// Loss, learning rate, norm, throughput and bubble of a step in words. Metrics "loss/NAME", one
/// for each of several losses, follow the loss: `loss 0.9000 (labels 0.6000, follows 0.6000)`.
inline std::string step_words(step_metrics const& m) {
  auto const fixed = [](double x, int digits) {
    return std::string(detail::real_text(x, digits, std::chars_format::fixed));
  };
  auto const right = [&](double x, int digits, std::size_t width) {
    std::string const text = fixed(x, digits);
    return std::string(width > text.size() ? width - text.size() : 0, ' ') + text;
  };
  std::string all = "loss " + fixed(m.loss, 4), each;
  for (detail::named_scalar const& s : m.scalars) {
    if (!s.name.starts_with(detail::loss_prefix)) continue;
    each += (each.empty() ? "" : ", ") + s.name.substr(detail::loss_prefix.size()) + " " +
            fixed(s.value, 4);
  }
  if (!each.empty()) all += " (" + each + ")";
  all += "  rate ";
  all += detail::real_text(m.learning_rate, 1, std::chars_format::scientific);
  return all + "  norm " + right(m.gradient_norm, 2, 5) + "  " + right(m.samples_per_second, 0, 6) +
         " samples/s  bubble " + right(100 * m.bubble, 0, 2) + " %";
}

}  // namespace console

namespace detail {

/// The first `columns` characters of a text, each of which is taken to fill one column.
inline std::string_view first_columns(std::string_view text, std::size_t columns) {
  std::size_t end = 0;
  for (; end < text.size(); ++end)
    if ((static_cast<unsigned char>(text[end]) & 0xC0) != 0x80 && columns-- == 0) break;
  return text.substr(0, end);
}

}  // namespace detail

/// A metrics sink that writes to a terminal or any other file, stdout for example:
///
///     step  30/3000  loss 3.2119  rate 8.7e-04  norm  1.20     843 samples/s  bubble 31 %
///
/// No function throws for a failed write, which sets the file's error flag (std::ferror).
class progress_line {
 public:
  using words = std::function<std::string(step_metrics const&)>;

  /// steps: of the whole run, at least 1
  /// text: the words of a step, instead of loss, rate, norm, throughput and bubble
  explicit progress_line(long steps, words text = console::step_words, std::FILE* file = stdout)
      : steps_(std::max(1L, steps)), every_(std::max(1L, steps / 100)), text_(std::move(text)),
        file_(file), pace_(steps_), is_terminal_(::isatty(::fileno(file)) == 1) {}

  /// Shows a step, if it is time: on a terminal every fifth of a second, elsewhere the first one
  /// and each hundredth of the run.
  void write(step_metrics const& m) {
    auto const now = detail::run_pace::clock::now();
    pace_.add(m.step, now);
    bool const due = is_first_ || m.step % every_ == 0 || m.step == steps_;
    is_first_ = false;
    if (is_terminal_ && (due || now - written_ > std::chrono::milliseconds(200))) {
      written_ = now;
      rewrite(m);
    } else if (due && !is_terminal_) {
      print(step_words(m) + "\n");
    }
  }
  /// Ends the line after the last step: later output begins on a line of its own.
  void end() {
    if (std::exchange(is_open_, false)) print("\n");
  }

 private:
  /// "step  30/3000  loss ..." Control characters in the words of a program do not reach a
  /// terminal.
  std::string step_words(step_metrics const& m) const {
    char step[64];
    std::snprintf(step, sizeof step, "step %*ld/%ld  ", int(std::to_string(steps_).size()), m.step,
                  steps_);
    return step + console::terminal_escaped(text_(m));
  }
  std::string time_left() const {
    return detail::readable_duration(pace_.seconds_left()) + " left";
  }

  /// Writes the line as far as it fits: a longer line could not be rewritten.
  void rewrite(step_metrics const& m) {
    std::string bar(16, '.');
    std::fill_n(bar.begin(), 16 * std::clamp(m.step, 0L, steps_) / steps_, '#');
    winsize window{};
    bool const known = ::ioctl(::fileno(file_), TIOCGWINSZ, &window) == 0 && window.ws_col > 1;
    std::string const line =
        "[" + bar + "] " + (pace_.seconds_left() >= 0 ? time_left() + "  " : "") + step_words(m);
    is_open_ = m.step < steps_;
    print("\r" + std::string(detail::first_columns(line, known ? window.ws_col - 1u : 79)) +
          "\033[K" + (is_open_ ? "" : "\n"));
  }
  void print(std::string const& text) {
    detail::no_broken_pipe const guard;
    std::fputs(text.c_str(), file_);
    std::fflush(file_);
  }

  long steps_, every_;
  words text_;
  std::FILE* file_;
  detail::run_pace pace_;
  bool is_terminal_, is_first_ = true, is_open_ = false;
  detail::run_pace::clock::time_point written_{};
};

}  // namespace pp
