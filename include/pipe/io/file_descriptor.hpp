// SPDX-License-Identifier: BSL-1.0
//
// An open file of the operating system, for operations that the standard library does not have:
// syncing bytes to disk before a rename, truncating a half-written record, and the reason of a
// failure.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <pipe/base/error.hpp>
#include <pipe/base/joined_text.hpp>
#include <pipe/base/uninterrupted.hpp>

namespace pp::detail {

/// Throws file_error: "cannot WHAT 'PATH': REASON", with the reason of the last system call
/// (errno).
[[noreturn, gnu::cold]] inline void throw_file_error(char const* what, std::string const& path) {
  int const reason = errno;
  throw_error<file_error>({"cannot ", what, " '", path, "': ", std::strerror(reason)});
}

/// A file that could not be read for want of memory: the file itself may be good.
struct no_memory_for_file : file_error {
  using file_error::file_error;
};

/// A file descriptor with an owner, which closes it. read() and write() continue after
/// interruptions and partial transfers until all bytes are done.
class file_descriptor {
 public:
  file_descriptor() = default;
  /// Opens a file. If that fails, is_open() is false and errno has the reason.
  [[gnu::cold]] file_descriptor(std::string const& path, int flags, mode_t mode = 0666) {
    // O_CLOEXEC: programs that this one starts do not inherit the descriptor.
    number_ = uninterrupted([&] { return ::open(path.c_str(), flags | O_CLOEXEC, mode); });
  }
  file_descriptor(file_descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  /// Exchanges the descriptors: the destructor of `other` closes the descriptor that this object
  /// had.
  file_descriptor& operator=(file_descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  [[gnu::cold]] ~file_descriptor() {
    if (number_ >= 0) ::close(number_);
  }

  bool is_open() const { return number_ >= 0; }
  int number() const { return number_; }

  /// Reads from byte `at` on. Returns the number of bytes, less than to.size() only at the end of
  /// the file; -1 on failure.
  ///
  /// needs: a file with positions, not a pipe
  /// law: the current position, at which write() writes, does not change
  [[gnu::cold]] std::int64_t read(std::uint64_t at, std::span<std::byte> to) const {
    std::size_t done = 0;
    while (done < to.size()) {
      ssize_t const count = uninterrupted(
          [&] { return ::pread(number_, to.data() + done, to.size() - done, off_t(at + done)); });
      if (count < 0) return -1;
      if (count == 0) break;
      done += std::size_t(count);
    }
    return std::int64_t(done);
  }

  /// Writes all bytes at the current position. Returns whether that succeeded; errno has the
  /// reason. After a failure some of the bytes may have been written.
  [[gnu::cold]] bool write(std::span<std::byte const> from) const {
    while (!from.empty()) {
      ssize_t const count =
          uninterrupted([&] { return ::write(number_, from.data(), from.size()); });
      if (count < 0) return false;
      from = from.subspan(std::size_t(count));
    }
    return true;
  }

  /// Lets the system begin to write `count` bytes from `begin` on to the disk, if it has a call for
  /// that. sync() reports failures.
  [[gnu::cold]] void begin_sync([[maybe_unused]] std::uint64_t begin,
                                [[maybe_unused]] std::uint64_t count) const {
#ifdef SYNC_FILE_RANGE_WRITE
    ::sync_file_range(number_, off_t(begin), off_t(count), SYNC_FILE_RANGE_WRITE);
#endif
  }
  /// Waits until all written bytes are on disk. Returns whether that succeeded.
  [[gnu::cold]] bool sync() const {
    return uninterrupted([&] { return ::fsync(number_); }) == 0;
  }
  /// Cuts or extends the file to `bytes`. Returns whether that succeeded.
  [[gnu::cold]] bool resize(std::uint64_t bytes) const {
    return uninterrupted([&] { return ::ftruncate(number_, off_t(bytes)); }) == 0;
  }
  /// Takes the file's lock (flock) until all copies of the descriptor are closed, without waiting.
  /// Returns whether that succeeded; otherwise errno is EWOULDBLOCK if another open file has it,
  /// and another reason where there are no locks.
  [[gnu::cold]] bool lock() const {
    return uninterrupted([&] { return ::flock(number_, LOCK_EX | LOCK_NB); }) == 0;
  }

  /// Reports write errors that only close() reports (on network file systems). Closes a duplicate,
  /// so that locks stay.
  [[gnu::cold]] bool flush() const {
    int const copy = ::dup(number_);
    return copy < 0 || ::close(copy) == 0 || errno == EINTR;  // EINTR: the duplicate is closed, too
  }

 private:
  int number_ = -1;
};

}  // namespace pp::detail
