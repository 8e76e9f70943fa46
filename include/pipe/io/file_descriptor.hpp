// SPDX-License-Identifier: BSL-1.0
//
// An open file of the operating system, for operations that the standard library does not have:
// syncing bytes to disk before a rename, truncating a half-written record, and the reason of a
// failure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <utility>

#include <sys/stat.h>

#include <pipe/base/config.hpp>
#include <pipe/base/error.hpp>
#include <pipe/base/joined_text.hpp>

namespace pp::detail {

/// Throws file_error: "cannot WHAT 'PATH': REASON", with the reason of the last system call
/// (errno).
[[noreturn, gnu::cold]] void throw_file_error(char const* what, std::string const& path);

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
  [[gnu::cold]] file_descriptor(std::string const& path, int flags, mode_t mode = 0666);
  file_descriptor(file_descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  /// Exchanges the descriptors: the destructor of `other` closes the descriptor that this object
  /// had.
  file_descriptor& operator=(file_descriptor&& other) noexcept;
  [[gnu::cold]] ~file_descriptor();

  bool is_open() const { return number_ >= 0; }
  int number() const { return number_; }

  /// Reads from byte `at` on. Returns the number of bytes, less than to.size() only at the end of
  /// the file; -1 on failure.
  ///
  /// needs: a file with positions, not a pipe
  /// law: the current position, at which write() writes, does not change
  [[gnu::cold]] std::int64_t read(std::uint64_t at, std::span<std::byte> to) const;

  /// Writes all bytes at the current position. Returns whether that succeeded; errno has the
  /// reason. After a failure some of the bytes may have been written.
  [[gnu::cold]] bool write(std::span<std::byte const> from) const;

  /// Lets the system begin to write `count` bytes from `begin` on to the disk, if it has a call for
  /// that. sync() reports failures.
  [[gnu::cold]] void begin_sync([[maybe_unused]] std::uint64_t begin,
                                [[maybe_unused]] std::uint64_t count) const;
  /// Waits until all written bytes are on disk. Returns whether that succeeded.
  [[gnu::cold]] bool sync() const;
  /// Cuts or extends the file to `bytes`. Returns whether that succeeded.
  [[gnu::cold]] bool resize(std::uint64_t bytes) const;
  /// Takes the file's lock (flock) until all copies of the descriptor are closed, without waiting.
  /// Returns whether that succeeded; otherwise errno is EWOULDBLOCK if another open file has it,
  /// and another reason where there are no locks.
  [[gnu::cold]] bool lock() const;

  /// Reports write errors that only close() reports (on network file systems). Closes a duplicate,
  /// so that locks stay.
  [[gnu::cold]] bool flush() const;

 private:
  int number_ = -1;
};

}  // namespace pp::detail
#ifdef PIPE_DEFINED
#include <pipe/io/file_descriptor.inl>
#endif
