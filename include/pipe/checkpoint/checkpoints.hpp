// SPDX-License-Identifier: BSL-1.0
//
// Checkpoints of a run in a folder: when they are saved, which are kept, and from which a run is
// resumed. The files are those of trainer.save, written by a thread from a copy in memory, so that
// training waits for the copy only.
#pragma once
#ifndef PIPE_SHOWS_WARNINGS
#pragma GCC system_header
#endif

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <limits>
#include <new>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <pipe/base/error.hpp>
#include <pipe/base/sentence.hpp>
#include <pipe/base/signals_blocked.hpp>
#include <pipe/base/thread.hpp>
#include <pipe/base/together.hpp>
#include <pipe/checkpoint/checkpoint.hpp>
#include <pipe/checkpoint/checkpoint_folder.hpp>
#include <pipe/checkpoint/checkpoint_parts.hpp>
#include <pipe/checkpoint/checkpoint_settings.hpp>
#include <pipe/checkpoint/checkpoint_tensors.hpp>
#include <pipe/checkpoint/checkpoint_warnings.hpp>
#include <pipe/checkpoint/kept_checkpoints.hpp>
#include <pipe/checkpoint/load_or_skip.hpp>
#include <pipe/checkpoint/newest_checkpoint.hpp>
#include <pipe/checkpoint/resumed_run.hpp>
#include <pipe/io/save_somewhere.hpp>
#include <pipe/train/parts/trainer_processes.hpp>

namespace pp {

/// The result of checkpoints::resume. An empty path: no checkpoint was there.
struct resumed_checkpoint : resumed_run {
  std::string path{};
  std::vector<std::string> skipped{};  ///< a sentence for each newer one: why it was not taken
};

/// The checkpoints of a run, FOLDER/step-N.safetensors. A file that cannot be written is a warning,
/// and the training goes on. If ranks are in several processes, all processes make the same calls,
/// with the same settings and a folder that all can read. One process writes, or each writes its
/// part, and one process decides what depends on a clock.
///
///     checkpoints<Trainer> saved("run", {.every_steps = 1000});
///     long done = saved.resume(trainer).position.number();
///     while (done < n) {
///       double const loss = trainer.step(...).loss;
///       saved.after_step(trainer, ++done, loss);
///     }
///     saved.finish(trainer, done);
///
/// law: a program that is killed at any time and started again trains the same bits as one that
///      runs through
/// law: the bytes of a file are those that trainer.save would have written after that step
template <class Trainer>
class checkpoints {
  using clock = std::chrono::steady_clock;
  static constexpr double unknown = std::numeric_limits<double>::quiet_NaN();

 public:
  using settings = detail::checkpoint_settings;

  /// Touches no file: resume() and the first after_step() open the folder.
  ///
  /// throws: data_error for a setting out of range
  explicit checkpoints(std::string folder, settings s = settings{}) : settings_(std::move(s)) {
    if (settings_.every_steps < 0 || settings_.every.count() < 0 || settings_.keep_last < 1 ||
        settings_.keep_best < 0)
      throw data_error(
          "checkpoints: every_steps, every and keep_best: expected 0 or more; keep_last: 1 or "
          "more");
    kept_.add_folder(std::move(folder));
    if (!settings_.second_place.empty()) kept_.add_folder(settings_.second_place);
  }
  checkpoints(checkpoints const&) = delete;
  checkpoints& operator=(checkpoints const&) = delete;
  /// Waits for the file that is being written; a checkpoint in parts that was not completed in a
  /// later call is dropped.
  ~checkpoints() {
    writer_.join();
    try {
      report();
    } catch (...) {
      // A warning that cannot be given.
    }
  }

