// SPDX-License-Identifier: BSL-1.0
//
// Steps that are made again from a checkpoint and compared, bit for bit, with what was recorded:
// this finds a machine that computes wrongly, a kernel with a race or data that changed, and the
// step at which the bits began to differ.
//
//     trainer.load("run.checkpoint");  // after step 1000, say
//     replay_report const r = replay(trainer, read_step_log("steps.csv"), make_step);
//     if (!r.difference.empty()) ...   // "step 1007: the loss is ..., recorded was ..."
#pragma once
#ifndef PIPE_SHOWS_WARNINGS
#pragma GCC system_header
#endif

#include <bit>
#include <climits>
#include <concepts>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include <pipe/base/error.hpp>
#include <pipe/base/real_text.hpp>
#include <pipe/checkpoint/step_log.hpp>
#include <pipe/runtime/job.hpp>

namespace pp {

/// The comparison that a replay made.
struct replay_report {
  long steps = 0;            ///< made again; the last has the difference, if any
  long hashes = 0;           ///< hashes of parameters that were as recorded
  std::string difference{};  ///< the first difference in words; empty: every bit is as recorded

  /// Whether at least one step was compared, and every bit was as recorded.
  bool ok() const { return steps > 0 && difference.empty(); }
};

namespace detail {

/// The first difference of two records in words; empty if there is none. A hash that only one
/// record has is not compared.
inline std::string difference_of(step_record const& made, step_record const& recorded) {
  auto const words = [&](char const* what, std::uint64_t now, std::uint64_t then) {
    auto const number = [](std::uint64_t of) {
      return std::string(real_text(std::bit_cast<double>(of), 17));
    };
    auto const digits = [](std::uint64_t of) {
      char text[17];
      std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(of));
      return std::string(text);
    };
    return "step " + std::to_string(made.step) + ": the " + what + " is " + number(now) +
           " (bits " + digits(now) + "), recorded was " + number(then) + " (" + digits(then) + ")";
  };
  if (made.loss != recorded.loss) return words("loss", made.loss, recorded.loss);
  if (made.gradient_norm != recorded.gradient_norm)
    return words("gradient norm", made.gradient_norm, recorded.gradient_norm);
  if (made.parameters && recorded.parameters && *made.parameters != *recorded.parameters)
    return "step " + std::to_string(made.step) +
           ": the parameters differ from those recorded; loss and gradient norm do not";
  return "";
}

}  // namespace detail

/// Makes the steps after trainer.steps() again, as far as the log has them and up to step `last`,
/// and compares each with its record. make() makes the next step of the trainer, on the mini-batch
/// and with the learning rate of the recorded run, and returns its result. Ends at the first
/// difference. If ranks are in several processes, all processes call replay().
///
/// law:    a trainer with the bits of the recorded trainer finds no difference, whatever its
///         stages, schedule, partition and threads
/// throws: data_error if the log has no record of the next step, or if the records were made by
///         other arithmetic, which has other bits; what make() throws
template <class Trainer, std::invocable Make>
replay_report replay(Trainer& trainer, std::vector<step_record> const& log, Make make,
                     long last = LONG_MAX) {
  replay_report report;
  std::string const here = detail::logged_arithmetic(trainer);
  for (step_record const& recorded : log) {
    if (recorded.step <= trainer.steps()) continue;
    if (recorded.step > last || !report.difference.empty()) break;
    if (recorded.step != trainer.steps() + 1)
      throw data_error("replay: the log has no record of step " +
                       std::to_string(trainer.steps() + 1));
    if (recorded.runs_on != here)
      throw data_error("replay: step " + std::to_string(recorded.step) + " was recorded on " +
                       recorded.runs_on + ", whose bits are not those of " + here);
    step_result const r = make();
    step_record const made = detail::record_of(trainer, r, recorded.parameters.has_value(), here);
    ++report.steps;
    report.difference = detail::difference_of(made, recorded);
    report.hashes += made.parameters && report.difference.empty();
  }
  if (report.steps == 0)
    throw data_error("replay: the log has no record of step " +
                     std::to_string(trainer.steps() + 1));
  return report;
}

}  // namespace pp
