// SPDX-License-Identifier: BSL-1.0
//
// Pipelines over several processes by sockets: an option for programs that torchrun starts, srun,
// or any launcher that sets RANK and WORLD_SIZE, without MPI. Not part of <pipe/pipe.hpp>.
#pragma once
#ifndef PIPE_SHOWS_WARNINGS
#pragma GCC system_header
#endif

#include <chrono>

#include <pipe/runtime/host/replicas/replicas.hpp>
#include <pipe/transport/tcp/tcp.hpp>

namespace pp {

/// Ranks live in the processes that a launcher has started, in each one or several of them: as with
/// Mpi, but the processes talk by sockets. Process 0 listens at MASTER_ADDR, which is loopback
/// unless it is set, and MASTER_PORT.
///
/// law: the bits are those of one process
struct Tcp {
  using transport = detail::tcp;

  /// The number of this process, and how many there are: 0 of 1 without a launcher.
  static int process() { return detail::tcp_world::of_process().process(); }
  static int processes() { return detail::tcp_world::of_process().processes(); }

  /// The time without a sign of life after which another process is lost, for all trainers: 5 s;
  /// 0: without limit, for a debugger that stops one of them.
  static void patience(std::chrono::milliseconds time) {
    detail::tcp_world::of_process().watch().patience_ms = long(time.count());
  }
};

}  // namespace pp
