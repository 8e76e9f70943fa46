// SPDX-License-Identifier: BSL-1.0
//
// Processes that are forked from a test, and meet by sockets.
#pragma once

#include <arpa/inet.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <vector>

#include <pipe/transport/tcp_world.hpp>

namespace processes {

/// A port that is free now.
inline int free_port() {
  int const s = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in a{};
  a.sin_family = AF_INET;
  a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(a);
  bind(s, reinterpret_cast<sockaddr*>(&a), sizeof(a));
  getsockname(s, reinterpret_cast<sockaddr*>(&a), &size);
  close(s);
  return ntohs(a.sin_port);
}

/// Runs body(world) in n processes. Returns what each has said: what body returns, or the text of
/// the error that it throws; "ended by signal 9".
template <class Body>
std::vector<std::string> run(int n, Body const& body) {
  std::fflush(nullptr);
  int const port = free_port();
  std::vector<int> pids, outputs;
  for (int p = 0; p < n; ++p) {
    int ends[2];
    if (pipe(ends) != 0) return {};
    int const pid = fork();
    if (pid == 0) {
      alarm(60);
      std::string said;
      try {
        pp::detail::tcp_start start;
        start.process = p, start.processes = n;
        start.at.port = port;
        pp::detail::tcp_world world(start);
        said = body(world);
      } catch (pp::rank_error const& e) {
        said = std::string("rank_error: ") + e.what();
      } catch (pp::error const& e) {
        said = std::string("error: ") + e.what();
      }
      [[maybe_unused]] auto const written = write(ends[1], said.data(), said.size());
      _exit(0);
    }
    close(ends[1]);
    pids.push_back(pid), outputs.push_back(ends[0]);
  }
  std::vector<std::string> all;
  for (int p = 0; p < n; ++p) {
    std::string said;
    char bytes[4096];
    long count = 0;
    while ((count = read(outputs[std::size_t(p)], bytes, sizeof(bytes))) > 0)
      said.append(bytes, std::size_t(count));
    close(outputs[std::size_t(p)]);
    int status = 0;
    waitpid(pids[std::size_t(p)], &status, 0);
    if (WIFSIGNALED(status)) said = "ended by signal " + std::to_string(WTERMSIG(status));
    all.push_back(said);
  }
  return all;
}

}  // namespace processes
