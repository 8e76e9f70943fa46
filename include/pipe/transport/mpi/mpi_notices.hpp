// SPDX-License-Identifier: BSL-1.0
//
// Notices that a process has ended a trainer, beside the trainer's data. A process in the middle of
// a run then knows that the run cannot end.
#pragma once

#include <climits>
#include <mutex>
#include <utility>

#include <mpi.h>

#include <pipe/base/heap_array.hpp>
#include <pipe/base/sentence.hpp>
#include <pipe/base/thread.hpp>
#include <pipe/transport/mpi/mpi_world.hpp>

namespace pp::detail {

/// One trainer's notices: every process sends one to every other, with the number of its runs.
///
/// law: a process receives a notice within some polls of any of its waits
class mpi_notices {
 public:
  explicit mpi_notices(mpi_world& world) : world_(world), sends_(world.processes() - 1) {}
  mpi_notices(mpi_notices const&) = delete;
  mpi_notices& operator=(mpi_notices const&) = delete;

  /// On the trainer's communicator, with a tag of their own.
  ///
  /// needs: MPI's lock
  [[gnu::cold]] void begin(MPI_Comm on, int tag) {
    on_ = on;
    tag_ = tag;
    if (sends_.size() > 0) expect();
  }
  /// Looks for notices, from begin() on. runs: the number that this process has begun.
  ///
  /// needs: MPI's lock
  void hear(long runs) {
    for (int is_here = 0; on_ != MPI_COMM_NULL && heard_ < sends_.size();) {
      MPI_Test(&receive_, &is_here, MPI_STATUS_IGNORE);
      if (is_here == 0) break;
      ++heard_;
      if (in_.runs < ended_.runs) ended_ = in_;
      if (heard_ < sends_.size()) expect();
    }
    if (runs > ended_.runs)
      world_.watch().know(sentence({"process ", ended_.process,
                                    " has ended its trainer, which this one still runs"})
                              .begin());
  }
  /// Tells the others that this process has no further run, once.
  [[gnu::cold]] void tell_end(long runs) {
    std::lock_guard const lock(world_.calls());
    if (std::exchange(is_told_, true)) return;
    out_ = {world_.process(), runs};
    for (int p = 0, i = 0; p < world_.processes(); ++p)
      if (p != world_.process())
        MPI_Isend(&out_, sizeof(out_), MPI_BYTE, p, tag_, on_, &sends_[i++]);
  }
  /// Calls tell_end(), and waits for the notices of all other processes. Returns whether all have
  /// come, and no process has failed.
  [[gnu::cold]] bool part(long runs) {
    int is_over = 0;
    MPI_Finalized(&is_over);
    if (is_over != 0 || world_.has_failed()) return false;
    mpi_watch::doing const ends(world_.watch(), {"ending a trainer"});
    tell_end(runs);
    for (int is_sent = 0; heard_ < sends_.size() || is_sent == 0; sleep_for(50'000)) {
      std::lock_guard const lock(world_.calls());
      if (world_.has_failed()) return false;
      hear(0);
      MPI_Testall(int(sends_.size()), sends_.begin(), &is_sent, MPI_STATUSES_IGNORE);
    }
    return true;
  }

 private:
  /// runs: the number that the process has made in all.
  struct notice {
    int process = 0;
    long runs = LONG_MAX;
  };

  /// Receives the next notice, of any process.
  void expect() { MPI_Irecv(&in_, sizeof(in_), MPI_BYTE, MPI_ANY_SOURCE, tag_, on_, &receive_); }

  mpi_world& world_;
  MPI_Comm on_ = MPI_COMM_NULL;
  int tag_ = 0;
  MPI_Request receive_ = MPI_REQUEST_NULL;
  heap_array<MPI_Request> sends_;
  notice in_, out_, ended_;  // ended_: of the process with the fewest runs
  long heard_ = 0;
  bool is_told_ = false;
};

}  // namespace pp::detail
