// SPDX-License-Identifier: BSL-1.0
//
// A terminal that nobody sits at, if the system has terminals to give: a container may have no
// /dev/ptmx, or no /dev/pts.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "catch.hpp"

/// The output to a terminal of that many columns.
class pseudo_terminal {
 public:
  explicit pseudo_terminal(unsigned short columns = 80) : main_(::posix_openpt(O_RDWR | O_NOCTTY)) {
    if (main_ >= 0 && ::grantpt(main_) == 0 && ::unlockpt(main_) == 0)
      if (char const* const name = ::ptsname(main_)) file = std::fopen(name, "w");
    winsize const size{24, columns, 0, 0};
    if (file != nullptr) REQUIRE(::ioctl(main_, TIOCSWINSZ, &size) == 0);
  }
  pseudo_terminal(pseudo_terminal const&) = delete;
  pseudo_terminal& operator=(pseudo_terminal const&) = delete;
  ~pseudo_terminal() {
    if (file != nullptr) std::fclose(file);
    if (main_ >= 0) ::close(main_);
  }
  /// Whether there is none, which is said.
  bool is_missing() const {
    if (file == nullptr) WARN("skipped: there are no terminals");
    return file == nullptr;
  }
  /// What has been written, to its `end`: the system hands it on in parts. Without that end, what
  /// has come when nothing more comes for ten seconds.
  std::string read_to(std::string_view end) const {
    std::string result;
    pollfd wait{main_, POLLIN, 0};
    while (!result.ends_with(end) && ::poll(&wait, 1, 10'000) > 0) {
      char some[4096];
      long const n = ::read(main_, some, sizeof some);
      if (n <= 0) break;
      result.append(some, std::size_t(n));
    }
    return result;
  }

  std::FILE* file = nullptr;

 private:
  int main_;
};
