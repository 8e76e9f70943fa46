// SPDX-License-Identifier: BSL-1.0
//
// Serves a page, whose address is the first line of the output, until the input ends.
#include <cstdio>

#include <sys/syscall.h>
#include <unistd.h>

#include <pipe/base/uninterrupted.hpp>
#include <pipe/report/page_server.hpp>

int main() {
  auto const answer = [](std::string_view) {
    return pp::detail::page_answer{std::string(100'000, 'x')};
  };
  pp::detail::page_server const server(pp::page_address{}, answer);
  std::printf("%s\n", server.url().c_str());
  std::fflush(stdout);
  ::syscall(SYS_getsid, 0);  // from here on, calls of the system are struck at
  char one;
  while (pp::detail::uninterrupted([&] { return ::read(STDIN_FILENO, &one, 1); }) > 0) continue;
}
