// SPDX-License-Identifier: BSL-1.0
//
// A connection between every two processes of a job, for data. Each process listens, where process
// 0 can reach it, for those with greater numbers, which learn its address and a number drawn for
// them from process 0.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>

#include <sys/random.h>

#include <pipe/base/error.hpp>
#include <pipe/base/heap_array.hpp>
#include <pipe/transport/tcp_guest.hpp>
#include <pipe/transport/tcp_host.hpp>
#include <pipe/transport/tcp_world.hpp>

namespace pp::detail {

/// In all processes, as an operation of the world.
///
/// law: only who has the number that process 0 passes on is let in
/// throws: as the constructor of tcp_world
[[gnu::cold]] inline heap_array<tcp_socket> connect_all(tcp_world& world) {
  // Where a process listens, and the number that opens it.
  struct entrance {
    char address[64]{};
    std::int32_t port = 0, unused = 0;
    std::uint64_t number = 0;
  };
  int const n = world.processes(), me = world.process();
  heap_array<tcp_socket> all(n);
  if (n == 1) return all;
  auto const connects = world.during({"connecting to the other processes"});
  tcp_start start = world.start();
  start.channels = 1;

  std::string const address = world.own_address();
  start.host = me;
  start.at = {address.c_str(), 0};
  entrance mine;
  if (getrandom(&mine.number, sizeof(mine.number), 0) != sizeof(mine.number) || mine.number == 0)
    throw error("the system has no random numbers to give");
  start.plan = mine.number;
  tcp_host host(start);
  address.copy(mine.address, sizeof(mine.address) - 1);
  mine.port = host.port();
  heap_array<entrance> entrances(n);
  world.gather(reinterpret_cast<char const*>(&mine), sizeof(mine),
               reinterpret_cast<char*>(entrances.begin()));

  // Process 1 joins 0; then 2 joins 0 and 1; and so on: none waits for one with a greater number
  // that waits for it.
  for (int p = 0; p < me; ++p) {
    start.host = p;
    start.at = {entrances[p].address, entrances[p].port};
    start.plan = entrances[p].number;
    all[p] = std::move(tcp_guest(start).meet().of[0][p]);
  }
  tcp_connections joined = host.meet();
  for (int p = me + 1; p < n; ++p) all[p] = std::move(joined.of[0][p]);
  return all;
}

}  // namespace pp::detail
