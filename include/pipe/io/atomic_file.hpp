// SPDX-License-Identifier: BSL-1.0
//
// Atomic replacement of a file: if the program or the machine fails while the file is written, its
// name still refers to the complete old contents or to the complete new contents.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <pipe/io/file_descriptor.hpp>
#include <pipe/io/temporary_file.hpp>

namespace pp {

namespace files {

/// A file that is written under a temporary name in the same folder, and renamed by commit().
/// Without commit() it is removed. The new file takes over the mode of the file that it replaces
/// and, where the system allows it, owner and group; if it replaces no file, it takes them over
/// from the file `like`.
///
/// law:    after commit() the bytes and the name are on disk; a program that is killed leaves at
///         most the temporary file, which the next writer of that name removes
/// throws: file_error with the name and the reason; the temporary file is then removed, and `path`
///         is unchanged, but for one case: see commit()
class atomic_file {
 public:
  /// Removes temporary files that killed programs have left for this name, then creates and locks
  /// one.
  ///
  /// throws: file_error if `path` is empty, or exists and is neither a regular file nor a symbolic
  ///         link
  [[gnu::cold]] explicit atomic_file(std::string path, std::string const& like = {})
      : path_(std::move(path)) {
    if (path_.empty()) throw file_error("cannot write '': the file name is empty");
    struct stat there{};
    // lstat, not stat: commit() replaces a symbolic link itself, not its target.
    bool const is_there = ::lstat(path_.c_str(), &there) == 0;
    if (!is_there && errno != ENOENT) detail::throw_file_error("write", path_);
    if (is_there && !S_ISREG(there.st_mode) && !S_ISLNK(there.st_mode))
      detail::throw_error<file_error>(
          {"cannot write '", path_, "': it exists and is not a regular file"});
    bool const follows = (is_there || ::lstat(like.c_str(), &there) == 0) && S_ISREG(there.st_mode);
    detail::temporary_names const names(path_);
    detail::remove_stale_files(names);
    // Another object of this program, or a program on another machine with the same host hash and
    // process number, may have the name: take the next number.
    bool is_mine = false;
    for (int number = 0; number < 1000 && !is_mine; ++number) {
      temporary_ = names.path(number);
      file_ = detail::file_descriptor(temporary_, O_WRONLY | O_CREAT | O_EXCL,
                                      follows ? there.st_mode & 0777 : 0666);
      // Between open and lock another program may take the new file for a stale one and remove it.
      is_mine = file_.is_open() && detail::lock_temporary(file_);
      if (!file_.is_open() && errno != EEXIST) break;
    }
    if (!is_mine) {
      temporary_.clear();
      detail::throw_file_error("write", path_);
    }
    if (follows) take_over(there);
  }
  atomic_file(atomic_file const&) = delete;
  atomic_file& operator=(atomic_file const&) = delete;
  ~atomic_file() { remove(); }

  /// Appends bytes to the temporary file. The disk writes them while the program makes the next
  /// bytes, so that commit() has little to wait for. needs: no commit() before
  [[gnu::cold]] void write(std::span<std::byte const> bytes) {
    if (!file_.write(bytes)) fail("write");
    written_ += bytes.size();
    if (written_ - begun_ < 8u << 20) return;
    file_.begin_sync(begun_, written_ - begun_);
    begun_ = written_;
  }
  void write(std::string_view text) { write(std::as_bytes(std::span(text.data(), text.size()))); }

  /// Gives the file its name and replaces the old one. A symbolic link is replaced, not its target.
  ///
  /// law: the bytes are on disk before the rename, the name after it
  /// throws: file_error; if only the sync of the folder fails, `path` has the new contents already
  [[gnu::cold]] void commit() {
    std::string folder(detail::folder_of(path_));
    if (folder.empty())
      folder.push_back('.');  // now: after the rename nothing may fail for want of memory
    if (!file_.sync() || !file_.flush()) fail("write");
    if (std::rename(temporary_.c_str(), path_.c_str()) != 0) fail("write");
    temporary_.clear();
    file_ = detail::file_descriptor();  // keeps the lock until after the rename
    detail::file_descriptor const entry(folder, O_RDONLY | O_DIRECTORY);
    // Some file systems cannot sync a folder, and fail with EINVAL: there the rename is as durable
    // as it can be.
    if (!entry.is_open() || (!entry.sync() && errno != EINVAL))
      detail::throw_file_error("sync the folder of", path_);
  }

 private:
  /// Takes over mode, group and owner of an older file. If the group cannot be the same, the
  /// new file's group gets at most the rights of others.
  [[gnu::cold]] void take_over(struct stat const& old) const {
    struct stat mine{};
    mode_t mode = old.st_mode & 0777;
    if (::fstat(file_.number(), &mine) != 0) return;
    if (mine.st_gid != old.st_gid && ::fchown(file_.number(), uid_t(-1), old.st_gid) != 0)
      mode &= ~070u | (mode & 7) << 3;
    [[maybe_unused]] bool const has_owner =  // permitted for root only
        mine.st_uid == old.st_uid || ::fchown(file_.number(), old.st_uid, gid_t(-1)) == 0;
    [[maybe_unused]] bool const has_mode = ::fchmod(file_.number(), mode) == 0;
  }

  /// Removes the temporary file and throws file_error with the reason that errno had before.
  [[noreturn, gnu::cold]] void fail(char const* what) {
    int const reason = errno;
    remove();
    errno = reason;
    detail::throw_file_error(what, path_);
  }
  /// Removes the temporary file, unless it has been renamed or removed already.
  [[gnu::cold]] void remove() noexcept {
    if (!temporary_.empty()) ::unlink(temporary_.c_str());
    temporary_.clear();
  }

  // temporary_ is empty once the file has been renamed or removed.
  std::string path_, temporary_;
  detail::file_descriptor file_;
  std::uint64_t written_ = 0,
                begun_ = 0;  // bytes in all, and bytes that the disk has begun to write
};

}  // namespace files

namespace detail {
using namespace files;
}  // namespace detail

}  // namespace pp
