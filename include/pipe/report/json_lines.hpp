// SPDX-License-Identifier: BSL-1.0
//
// Metrics as JSON lines: an object for each step, with a member for each number. Every tool that
// reads logs reads them, and user-defined metrics need no declaration.
#pragma once
#ifndef PIPE_SHOWS_WARNINGS
#pragma GCC system_header
#endif

#include <cmath>
#include <string>
#include <string_view>
#include <utility>

#include <pipe/base/real_text.hpp>
#include <pipe/io/record_file.hpp>
#include <pipe/metrics/metrics.hpp>
#include <pipe/report/escape.hpp>

namespace pp {

/// A metrics sink that writes a line per step, which is in the file before the next step:
///
///     {"step":1,"loss":1.5,...,"valid/loss":2}
///
/// A number that is not finite is null. Of a user-defined metric that is given twice both are
/// written.
///
/// throws: file_error as soon as a write fails
class json_lines_file {
 public:
  explicit json_lines_file(std::string path,
                           files::record_file::start how = files::record_file::start::replace)
      : file_(std::move(path), how) {}

  /// The file of a run that is resumed after `steps` steps: see metrics_file::resumed.
  static json_lines_file resumed(std::string const& path, long steps) {
    return json_lines_file(files::record_file::resumed(path, steps, "", [](std::string_view line) {
      if (!line.starts_with(begin)) return -1L;
      return detail::leading_number(line.substr(begin.size()), ',');
    }));
  }

  std::string const& path() const { return file_.path(); }

  /// Appends the line of a step.
  ///
  /// throws: file_error, and the file ends with the line before
  void write(step_metrics const& m) {
    std::string line = std::string(begin) + std::to_string(m.step);
    auto const add = [&](std::string_view name, double x, int digits) {
      line.append(",").append(name).append(":");
      if (std::isfinite(x))
        line += detail::real_text(x, digits);
      else
        line += "null";
    };
    // Names of the library are plain words.
    detail::for_all_numbers(m, [&](char const* name, double x, int digits) {
      add(std::string("\"").append(name).append("\""), x, digits);
    });
    for (detail::named_scalar const& s : m.scalars) add(detail::json_string(s.name), s.value, 9);
    file_.append(line + "}\n");
  }

 private:
  static constexpr std::string_view begin = "{\"step\":";

  explicit json_lines_file(files::record_file file) : file_(std::move(file)) {}

  files::record_file file_;
};

}  // namespace pp
