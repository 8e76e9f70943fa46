// SPDX-License-Identifier: BSL-1.0
//
// Processes that are forked from a test, and meet by sockets.
#pragma once

#include <arpa/inet.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <pipe/transport/tcp/tcp_world.hpp>

namespace processes {

/// A new socket that is bound to an address; -1 if the address is in use.
inline int bound(void const* address, std::size_t size) {
  auto* const at = static_cast<sockaddr const*>(address);
  int const s = socket(at->sa_family, SOCK_STREAM, 0);
  if (bind(s, at, socklen_t(size)) == 0) return s;
  close(s);
  return -1;
}

/// A port of loopback on which nothing listens, and which Linux gives to no outgoing connection.
/// No other call gives it, nor free_port of tests/tcp/job.py, until this process and those that it
/// has forked have ended: a socket with the port in its name, which is in no folder, reserves it.
inline int free_port() {
  constexpr int first = 20000, count = 12000;
  for (int i = 0, start = getpid(); i < count; ++i) {
    int const port = first + (start + i) % count;
    sockaddr_un name{};
    name.sun_family = AF_UNIX;
    int const length = std::snprintf(name.sun_path + 1, 32, "pipe-test-port-%d", port);
    int const reservation = bound(&name, offsetof(sockaddr_un, sun_path) + 1 + std::size_t(length));
    if (reservation < 0) continue;
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    at.sin_port = htons(std::uint16_t(port));
    if (int const s = bound(&at, sizeof(at)); s >= 0) {
      close(s);
      return port;
    }
    close(reservation);
  }
  return 0;
}

/// Runs body(process, port) in n processes, with a port that is free for them. Returns what each
/// has said: what body returns, or the text of the error that it throws; "ended by signal 9".
template <class Body>
std::vector<std::string> fork_all(int n, Body const& body) {
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
        said = body(p, port);
      } catch (pp::rank_error const& e) {
        said = std::string("rank_error: ") + e.what();
      } catch (pp::error const& e) {
        said = std::string("error: ") + e.what();
      }
      [[maybe_unused]] auto const written = write(ends[1], said.data(), said.size());
      std::exit(0);  // which ends the world of the process
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

/// Runs body(world) in n processes, as fork_all does.
template <class Body>
std::vector<std::string> run(int n, Body const& body) {
  return fork_all(n, [&](int process, int port) -> std::string {
    pp::detail::tcp_start start;
    start.process = process, start.processes = n;
    start.at.port = port;
    pp::detail::tcp_world world(start);
    return body(world);
  });
}

/// Runs body() in n processes, each with the variables of a launcher that starts one for each
/// device of a machine.
template <class Body>
std::vector<std::string> launch(int n, Body const& body) {
  return fork_all(n, [&](int process, int port) -> std::string {
    auto const set = [](char const* name, int value) {
      setenv(name, std::to_string(value).c_str(), 1);
    };
    set("RANK", process), set("WORLD_SIZE", n);
    set("LOCAL_RANK", process), set("LOCAL_WORLD_SIZE", n);
    setenv("MASTER_ADDR", "127.0.0.1", 1), set("MASTER_PORT", port);
    return body();
  });
}

}  // namespace processes
