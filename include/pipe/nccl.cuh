// SPDX-License-Identifier: BSL-1.0
//
// Pipelines over several processes with a GPU each, by NCCL: an option for programs that torchrun,
// srun or mpirun starts. The only header that needs <nccl.h>; not part of <pipe/pipe.hpp>. Programs
// are linked with -lnccl.
#pragma once
#ifndef PIPE_SHOWS_WARNINGS
#pragma GCC system_header
#endif

#if !__has_include(<nccl.h>)
#error "pipe/nccl.cuh needs <nccl.h>, of NCCL 2.18 or newer (Debian: libnccl-dev)"
#include <nothing after the error above is compiled>  // a file that is missing ends the compilation
#endif

#include <pipe/runtime/cuda/nccl_processes.cuh>

namespace pp {

/// Ranks live in the processes that a launcher has started, in each one or several of them on one
/// GPU, that of its number on the machine (LOCAL_RANK). The program is the same in all: each
/// constructs the same trainers and makes the same calls on them in the same order, with the same
/// mini-batches, of which its ranks read their part. Losses, norms and outputs are in all of them;
/// parameters() and its memory are those of a process's own ranks. If there are several times as
/// many processes as ranks, R of them each are a replica of the pipeline (see
/// GradientAccumulation).
///
/// Kernels that stay on their multiprocessors (WgmmaProducts) leave Reserved of them to NCCL's,
/// which otherwise wait for the end of such a kernel.
///
/// law: the bits are those of one process, whatever Reserved is
template <int Reserved>
  requires(Reserved >= 0 && Reserved < 132)
struct NcclReserving {
  using transport = detail::nccl_processes;
  static constexpr int reserved_multiprocessors = Reserved;

  /// The number of this process, and how many there are: 0 of 1 without a launcher.
  static int process() { return transport::world().process(); }
  static int processes() { return transport::world().processes(); }
};

/// Leaves none.
using Nccl = NcclReserving<0>;

}  // namespace pp
