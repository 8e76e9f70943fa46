// SPDX-License-Identifier: BSL-1.0
//
// A connection between every two processes of a job, for data. Each process listens, where process
// 0 can reach it, for the processes with greater numbers. These learn from process 0 the address,
// and a number that the listening process has drawn for them.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>

#include <pipe/base/error.hpp>
#include <pipe/base/heap_array.hpp>
#include <pipe/transport/tcp/tcp_guest.hpp>
#include <pipe/transport/tcp/tcp_host.hpp>
#include <pipe/transport/tcp/tcp_world.hpp>

namespace pp::detail {

/// The address at which a process listens, and the number that it demands.
struct tcp_entrance {
  static constexpr int longest = 64;
  char address[longest]{};  ///< a number, with a zero at the end
  std::int32_t port = 0, unused = 0;
  std::uint64_t number = 0;

  /// Whether a process of the job can have sent it: an address by number, and a port.
  [[gnu::cold]] bool is_possible() const {
    return address[0] != 0 && address[longest - 1] == 0 && port >= 1 && port <= 65535 &&
           number != 0 && tcp_address::of_number(address, port).size() > 0;
  }
};
static_assert(sizeof(tcp_entrance) == 80);

/// In all processes, as an operation of the world.
///
/// law: only a process with the job's token, and the number that process 0 passes on, is let in
/// law: no name is looked up: process 0 passes on addresses by number
/// throws: as the constructor of tcp_world; error if an entrance is none
[[gnu::cold]] inline heap_array<tcp_socket> connect_all(tcp_world& world) {
  int const n = world.processes(), me = world.process();
  heap_array<tcp_socket> all(n);
  if (n == 1) return all;
  auto const connects = world.during({"connecting to the other processes"});
  tcp_start start = world.start();
  start.channels = 1;
  start.is_of_user = false;
  start.watch = &world.watch();

  std::string const address = world.own_address();
  start.host = me;
  start.at = {address.c_str(), 0};
  tcp_entrance mine;
  while (mine.number == 0) draw_random(mine.number);
  start.plan = mine.number;
  tcp_host host(start);
  address.copy(mine.address, sizeof(mine.address) - 1);
  mine.port = host.port();
  heap_array<tcp_entrance> entrances(n);
  world.gather(reinterpret_cast<char const*>(&mine), sizeof(mine),
               reinterpret_cast<char*>(entrances.begin()));
  for (int p = 0; p < n; ++p)
    if (!entrances[p].is_possible()) world.refuse(p, "an entrance that is none");

  // Process 1 joins 0; then 2 joins 0 and 1; and so on: no two processes wait for each other. All
  // joins together have the time of one start, which begins when all processes are here.
  time_limit const limit(start.deadline);
  for (int p = 0; p < me; ++p) {
    start.host = p;
    start.at = {entrances[p].address, entrances[p].port};
    start.plan = entrances[p].number;
    start.deadline = std::chrono::milliseconds(limit.left(1 << 30));
    all[p] = std::move(tcp_guest(start).meet().of[0][p]);
  }
  tcp_connections joined = host.meet(limit);
  for (int p = me + 1; p < n; ++p) all[p] = std::move(joined.of[0][p]);
  return all;
}

}  // namespace pp::detail
