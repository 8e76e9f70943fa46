// SPDX-License-Identifier: BSL-1.0
//
// Pipelines over several processes by MPI: an option for programs that mpirun or srun starts. The
// only header that needs <mpi.h>; not part of <pipe/pipe.hpp>.
#pragma once
#ifndef PIPE_SHOWS_WARNINGS
#pragma GCC system_header
#endif

#if !__has_include(<mpi.h>)
#error "pipe/mpi.hpp needs <mpi.h>: compile with mpicxx (Debian: libopenmpi-dev)"
#include <nothing after the error above is compiled>  // a file that is missing ends the compilation
#endif

#include <mpi.h>

#include <pipe/runtime/host/replicas/replicas.hpp>
#include <pipe/transport/mpi/mpi.hpp>

namespace pp {

/// Ranks live in the processes that MPI has started, in each one or several of them, which are its
/// threads. The program is the same in all: each constructs the same trainers and makes the same
/// calls on them in the same order, with the same mini-batches, of which its ranks read their part.
/// Losses, norms and outputs are in all of them; parameters() and its memory are those of a
/// process's own ranks.
///
/// law: the bits are those of one process
struct Mpi {
  using transport = detail::mpi;

  /// The number of this process, and how many there are: 0 of 1 without mpirun.
  static int process() { return detail::mpi_world::get().process(); }
  static int processes() { return detail::mpi_world::get().processes(); }

  /// The time without a sign of life after which another process is lost, for all trainers: 5 s;
  /// 0: without limit, for a debugger that stops one of them.
  static void patience(std::chrono::milliseconds time) {
    detail::mpi_world::get().watch().patience_ms = long(time.count());
  }
};

}  // namespace pp