  /// Loads the newest checkpoint that is whole and fits the trainer. Each newer checkpoint is
  /// reported, and stays where it is until the run has reached its step. Without any checkpoint the
  /// trainer is unchanged.
  ///
  /// throws: data_error if there are checkpoints and none can be loaded, so that a run does not
  ///         start over by mistake; file_error if another run has the folder, or the folder cannot
  ///         be read
  resumed_checkpoint resume(Trainer& trainer) {
    open(trainer, true);
    std::vector<detail::kept_checkpoint> all;
    in_first_process(trainer, [&] { all = kept_.candidates(); });
    resumed_checkpoint found;
    for (std::size_t next = 0;; ++next) {
      detail::kept_checkpoint const which = detail::found_by_first(trainer, all, next);
      if (which.step < 0) break;
      // Memory is taken before the trainer changes: nothing fails afterwards.
      std::string path = folders()[std::size_t(which.folder)].file_of(which.step), safe_path = path;
      detail::kept_checkpoints::taken taken;
      std::vector<std::string> told;
      in_first_process(trainer, [&] {
        told = found.skipped;
        taken = kept_.taken_with(which, told);
        warnings_.texts.reserve(warnings_.texts.size() + told.size());
      });
      std::optional<resumed_run> loaded = detail::load_or_skip(
          trainer, path, [&] { return saver::load(trainer, path, which.step); }, found.skipped);
      if (!loaded) continue;
      static_cast<resumed_run&>(found) = std::move(*loaded);
      found.path = std::move(path);
      safe_path_ = std::move(safe_path);
      begun_step_ = safe_step_ = found.steps;
      for (std::string& text : told) warnings_.texts.push_back(std::move(text));
      warnings_.guard([&] {
        if (writes()) kept_.take_over(std::move(taken), warnings_.texts);
      });
      warnings_.guard([&] {
        if (!found.other_bits.empty()) note(found.other_bits);
      });
      try {
        report();
      } catch (std::bad_alloc const&) {
        // The next call tells the warnings that are left.
      }
      return found;
    }
    if (!found.skipped.empty()) {
      std::string why = "'" + folders()[0].path() + "': none of its " +
                        std::to_string(found.skipped.size()) + " checkpoints can be loaded";
      for (std::string const& text : found.skipped) why += "; " + text;
      throw data_error(why);
    }
    return found;
  }

  /// To be called after each training step: saves a checkpoint if one is due and the one before has
  /// been written, otherwise later.
  ///
  /// loss:   the number by which the best are kept, such as a validation's loss; a checkpoint
  ///         without a loss is not among the best
  /// throws: data_error at the first call if the folder has checkpoints and resume() was not called
  void after_step(Trainer& trainer, data_position const& position, double loss = unknown) {
    open(trainer, false);
    if (phase_ == phase::none) {
      if (!is_writing_.load()) wait(trainer);
    } else if (trainer.processes().agree(!is_writing_.load())) {
      go_on(trainer);
    }
    long const step = trainer.steps();
    if (step == begun_step_) return;  // a step that was skipped, or has been saved
    is_due_ = is_due_ || (settings_.every_steps > 0 && step % settings_.every_steps == 0);
    if (!is_due_ && settings_.every.count() == 0) return;
    bool const is_time = is_due_ || clock::now() - begun_ >= settings_.every;
    bool const is_free = phase_ == phase::none && !is_writing_.load();
    if (detail::first_process_says(trainer, is_time && is_free ? 1 : 0) == 1)
      save(trainer, position, loss, attempt::due);
  }

  /// Saves the current step, unless it is saved already, and waits until the file is on disk. A
  /// checkpoint that can be written neither to the folder nor to the second place is written to the
  /// current folder, or to the folder for temporary files. Returns its path in the process that
  /// wrote it.
  ///
  /// throws: file_error if the checkpoint cannot be written anywhere
  std::string finish(Trainer& trainer, data_position const& position, double loss = unknown) {
    open(trainer, false);
    wait(trainer);
    auto const is_safe = [&] {
      return detail::first_process_says(trainer, safe_step_ == trainer.steps() ? 1 : 0) == 1;
    };
    for (attempt const a : {attempt::last, attempt::anywhere})
      if (!is_safe()) {
        save(trainer, position, loss, a);
        wait(trainer);
      }
    if (!is_safe())
      throw file_error(std::string("the checkpoint after step ") + std::to_string(trainer.steps()) +
                       " could not be written anywhere");
    return writes() ? safe_path_ : "";
  }

  /// Renames the folders if they have checkpoints, to FOLDER-2, FOLDER-3 ..., so that another run
  /// can begin. To be called before resume(). Returns the new name of the first folder, or "".
  ///
  /// throws: file_error if that fails, or if a run has the folder
  std::string set_aside(Trainer& trainer) {
    std::string name;
    detail::first_process_says(trainer, 0);  // all processes have looked at the folders
    in_first_process(trainer, [&] { name = kept_.set_aside(); });
    return name;
  }

  /// The bytes of the copy that is written while training goes on, taken at the first checkpoint in
  /// the process that writes files, with by_process in each for its own states. Without that memory
  /// training waits until the file is written. All processes call copy_bytes().
  static std::size_t copy_bytes(Trainer& trainer, checkpoint_files files = checkpoint_files::one) {
    return saver::bytes(trainer, files);
  }

