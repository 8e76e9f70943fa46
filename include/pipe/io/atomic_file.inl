// SPDX-License-Identifier: BSL-1.0
//
// Definitions of io/atomic_file.hpp.

#include <cerrno>
#include <cstdio>
#include <utility>

#include <pipe/io/temporary_file.hpp>

namespace pp::files {

PIPE_DEFINED atomic_file::atomic_file(std::string path, std::string const& like)
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
PIPE_DEFINED void atomic_file::write(std::span<std::byte const> bytes) {
  if (!file_.write(bytes)) fail("write");
  written_ += bytes.size();
  if (written_ - begun_ < 8u << 20) return;
  file_.begin_sync(begun_, written_ - begun_);
  begun_ = written_;
}
PIPE_DEFINED void atomic_file::commit() {
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
PIPE_DEFINED void atomic_file::take_over(struct stat const& old) const {
  struct stat mine{};
  mode_t mode = old.st_mode & 0777;
  if (::fstat(file_.number(), &mine) != 0) return;
  if (mine.st_gid != old.st_gid && ::fchown(file_.number(), uid_t(-1), old.st_gid) != 0)
    mode &= ~070u | (mode & 7) << 3;
  [[maybe_unused]] bool const has_owner =  // permitted for root only
      mine.st_uid == old.st_uid || ::fchown(file_.number(), old.st_uid, gid_t(-1)) == 0;
  [[maybe_unused]] bool const has_mode = ::fchmod(file_.number(), mode) == 0;
}
PIPE_DEFINED void atomic_file::fail(char const* what) {
  int const reason = errno;
  remove();
  errno = reason;
  detail::throw_file_error(what, path_);
}
PIPE_DEFINED void atomic_file::remove() noexcept {
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
  temporary_.clear();
}

}  // namespace pp::files
