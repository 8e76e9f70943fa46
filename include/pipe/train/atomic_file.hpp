// SPDX-License-Identifier: BSL-1.0
//
// A file that is there whole or not at all. Whatever happens while it is written, to the program or to the machine, its
// name leads to the old contents or to the new ones.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <pipe/train/file_descriptor.hpp>

namespace pp {

/// Written under a temporary name in the same folder, and renamed by commit(). Without commit() nothing of it stays.
///
/// law: after commit() the bytes and the name are on the disk; a program that is killed leaves at most the temporary file
/// throws: file_error, naming the file and the reason; the temporary file is gone then, and what `path` led to is as before
class atomic_file {
 public:
  explicit atomic_file(std::string path) : path_(std::move(path)) {
    if (path_.empty()) throw file_error("cannot write '': there is no name");
    struct stat there{};
    if (::lstat(path_.c_str(), &there) == 0 && !S_ISREG(there.st_mode) && !S_ISLNK(there.st_mode))
      throw file_error("cannot write '" + path_ + "': there is something else than a file");
    // Another program, or one that was killed, may have the name: take the next.
    for (int number = 0; number < 1000 && !file_.is_open(); ++number) {
      temporary_ = path_ + ".tmp-" + std::to_string(::getpid()) + "-" + std::to_string(number);
      file_ = file_descriptor(temporary_, O_WRONLY | O_CREAT | O_EXCL);
      if (!file_.is_open() && errno != EEXIST) break;
    }
    if (!file_.is_open()) {
      temporary_.clear();
      throw_file_error("write", path_);
    }
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
    if (!file_.sync() || !file_.close()) fail("write");
    if (std::rename(temporary_.c_str(), path_.c_str()) != 0) fail("write");
    temporary_.clear();
    std::size_t const slash = path_.rfind('/');
    std::string const folder = slash == path_.npos ? "." : path_.substr(0, slash + 1);
    file_descriptor const entry(folder, O_RDONLY | O_DIRECTORY);
    // Some file systems cannot sync a folder and say so by EINVAL: there the rename is as safe as it gets.
    if (!entry.is_open() || (!entry.sync() && errno != EINVAL)) throw_file_error("sync the folder of", path_);
  }

 private:
  [[noreturn]] void fail(char const* what) {
    int const reason = errno;
    remove();
    errno = reason;
    throw_file_error(what, path_);
  }
  void remove() noexcept {
    if (!temporary_.empty()) ::unlink(temporary_.c_str());
    temporary_.clear();
  }

  std::string path_, temporary_;
  file_descriptor file_;
};

}  // namespace pp
