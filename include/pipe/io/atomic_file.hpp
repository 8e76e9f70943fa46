// SPDX-License-Identifier: BSL-1.0
//
// A file that is there whole or not at all. Whatever happens while it is written, to the program or
// to the machine, its name leads to the old contents or to the new ones.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <pipe/io/file_descriptor.hpp>
#include <pipe/io/temporary_file.hpp>

namespace pp {

/// Written under a temporary name in the same folder, and renamed by commit(). Without commit()
/// nothing of it stays. A file that is replaced leaves its mode and, where the system allows it,
/// its owner and group to the new one.
///
/// law: after commit() the bytes and the name are on the disk; a program that is killed leaves at
///      most the temporary file, which the next one that writes under that name removes
/// throws: file_error, naming the file and the reason; the temporary file is gone then, and what
///         `path` led to is as before
class atomic_file {
 public:
  explicit atomic_file(std::string path) : path_(std::move(path)) {
    if (path_.empty()) throw file_error("cannot write '': there is no name");
    struct stat there{};
    bool const is_there = ::lstat(path_.c_str(), &there) == 0;
    if (!is_there && errno != ENOENT) detail::throw_file_error("write", path_);
    if (is_there && !S_ISREG(there.st_mode) && !S_ISLNK(there.st_mode))
      throw file_error("cannot write '" + path_ + "': there is something else than a file");
    bool const replaces = is_there && S_ISREG(there.st_mode);
    detail::temporary_names const names(path_);
    detail::remove_stale_files(names);
    // This program may be writing the same file elsewhere, and another one on another machine may
    // have its number: take the next.
    bool is_mine = false;
    for (int number = 0; number < 1000 && !is_mine; ++number) {
      temporary_ = names.path(number);
      file_ = detail::file_descriptor(temporary_, O_WRONLY | O_CREAT | O_EXCL,
                                      replaces ? there.st_mode & 0777 : 0666);
      is_mine = file_.is_open() && detail::lock_temporary(file_);
      if (!file_.is_open() && errno != EEXIST) break;
    }
    if (!is_mine) {
      temporary_.clear();
      detail::throw_file_error("write", path_);
    }
    if (replaces) take_over(there);
  }
  atomic_file(atomic_file const&) = delete;
  atomic_file& operator=(atomic_file const&) = delete;
  ~atomic_file() { remove(); }

  void write(std::span<std::byte const> bytes) {
    if (!file_.write(bytes)) fail("write");
  }
  void write(std::string_view text) { write(std::as_bytes(std::span(text.data(), text.size()))); }

  /// The file gets its name, replacing what had it (a link is replaced, not what it leads to).
  void commit() {
    if (!file_.sync() || !file_.flush()) fail("write");
    if (std::rename(temporary_.c_str(), path_.c_str()) != 0) fail("write");
    temporary_.clear();
    file_ = detail::file_descriptor();  // the lock went with it until it had its name
    std::string const folder = detail::temporary_names(path_).folder;
    detail::file_descriptor const entry(folder.empty() ? "." : folder, O_RDONLY | O_DIRECTORY);
    // Some file systems cannot sync a folder and say so by EINVAL: there the rename is as safe as
    // it gets.
    if (!entry.is_open() || (!entry.sync() && errno != EINVAL))
      detail::throw_file_error("sync the folder of", path_);
  }

 private:
  /// Mode, group and owner of the file that is replaced. Where it cannot be the same group, the new
  /// file's group may do no more than others.
  void take_over(struct stat const& old) const {
    struct stat mine{};
    mode_t mode = old.st_mode & 0777;
    if (::fstat(file_.number(), &mine) != 0) return;
    if (mine.st_gid != old.st_gid && ::fchown(file_.number(), uid_t(-1), old.st_gid) != 0)
      mode &= ~070u | (mode & 7) << 3;
    [[maybe_unused]] bool const has_owner =  // root may do this
        mine.st_uid == old.st_uid || ::fchown(file_.number(), old.st_uid, gid_t(-1)) == 0;
    [[maybe_unused]] bool const has_mode = ::fchmod(file_.number(), mode) == 0;
  }

  [[noreturn]] void fail(char const* what) {
    int const reason = errno;
    remove();
    errno = reason;
    detail::throw_file_error(what, path_);
  }
  void remove() noexcept {
    if (!temporary_.empty()) ::unlink(temporary_.c_str());
    temporary_.clear();
  }

  std::string path_, temporary_;
  detail::file_descriptor file_;
};

}  // namespace pp
