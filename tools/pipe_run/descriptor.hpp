// SPDX-License-Identifier: BSL-1.0
//
// A descriptor of the operating system with an owner, and a pipe of two of them.
#pragma once

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

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
