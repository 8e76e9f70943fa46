// SPDX-License-Identifier: BSL-1.0
//
// The keeping of a run: weights find another place, checkpoints say what it goes on from, and a log
// beside them what each step computed.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <pipe/base/error.hpp>
#include <pipe/checkpoint/checkpoints.hpp>
#include <pipe/checkpoint/step_log.hpp>
#include <pipe/io/save_somewhere.hpp>
#include <pipe/weights/weights.hpp>

#include "gpt.hpp"

/// Saves the weights; where that fails, elsewhere, with a warning that says where they are.
///
/// throws: pp::file_error if they cannot be saved anywhere
template <class Trainer>
void save_weights_somewhere(Trainer& trainer, std::string const& path) {
  pp::files::saved_place const place = pp::files::save_somewhere(
      path, [&](std::string const& file) { pp::save_weights(trainer, file); });
  if (place.path.empty()) throw pp::file_error(place.failures);
  if (!place.failures.empty())
    warn(place.failures + "; the weights are in '" +
             std::filesystem::absolute(place.path).string() + "'",
         1);
}

/// A run as text, from which its checkpoints tell whether another one is the same. Schedules with a
/// flush have the same bits.
template <class Trainer>
std::string text_of_run(options const& o, long bytes) {
  char rate[32];
  std::snprintf(rate, sizeof rate, "%.9g", o.learning_rate);
  return std::string("--steps ") + std::to_string(o.steps) + " --seed " + std::to_string(o.seed) +
         " --lr " + rate + (has_no_flush<Trainer> ? " --schedule " + o.schedule : "") +
         (o.load.empty() ? "" : " --load " + o.load) + (o.data.empty() ? "" : " --data " + o.data) +
         ", " + std::to_string(bytes) + " bytes of text";
}

/// The run that a folder of checkpoints has.
struct earlier_run {
  static constexpr char done[] = ", done";
  std::string text;  ///< as text_of_run; "": there is none
  bool is_done = false;

  /// Throws if the options do not say what is to become of it: a run that is not done, or is to be
  /// replayed, is of other options.
  earlier_run(options const& o, std::string const& run) {
    if (o.steps == 0 && o.replay == 0) return;  // nothing is trained
    pp::found_checkpoint const found = pp::newest_checkpoint(o.checkpoints);
    text = found.position.text;
    is_done = text.ends_with(done);
    if (is_done) text.resize(text.size() - std::string_view(done).size());
    if (found.path.empty() || text == run) return;
    if (o.replay > 0)
      throw pp::error("--replay: '" + o.checkpoints + "' has a run with other options: " + text);
    if (!is_done && !o.resume)
      throw pp::error("'" + o.checkpoints + "' has another run, ended after step " +
                      std::to_string(found.steps) + ": " + text +
                      "; --resume goes on with it, --checkpoints FOLDER begins another one");
  }
};

/// The log of the steps of a run: in the folder of its checkpoints, so that both go together.
inline std::string step_log_of(options const& o) {
  return (std::filesystem::path(o.checkpoints) / "step-log.csv").string();
}

/// The checkpoints of a run: when they are saved, and what it goes on from; and the log of its
/// steps.
template <class Trainer>
class run_checkpoints {
 public:
  /// Loads the run of the folder. One that is done is set aside, unless --resume is given.
  run_checkpoints(options const& o, earlier_run const& earlier, Trainer& trainer,
                  std::string const& run)
      : trainer_(trainer), run_(run), steps_(o.steps), every_(o.checkpoint_every),
        files_(o.checkpoints, {.every_steps = o.checkpoint_every,
                               .every = std::chrono::minutes(o.checkpoint_every > 0 ? 0 : 1),
                               .keep_best = 1,
                               .warn = [](std::string_view what) { warn(std::string(what), 0); }}) {
    if (earlier.is_done && !o.resume)
      if (std::string const aside = files_.set_aside(trainer); !aside.empty())
        std::printf("checkpoints: the finished run of '%s' is kept in '%s'\n",
                    o.checkpoints.c_str(), aside.c_str());
    pp::resumed_checkpoint const resumed = files_.resume(trainer);
    begin_log(step_log_of(o), !resumed.path.empty());
    if (resumed.path.empty()) {
      if (o.resume) throw pp::error("--resume: there is no checkpoint in '" + o.checkpoints + "'");
      return;
    }
    std::printf("resumed: after step %ld of %ld, from '%s'\n", resumed.steps, steps_,
                resumed.path.c_str());
    if (earlier.text != run_)
      std::printf("resumed: the run was begun with %s\n", earlier.text.c_str());
  }
  /// The step up to which to train before pause(): the next one, unless it would be made while
  /// the ones before it end.
  long next_pause(long done) const {
    if (!steps_overlap<Trainer>) return done + 1;
    long end = steps_;
    for (long const every : {steps_without_pause, every_})
      if (every > 0) end = done + std::min(end - done, every - done % every);
    return end;
  }
  void after_step(pp::step_result const& r) {
    try {
      log_->record(trainer_, r);
    } catch (pp::file_error const& e) {
      if (!std::exchange(has_lost_rows_, true))
        warn(std::string(e.what()) + " (the training goes on)", 1);
    }
  }
  /// Saves a checkpoint if it is time for one. No step is in progress.
  void pause(double loss) { files_.after_step(trainer_, position(), loss); }
  /// Saves what the run has come to; that this fails is a warning, for weights are saved after it.
  void finish(double loss) {
    try {
      files_.finish(trainer_, position(), loss);
    } catch (pp::file_error const& e) {
      warn(e.what(), 1);
    }
  }

 private:
  /// The parameters are hashed after every tenth step, if no other one is in progress then.
  static constexpr long steps_of_hash = steps_overlap<Trainer> ? 0 : 10;
  static constexpr long steps_without_pause = 100;

  /// Opens the log: the one that is there, if the run goes on. Without a place for it, it goes
  /// nowhere, and the training goes on.
  void begin_log(std::string const& path, bool goes_on) {
    try {
      // That of a run which has left no checkpoint.
      if (process() == 0 && !goes_on && std::filesystem::exists(path))
        std::filesystem::rename(path, pp::files::free_name(path));
      log_.emplace(path, trainer_, steps_of_hash);
    } catch (std::exception const& e) {
      warn(e.what(), 1);
      log_.emplace("/dev/null", trainer_, steps_of_hash);
    }
  }
  std::string position() const {
    return run_ + (trainer_.steps() >= steps_ ? earlier_run::done : "");
  }

  Trainer& trainer_;
  std::string run_;
  long steps_, every_;
  pp::checkpoints<Trainer> files_;
  std::optional<pp::step_log> log_;
  bool has_lost_rows_ = false;
};