 private:
  using saver = detail::checkpoint_of<Trainer>;
  using target = detail::checkpoint_target;
  /// The reason why a checkpoint is saved. finish() tries a second time, and at last in folders
  /// that are not the run's.
  enum class attempt : unsigned char { due, last, anywhere };
  /// The phase of a saving in parts, the same in all processes: all write parts, then one the first
  /// file.
  enum class phase : unsigned char { none, parts, whole };

  /// The folder of the run, and the second place.
  std::vector<detail::checkpoint_folder> const& folders() const { return kept_.folders(); }
  static bool writes() { return Trainer::engine::writes_files(); }

  /// Does something in the process that writes files.
  ///
  /// throws: in all processes, if it has thrown
  template <class Work>
  void in_first_process(Trainer& trainer, Work const& work) {
    detail::together<file_error>(detail::agreement_of(trainer), "the process of rank 0 cannot use",
                                 folders()[0].path(), [&] {
                                   if (writes()) work();
                                 });
  }

  /// Makes, locks and cleans the folders before their first use. A folder that cannot be written to
  /// is a warning.
  void open(Trainer& trainer, bool resumes) {
    if (is_open_) return;
    in_first_process(trainer, [&] { kept_.open(resumes, warnings_.texts); });
    is_open_ = true;
    begun_ = clock::now();
    report();
  }
  /// Begins to save a checkpoint. All processes call save().
  void save(Trainer& trainer, data_position const& position, double loss, attempt which) {
    wait(trainer);
    bool const was_due = std::exchange(is_due_, false);
    long const before = std::exchange(begun_step_, trainer.steps());
    begun_ = clock::now();
    loss_ = loss;
    attempt_ = which;
    // Where some processes cannot write, one process may.
    auto const files = which == attempt::anywhere ? checkpoint_files::one : settings_.files;
    try {
      if (!settings_.asynchronous || !copy(trainer, position, files))
        warnings_.guard([&] {
          write([&](target const& to) { saver::save(trainer, to.path, position, files, to.like); });
        });
      else if (saving_.part.count > 1)
        begin_parts(trainer, 0);
      else if (writes())
        start();
    } catch (...) {  // the next call tries again
      is_due_ = was_due;
      begun_step_ = before;
      throw;
    }
    if (phase_ == phase::none && !is_writing_.load()) report();
  }
  /// Makes the copy in memory. Returns whether there is a copy, in all processes alike.
  bool copy(Trainer& trainer, data_position const& position, checkpoint_files files) {
    std::size_t const bytes = copy_bytes(trainer, files);
    bool const copies = writes() || saver::part_of(trainer, files).count > 1;
    bool has_room = true;
    try {
      if (copies) copy_.reserve(bytes);
    } catch (std::bad_alloc const&) {
      has_room = false;
    }
    if (trainer.processes().agree(has_room)) try {
        saving_ = saver::copy(trainer, position, files, copy_);
        return true;
      } catch (rank_error const&) {
        throw;
      } catch (std::exception const&) {
        // The same as without memory.
      }
    note(std::string("no memory for a copy of a checkpoint, ") + std::to_string(bytes) +
         " bytes: training waits until it is written");
    return false;
  }
  /// Starts a thread that writes the copy; if no thread can be started, the copy is written now.
  void start() {
    is_writing_.store(true);
    auto const work = [](void* self, int) {
      auto& me = *static_cast<checkpoints*>(self);
      try {
        if (me.phase_ == phase::none)
          me.write([&](target const& to) { me.copy_.save(to); });
        else
          me.write_phase();
      } catch (...) {
        me.warnings_.keep_failure();
      }
      me.is_writing_.store(false);
    };
    bool is_started = true;
    try {
      // A SIGXFSZ that is blocked is an error of write().
      detail::signals_blocked const inherited;
      writer_ = detail::thread(work, this, 0);
    } catch (std::exception const&) {  // system_error, bad_alloc
      is_started = false;
    }
    if (!is_started) work(this, 0);
  }

