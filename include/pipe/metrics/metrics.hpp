// SPDX-License-Identifier: BSL-1.0
//
// Metrics of a training run by step. A record goes to any number of sinks: a file of
// comma-separated values, TensorBoard (metrics/tensorboard.hpp), user-defined functions.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <pipe/base/error.hpp>
#include <pipe/base/real_text.hpp>
#include <pipe/io/record_file.hpp>
#include <pipe/base/utf8.hpp>
#include <pipe/base/text_function.hpp>

namespace pp {

namespace detail {

/// A user-defined metric.
struct named_scalar {
  std::string name;
  double value = 0;
};
/// The beginning of the names of metrics that are one of several losses.
inline constexpr std::string_view loss_prefix = "loss/";

}  // namespace detail

/// The record of a step.
struct step_metrics {
  long step = 0;
  double loss = 0;
  double learning_rate = 0;
  double gradient_norm = 0;  ///< before clipping
  double samples_per_second = 0;
  double seconds = 0;  ///< duration of the step
  double bubble = 0;   ///< see step_result::bubble
  std::vector<detail::named_scalar> scalars{};
};

namespace detail {

/// Calls each(name, number, significant digits) for the numbers that every record has.
template <class Each>
void for_all_numbers(step_metrics const& m, Each each) {
  each("loss", m.loss, 9);
  each("learning_rate", m.learning_rate, 6);
  each("gradient_norm", m.gradient_norm, 6);
  each("samples_per_second", m.samples_per_second, 6);
  each("seconds", m.seconds, 6);
  each("bubble", m.bubble, 4);
}

/// The number at the start of a text if `end` follows it; else -1.
inline long leading_number(std::string_view text, char end) {
  std::size_t at = 0;
  long number = 0;
  for (; at < text.size() && at < 18 && text[at] >= '0' && text[at] <= '9'; ++at)
    number = 10 * number + (text[at] - '0');
  return at > 0 && at < text.size() && text[at] == end ? number : -1;
}

/// A receiver of records: has write(record), or is callable with a record.
template <class S>
concept metrics_sink = requires(S& s, step_metrics const& m) { s.write(m); } ||
                       std::invocable<S&, step_metrics const&>;

}  // namespace detail

/// Passes every record to all of its sinks, in the order in which they were added.
///
///     metrics_log log;
///     log.add(metrics_file("metrics.csv")).add(tensorboard_file("runs/1"));
///     log.add([](step_metrics const& m) { ... });
///     log.write(record);
class metrics_log {
 public:
  /// Adds a sink, of which the log keeps a copy: an object with write(record), or a function.
  template <detail::metrics_sink Sink>
  metrics_log& add(Sink sink) {
    auto const kept = std::make_shared<Sink>(std::move(sink));
    sinks_.push_back({[kept](step_metrics const& m) {
      if constexpr (requires { kept->write(m); })
        kept->write(m);
      else
        std::invoke(*kept, m);
    }});
    return *this;
  }

  /// Lets the training go on when a sink fails: the text of a sink's first pp::error goes to
  /// `report` instead of the caller of write(). A sink that failed gets later records all the same:
  /// a disk may have room again.
  metrics_log& report_failures(detail::text_function report) {
    report_ = std::move(report);
    return *this;
  }

  /// Writes a record to every sink, even if one throws; the first exception is rethrown at the end.
  void write(step_metrics const& m) {
    std::exception_ptr first;
    for (receiver& s : sinks_) try {
        write(s, m);
      } catch (...) {
        if (!first) first = std::current_exception();
      }
    if (first) std::rethrow_exception(first);
  }

 private:
  struct receiver {
    std::function<void(step_metrics const&)> write;
    bool has_failed = false;
  };

  void write(receiver& s, step_metrics const& m) const try { s.write(m); } catch (error const& e) {
    if (!report_) throw;
    if (s.has_failed) return;
    std::string const text =
        std::string(e.what()) + " (step " + std::to_string(m.step) + "; the training goes on)";
    s.has_failed = true;
    report_(text);
  }

