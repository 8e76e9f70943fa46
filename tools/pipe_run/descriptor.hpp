// SPDX-License-Identifier: BSL-1.0
//
// A descriptor of the operating system with an owner, and a pipe of two of them.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

#include <pipe/base/uninterrupted.hpp>

namespace launcher {

/// A fault of the launcher itself, such as a limit of the system.
struct fault : std::runtime_error {
  using std::runtime_error::runtime_error;
};
/// Throws a fault: "cannot WHAT: REASON", with the reason of the last system call (errno).
[[noreturn]] inline void throw_fault(char const* what) {
  int const reason = errno;
  throw fault(std::string("cannot ") + what + ": " + std::strerror(reason));
}

class descriptor {
 public:
  explicit descriptor(int number = -1) : number_(number) {}
  descriptor(descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  descriptor& operator=(descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~descriptor() { close(); }

  bool is_open() const { return number_ >= 0; }
  int number() const { return number_; }
  void close() {
    if (is_open()) ::close(std::exchange(number_, -1));
  }

 private:
  int number_;
};

/// Writes all of a text, unless its reader is gone. Returns whether it has.
inline bool write_all(int to, std::string_view text) {
  while (!text.empty()) {
    ssize_t const n =
        pp::detail::uninterrupted([&] { return write(to, text.data(), text.size()); });
    if (n < 0) return false;
    text.remove_prefix(std::size_t(n));
  }
  return true;
}
/// Reads exactly so many bytes. Returns whether they have come.
inline bool read_all(int from, void* to, std::size_t bytes) {
  for (std::size_t done = 0; done < bytes;) {
    ssize_t const n = pp::detail::uninterrupted(
        [&] { return read(from, static_cast<char*>(to) + done, bytes - done); });
    if (n <= 0) return false;
    done += std::size_t(n);
  }
  return true;
}

/// A pipe; programs that are started inherit neither end.
struct channel {
  descriptor reads, writes;

  /// throws: fault
  static channel open() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) throw_fault("make a pipe");
    return {descriptor(ends[0]), descriptor(ends[1])};
  }
};

}  // namespace launcher