  /// Begins to write the parts of a checkpoint in a folder. All processes call begin_parts().
  void begin_parts(Trainer& trainer, std::size_t folder) {
    if (writes()) make(folders()[folder]);
    saving_.to = {folders()[folder].file_of(begun_step_), kept_.newest()};
    saving_.number = detail::first_process_says(trainer, writes() ? detail::new_saving() : 0);
    if (folder == 0) failures_.clear();
    folder_ = folder;
    phase_ = phase::parts;
    if (saving_.part.number > 0) start();
  }
  /// Writes this process's part, or the first file.
  void write_phase() {
    if (phase_ == phase::parts) return copy_.save(saving_.target());
    saving_.complete();
    end(saving_.to.path, failures_);
  }
  /// Waits until all processes have ended a phase, and begins the next. All processes call it.
  void go_on(Trainer& trainer) {
    writer_.join();
    std::exception_ptr const failure = warnings_.take_failure();
    bool const is_done = trainer.processes().agree(!failure);
    if (is_done && phase_ == phase::parts) {
      phase_ = phase::whole;
      return writes() ? start() : void();
    }
    phase_ = phase::none;
    if (!is_done) {
      saving_.remove();
      std::string const why = failure ? detail::sentence_of(failure, saving_.to.path)
                                      : "another process could not save '" + saving_.to.path + "'";
      if (failure && !writes()) warnings_.texts.push_back(why);
      (failures_ += failures_.empty() ? "" : "; ") += why;
      if (folder_ + 1 < folders().size()) return begin_parts(trainer, folder_ + 1);
      end("", failures_);
    }
    report();
  }

  /// Writes the checkpoint with save_to(target) to the first place that takes it.
  template <class SaveTo>
  void write(SaveTo const& save_to) {
    std::string const name = detail::checkpoint_folder::name_of(begun_step_), like = kept_.newest();
    std::vector<std::string> paths;
    for (detail::checkpoint_folder const& f : folders()) paths.push_back(f.file(name));
    if (attempt_ == attempt::anywhere) {
      std::error_code error;
      paths.push_back(files::free_name(name));
      paths.push_back(files::free_name(std::filesystem::temp_directory_path(error) / name));
    }
    std::size_t next = 0;
    files::saved_place const found = files::save_somewhere(paths, [&](std::string const& path) {
      folder_ = next++;
      if (folder_ < folders().size() && writes()) make(folders()[folder_]);
      try {
        save_to({path, like});
      } catch (std::bad_alloc const&) {
        throw file_error(detail::no_memory_to_write(path));
      } catch (detail::failed_elsewhere const&) {
        throw;
      } catch (file_error const& e) {
        if (!writes()) warnings_.texts.push_back(e.what());
        throw;
      }
    });
    end(found.path, found.failures);
  }
  /// Notes the path of the checkpoint, "" if it was written nowhere, and the failures before.
  void end(std::string const& path, std::string const& failures) {
    if (path.empty())
      return note(failures + (attempt_ == attempt::due ? " (the training goes on)" : ""));
    std::string safe = path;
    if (writes() && folder_ < folders().size())
      kept_.add({{begun_step_, loss_}, int(folder_)}, settings_.keep_last, settings_.keep_best,
                warnings_.texts);
    safe_step_ = begun_step_;
    safe_path_ = std::move(safe);
    if (!failures.empty()) note(failures + "; it is in '" + path + "'");
  }
  /// Makes a folder again that was removed meanwhile; if this fails, writing says why.
  static void make(detail::checkpoint_folder const& folder) {
    try {
      folder.make();
    } catch (file_error const&) {
    }
  }

  /// Waits until the checkpoint is written. All processes call wait().
  void wait(Trainer& trainer) {
    writer_.join();
    while (phase_ != phase::none) go_on(trainer);
    report();
  }
  /// Keeps a warning for report().
  void note(std::string text) {
    if (writes()) warnings_.texts.push_back(std::move(text));
  }
  /// Tells the warnings. needs: no file is being written
  void report() { warnings_.tell(settings_.warn); }

  settings settings_;
  bool is_open_ = false, is_due_ = false;
  clock::time_point begun_{};  // when the last checkpoint was begun
  long begun_step_ = -1;       // its step
  attempt attempt_ = attempt::due;
  double loss_ = unknown;  // its loss
  phase phase_ = phase::none;
  detail::part_saving saving_;
  // While a file is written, the thread owns the members from here on, and reads the members above.
  std::atomic<bool> is_writing_{false};
  detail::tensor_copy<typename Trainer::element> copy_;
  detail::kept_checkpoints kept_;
  std::size_t folder_ = 0;  // number of the folder, or other place, that is written to
  std::string failures_;    // in the folders tried before
  detail::checkpoint_warnings warnings_;
  long safe_step_ = -1;  // of the last checkpoint that is on disk
  std::string safe_path_;
  detail::thread writer_;
};

}  // namespace pp
