// SPDX-License-Identifier: BSL-1.0
//
// The output of a process, line by line behind its rank: lines of several processes are never
// mixed.
#pragma once

#include <cerrno>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

#include "descriptor.hpp"

namespace launcher {

/// One output of one process: copies what it reads, in whole lines, each with a prefix.
class prefixed_lines {
 public:
  static constexpr std::size_t longest = 65536;  ///< a longer line is broken

  prefixed_lines(descriptor from, int to, std::string prefix)
      : from_(std::move(from)), to_(to), prefix_(std::move(prefix)) {
    fcntl(from_.number(), F_SETFL, O_NONBLOCK);
  }

  bool is_open() const { return from_.is_open(); }
  int number() const { return from_.number(); }
  /// Copies what there is, without waiting for more.
  void copy() {
    char bytes[4096];
    while (from_.is_open()) {
      ssize_t const n = read(from_.number(), bytes, sizeof(bytes));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0 && errno == EAGAIN) return;
      if (n <= 0) return close();
      rest_.append(bytes, std::size_t(n));
      write_lines();
    }
  }
  /// The end of the output; a last line without an end gets one.
  void close() {
    from_.close();
    if (!rest_.empty()) rest_ += '\n';
    write_lines();
  }

 private:
  void write_lines() {
    std::string text;
    std::size_t done = 0;
    for (std::size_t end = 0; (end = rest_.find('\n', done)) != std::string::npos; done = end + 1)
      text.append(prefix_).append(rest_, done, end + 1 - done);
    rest_.erase(0, done);
    if (rest_.size() >= longest) text.append(prefix_).append(std::exchange(rest_, {})) += '\n';
    write_all(to_, text);
  }

  descriptor from_;
  int to_;
  std::string prefix_, rest_;
};

}  // namespace launcher
