// SPDX-License-Identifier: BSL-1.0
//
// A folder of checkpoints: the names of its files, the list of checkpoints, and the lock by which
// one run has the folder.
//
//     step-N.safetensors    the checkpoint after N steps, its parts beside it: checkpoint_parts.hpp
//     latest                a line for each checkpoint, the newest first: its file, its loss. It is
//                           written after the newest one
//     lock                  empty; locked (flock) by the run that saves here
#pragma once

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <limits>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <unistd.h>

#include <pipe/base/error.hpp>
#include <pipe/base/real_text.hpp>
#include <pipe/base/sentence.hpp>
#include <pipe/checkpoint/checkpoint_parts.hpp>
#include <pipe/io/atomic_file.hpp>
#include <pipe/io/file_bytes.hpp>
#include <pipe/io/file_descriptor.hpp>
#include <pipe/io/folder_reader.hpp>
#include <pipe/io/temporary_file.hpp>

namespace pp::detail {

/// A checkpoint as `latest` lists it.
struct listed_checkpoint {
  long step = 0;
  double loss = std::numeric_limits<double>::quiet_NaN();  ///< NaN: unknown
};

/// A folder that may not exist yet. An empty path is the current folder.
class checkpoint_folder {
 public:
  explicit checkpoint_folder(std::string path) : path_(std::move(path)) {
    while (path_.size() > 1 && path_.back() == '/') path_.pop_back();
  }

  std::string const& path() const { return path_; }
  std::string file(std::string const& name) const {
    return path_.empty() || path_ == "/" ? path_ + name : path_ + "/" + name;
  }
  /// The file of the checkpoint after `step` steps.
  static std::string name_of(long step) {
    return std::string("step-") + std::to_string(step) + ".safetensors";
  }
  std::string file_of(long step) const { return file(name_of(step)); }

  /// Makes the folder unless it exists.
  ///
  /// throws: file_error
  void make() const {
    std::error_code error;
    if (!path_.empty() && !std::filesystem::is_directory(path_, error) &&
        !std::filesystem::create_directories(path_, error))
      throw file_error("cannot make the folder '" + path_ +
                       "': " + (error ? error.message() : "a file has this name"));
  }
  /// Locks the folder for this object; does nothing where the file system has no locks.
  ///
  /// throws: file_error if another run has the folder, or the folder cannot be written to
  void lock() {
    // A link may lead anywhere, and opening a pipe may block.
    file_descriptor lock(file("lock"), O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK);
    if (!lock.is_open()) throw_file_error("save checkpoints in", path_);
    if (!lock.lock() && errno == EWOULDBLOCK)
      throw busy("'" + path_ +
                 "' has the checkpoints of a run that is still going on: take another folder");
    lock_ = std::move(lock);
  }
  void unlock() { lock_ = file_descriptor(); }
  /// The error that another run has the folder.
  struct busy : file_error {
    using file_error::file_error;
  };

  /// Removes files that killed programs have left: temporary files (see remove_stale_files) and
  /// parts of checkpoints that were not completed.
  ///
  /// throws: file_error if the folder cannot be read
  void clean() const {
    std::set<std::string> names;
    for (std::string const& name : entries()) {
      if (std::size_t const end = name.find(".tmp-");
          end != name.npos && (name.starts_with("step-") || name.starts_with("latest.tmp-")))
        names.insert(name.substr(0, end));
      std::error_code error;
      if (std::string const whole(whole_of_part(name));
          step_of(whole) >= 0 && !std::filesystem::exists(file(whole), error) && !error)
        ::unlink(file(name).c_str());
    }
    for (std::string const& name : names) remove_stale_files(temporary_names(file(name)));
  }
  /// The steps of the files that have the name of a checkpoint, the newest first.
  ///
  /// throws: file_error if the folder cannot be read
  std::vector<long> steps() const {
    std::vector<long> all;
    for (std::string const& name : entries())
      if (long const step = step_of(name); step >= 0) all.push_back(step);
    std::sort(all.rbegin(), all.rend());
    return all;
  }

  /// What `latest` lists; nothing if there is no such file.
  ///
  /// throws: data_error if `latest` is another program's file; file_error if it is no file, or
  ///         cannot be read
  std::vector<listed_checkpoint> listed() const {
    std::vector<listed_checkpoint> all;
    struct stat there{};
    if (::stat(file("latest").c_str(), &there) != 0 && errno == ENOENT) return all;
    std::string const text = file_bytes(file("latest"), 1 << 24);
    for (std::size_t at = 0, end_of_line = 0; at < text.size(); at = end_of_line + 1) {
      end_of_line = std::min(text.find('\n', at), text.size());
      std::string const line = text.substr(at, end_of_line - at);
      std::size_t const space = line.find(' ');
      listed_checkpoint found{step_of(line.substr(0, space))};
      if (found.step < 0 || space == line.npos ||
          !read_real(std::string_view(line).substr(space + 1), found.loss))
        throw data_error("'" + this->file("latest") + "' does not list checkpoints in line " +
                         std::to_string(all.size() + 1) + ": the losses of earlier ones are lost");
      all.push_back(found);
    }
    return all;
  }
  /// Writes `latest`, atomically. all: the newest first
  ///
  /// throws: file_error
  void list(std::vector<listed_checkpoint> const& all) const {
    std::string text;
    for (listed_checkpoint const& c : all) {
      (text += name_of(c.step)) += ' ';
      (text += real_text(c.loss, 9)) += '\n';
    }
    atomic_file latest(file("latest"));
    latest.write(text);
    latest.commit();
  }
  /// Removes a checkpoint. Returns whether it is gone.
  bool remove(long step) const {
    if (::unlink(file_of(step).c_str()) != 0 && errno != ENOENT) return false;
    remove_parts(file_of(step));
    return true;
  }

 private:
  /// The step in the name of a checkpoint's file, -1 in any other name.
  static long step_of(std::string_view name) {
    long step = -1;
    if (name.starts_with("step-"))
      std::from_chars(name.data() + 5, name.data() + name.size(), step);
    return step >= 0 && name == name_of(step) ? step : -1;
  }
  /// The names in the folder; none if there is no such folder.
  ///
  /// throws: file_error if the folder cannot be read: a run would take it for an empty folder, and
  ///         start over
  std::vector<std::string> entries() const {
    std::vector<std::string> names;
    folder_reader from(path_);
    while (dirent const* const entry = from.next()) names.emplace_back(entry->d_name);
    if (from.error() != 0 && from.error() != ENOENT && from.error() != ENOTDIR)
      throw file_error("cannot read the folder '" + path_ + "': " + std::strerror(from.error()));
    return names;
  }

  std::string path_;
  file_descriptor lock_;
};

}  // namespace pp::detail
