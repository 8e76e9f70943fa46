// SPDX-License-Identifier: BSL-1.0
//
// The checkpoints of a run in one folder or two, and the rule by which checkpoints are kept: the
// last k and the best.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <pipe/base/error.hpp>
#include <pipe/checkpoint/checkpoint_folder.hpp>
#include <pipe/io/save_somewhere.hpp>

namespace pp::detail {

/// A checkpoint, with the number of its folder and its loss.
struct kept_checkpoint : listed_checkpoint {
  int folder = 0;
};

/// The checkpoints to keep: the first `last`, and the `best` ones with the lowest finite losses.
///
/// shape: losses[n], the newest first -> [n]
inline std::vector<bool> checkpoints_to_keep(std::vector<double> const& losses, int last,
                                             int best) {
  std::vector<bool> keeps(losses.size());
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < losses.size(); ++i) {
    keeps[i] = i < std::size_t(last);
    if (std::isfinite(losses[i])) order.push_back(i);
  }
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return losses[a] != losses[b] ? losses[a] < losses[b] : a < b;
  });
  for (std::size_t i = 0; i < order.size() && i < std::size_t(best); ++i) keeps[order[i]] = true;
  return keeps;
}

/// The folders of a run, and the run's checkpoints there.
class kept_checkpoints {
 public:
  /// Receives a warning.
  using warnings = std::vector<std::string>;

  void add_folder(std::string path) { folders_.emplace_back(std::move(path)); }
  std::vector<checkpoint_folder> const& folders() const { return folders_; }

  /// Makes, locks and cleans the folders. A folder that cannot be written to is a warning.
  ///
  /// throws: file_error if another run has one, or if one cannot be read; data_error if one has
  /// checkpoints and `resumes` is
  ///         false. Then none is locked.
  void open(bool resumes, warnings& told) try {
    for (checkpoint_folder& f : folders_) {
      try {
        f.make();
        f.lock();
      } catch (checkpoint_folder::busy const&) {
        throw;
      } catch (file_error const& e) {
        told.push_back(e.what());
      }
      f.clean();
      if (std::vector<long> const steps = f.steps(); !resumes && !steps.empty())
        throw data_error("'" + f.path() + "' has the checkpoints of a run of " +
                         std::to_string(steps[0]) +
                         " steps: resume() it, or save to another folder");
    }
  } catch (...) {
    for (checkpoint_folder& f : folders_) f.unlock();
    throw;
  }
  /// Renames folders with checkpoints. Returns the new name of the first folder, or "".
  ///
  /// throws: file_error
  std::string set_aside() {
    std::string name;
    for (checkpoint_folder& f : folders_) {
      if (f.steps().empty()) continue;
      std::string const aside = free_name(f.path());
      std::error_code error;
      f.lock();
      std::filesystem::rename(f.path(), aside, error);
      f.unlock();
      if (error)
        throw file_error("cannot rename '" + f.path() + "' to '" + aside + "': " + error.message());
      if (name.empty()) name = aside;
    }
    return name;
  }

  /// All files that have the name of a checkpoint, the newest first.
  std::vector<kept_checkpoint> candidates() const {
    std::vector<kept_checkpoint> all;
    for (std::size_t i = 0; i < folders_.size(); ++i)
      for (long const step : folders_[i].steps()) all.push_back({{step}, int(i)});
    sort(all);
    return all;
  }
  /// The path of the newest checkpoint, "" if there is none.
  std::string newest() const {
    std::vector<kept_checkpoint> const all = candidates();
    return all.empty() ? "" : folders_[std::size_t(all[0].folder)].file_of(all[0].step);
  }
  /// The checkpoints of a run that goes on from one of them, and whether `latest` lists the one
  /// from which it goes on.
  struct taken {
    std::vector<kept_checkpoint> all;
    bool is_listed = false;
  };
  /// The checkpoints that take_over() takes if `loaded` can be loaded: `loaded`, and earlier ones
  /// that `latest` lists. Other files are not of this run, and are never removed.
  taken taken_with(kept_checkpoint loaded, warnings& told) const {
    taken found;
    for (std::size_t i = 0; i < folders_.size(); ++i) try {
        std::vector<long> const there = folders_[i].steps();
        for (listed_checkpoint const& c : folders_[i].listed())
          if (c.step == loaded.step && int(i) == loaded.folder)
            loaded.loss = c.loss, found.is_listed = true;
          else if (c.step <= loaded.step &&
                   std::find(there.begin(), there.end(), c.step) != there.end())
            found.all.push_back({c, int(i)});
      } catch (error const& e) {
        told.push_back(e.what());
      }
    sort(found.all);
    found.all.insert(found.all.begin(), loaded);
    return found;
  }
  /// Takes over checkpoints. A loaded checkpoint that `latest` does not list, since a program was
  /// killed before, is listed now.
  ///
  /// law: the checkpoints are taken over before anything that may fail for want of memory
  void take_over(taken&& found, warnings& told) {
    all_ = std::move(found.all);
    if (!found.is_listed) list(all_[0].folder, told);
  }
  /// Lists a written checkpoint in `latest`, then removes checkpoints that need not be kept. A
  /// program that is killed in between leaves files that `latest` lists, which the next call
  /// removes. Want of memory leaves either everything as before, or the checkpoint added and files
  /// for the next call.
  void add(kept_checkpoint const& written, int last, int best, warnings& told) {
    std::vector<kept_checkpoint> all{written}, left;
    for (kept_checkpoint const& c : all_)
      if (c.step != written.step || c.folder != written.folder) all.push_back(c);
    std::vector<double> losses;
    for (kept_checkpoint const& c : all) losses.push_back(c.loss);
    std::vector<bool> const keeps = checkpoints_to_keep(losses, last, best);
    left.reserve(all.size());
    all_ = all;
    list(written.folder, told);
    for (std::size_t i = 0; i < all.size(); ++i)
      if (keeps[i] || !folders_[std::size_t(all[i].folder)].remove(all[i].step))
        left.push_back(all[i]);
    all_ = std::move(left);
  }

 private:
  /// Writes `latest` in a folder. A failure is a warning.
  void list(int folder, warnings& told) const {
    std::vector<listed_checkpoint> here;
    for (kept_checkpoint const& c : all_)
      if (c.folder == folder) here.push_back(c);
    try {
      folders_[std::size_t(folder)].list(here);
    } catch (file_error const& e) {
      told.push_back(e.what());
    }
  }
  static void sort(std::vector<kept_checkpoint>& all) {
    std::sort(all.begin(), all.end(), [](kept_checkpoint const& a, kept_checkpoint const& b) {
      return a.step != b.step ? a.step > b.step : a.folder < b.folder;
    });
  }

  std::vector<checkpoint_folder> folders_;
  std::vector<kept_checkpoint> all_;  // those of this run, the newest first
};

}  // namespace pp::detail