  // Sinks are held by shared_ptr, because std::function needs a copyable target and a sink that
  // owns a file may only be movable. A copy of the log writes to the same sinks.
  std::vector<receiver> sinks_;
  detail::text_function report_;
};

/// A file of comma-separated values: a heading, then a row per step, which is in the file before
/// the next step.
///
/// throws: file_error as soon as a write fails; data_error for a user-defined metric without a
///         column
class metrics_file {
 public:
  /// `scalars`: user-defined metrics, which get columns after the fixed ones; a row without one
  /// leaves its cell empty.
  explicit metrics_file(std::string path, std::vector<std::string> scalars = {},
                        files::record_file::start how = files::record_file::start::replace)
      : metrics_file(files::record_file(std::move(path), how), std::move(scalars)) {}

  /// The file of a run that is resumed after `steps` steps. A file with the same columns is
  /// continued, and the rows of later steps are moved to PATH.dropped, as the file may be another
  /// run's. A file with other columns is left alone, as with record_file::start::beside.
  static metrics_file resumed(std::string const& path, long steps,
                              std::vector<std::string> scalars = {}) {
    auto const step_of = [](std::string_view row) { return detail::leading_number(row, ','); };
    files::record_file file = files::record_file::resumed(path, steps, heading(scalars), step_of);
    return metrics_file(std::move(file), std::move(scalars));
  }

  std::string const& path() const { return file_.path(); }

  /// Appends a row for a step.
  ///
  /// throws: data_error if the record has a user-defined metric without a column, or a metric
  ///         twice; then no row is written. file_error if the write fails.
  void write(step_metrics const& m) {
    std::string row = std::to_string(m.step);
    detail::for_all_numbers(
        m, [&](char const*, double number, int digits) { append(row, number, digits); });
    std::size_t found = 0;
    for (std::string const& name : scalars_) {
      auto const at = std::find_if(m.scalars.begin(), m.scalars.end(),
                                   [&](detail::named_scalar const& s) { return s.name == name; });
      if (at == m.scalars.end())
        row += ',';
      else
        append(row, at->value, 9), ++found;
    }
    // Fewer columns filled than metrics given: a metric has no column, or two metrics have one
    // name.
    if (found < m.scalars.size()) refuse(m);
    file_.append(row + '\n');
  }

 private:
  // A file that is continued has a heading already.
  metrics_file(files::record_file file, std::vector<std::string> scalars)
      : file_(std::move(file)), scalars_(std::move(scalars)) {
    if (!file_.is_resumed()) file_.append(heading(scalars_));
  }

  /// The first line: the names of all columns.
  static std::string heading(std::vector<std::string> const& scalars) {
    std::string line = "step";
    detail::for_all_numbers({}, [&](char const* name, double, int) { (line += ',') += name; });
    for (std::string const& name : scalars) (line += ',') += cell(name);
    return line + '\n';
  }

  /// A number as a cell, with as many significant digits as the column has.
  static void append(std::string& row, double value, int digits) {
    (row += ',') += detail::real_text(value, digits);
  }
  /// A name as a cell, quoted as in RFC 4180.
  static std::string cell(std::string_view name) {
    if (name.find_first_of(",\"\r\n") == name.npos) return std::string(name);
    std::string quotes = "\"";
    for (char const c : name) quotes.append(c == '"' ? 2 : 1, c);
    return quotes + '"';
  }
  /// Throws data_error that lists the metrics of the record which have no column or are given
  /// twice.
  [[noreturn]] void refuse(step_metrics const& m) const {
    std::string why;
    for (auto s = m.scalars.begin(); s != m.scalars.end(); ++s) {
      auto const is_this = [&](std::string_view name) { return name == s->name; };
      bool const has_column = std::any_of(scalars_.begin(), scalars_.end(), is_this);
      bool const is_second =
          std::any_of(m.scalars.begin(), s, [&](auto const& other) { return is_this(other.name); });
      if (has_column && !is_second) continue;
      why += (why.empty() ? "" : ", ") + detail::in_quotes(s->name) +
             (has_column ? " is given twice" : " has no column");
    }
    throw data_error("metrics in '" + file_.path() + "': step " + std::to_string(m.step) + ": " +
                     why + "; columns are declared in metrics_file's constructor");
  }

  files::record_file file_;
  std::vector<std::string> scalars_;
};

}  // namespace pp
