// SPDX-License-Identifier: BSL-1.0
//
// An open file of the operating system, for what the standard library cannot do: see that bytes are
// on the disk before a file gets its name, take back a half-written record, and say why something
// failed.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <pipe/base/error.hpp>

namespace pp::detail {

/// "cannot WHAT 'PATH': REASON", the reason being that of the last call of the system.
[[noreturn]] inline void throw_file_error(char const* what, std::string const& path) {
  int const reason = errno;
  throw file_error(std::string("cannot ") + what + " '" + path + "': " + std::strerror(reason));
}

/// Owns a descriptor; closes it at the end. Transfers go on after interruptions until all bytes are
/// through.
class file_descriptor {
 public:
  file_descriptor() = default;
  /// Holds no file if the file cannot be opened: errno says why.
  file_descriptor(std::string const& path, int flags, mode_t mode = 0666) {
    do number_ = ::open(path.c_str(), flags | O_CLOEXEC, mode);
    while (number_ < 0 && errno == EINTR);
  }
  file_descriptor(file_descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  file_descriptor& operator=(file_descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~file_descriptor() {
    if (number_ >= 0) ::close(number_);
  }

  bool is_open() const { return number_ >= 0; }
  int number() const { return number_; }

  /// Bytes read from `at` on: fewer than to.size() only at the end of the file; -1 if that fails.
  std::int64_t read(std::uint64_t at, std::span<std::byte> to) const {
    std::size_t done = 0;
    while (done < to.size()) {
      ssize_t const count = ::pread(number_, to.data() + done, to.size() - done, off_t(at + done));
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return -1;
      if (count == 0) break;
      done += std::size_t(count);
    }
    return std::int64_t(done);
  }

  bool write(std::span<std::byte const> from) const {
    while (!from.empty()) {
      ssize_t const count = ::write(number_, from.data(), from.size());
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return false;
      from = from.subspan(std::size_t(count));
    }
    return true;
  }

  bool sync() const {
    int result = 0;
    do result = ::fsync(number_);
    while (result != 0 && errno == EINTR);
    return result == 0;
  }

  /// Closing may be the first to tell that a write failed (on a network's file system): closes a
  /// copy, so that locks stay.
  bool flush() const {
    int const copy = ::dup(number_);
    return copy < 0 || ::close(copy) == 0;
  }

 private:
  int number_ = -1;
};

}  // namespace pp::detail
