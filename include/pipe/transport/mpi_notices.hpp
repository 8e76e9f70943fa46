// SPDX-License-Identifier: BSL-1.0
//
// Notices between the processes of a pipeline, beside its data: that one has failed, and why; or
// that one has ended its trainer. MPI itself tells of neither.
#pragma once

#include <atomic>
#include <climits>
#include <cstring>
#include <mutex>
#include <string>
#include <string_view>

#include <mpi.h>

#include <pipe/base/heap_array.hpp>
#include <pipe/base/sentence.hpp>
#include <pipe/base/thread.hpp>
#include <pipe/transport/mpi_world.hpp>
#include <pipe/transport/transport.hpp>

namespace pp::detail {

/// A communicator of its own, on which every process sends one last notice to every other: that it
/// has failed, with a text, or that it has ended its trainer, with the number of its runs.
///
/// law: a process hears of a failure within one poll of any of its waits
class mpi_notices {
 public:
  [[gnu::cold]] explicit mpi_notices(mpi_world& world)
      : world_(world), sends_(world.processes() - 1) {
    if (alone()) return;
    std::lock_guard const lock(world_.calls());
    MPI_Comm_dup(MPI_COMM_WORLD, &on_);
    expect();
  }
  mpi_notices(mpi_notices const&) = delete;
  mpi_notices& operator=(mpi_notices const&) = delete;

  bool has_failed() const { return has_failed_.load(std::memory_order_acquire); }
  /// Why; empty if no process has failed.
  [[gnu::cold]] std::string failure() const {
    std::lock_guard const lock(text_mutex_);
    return text_;
  }

  /// Looks for notices. `runs`: as many as this process has begun.
  ///
  /// needs: MPI's lock
  void hear(long runs) {
    for (int is_here = 0; !alone() && !has_failed();) {
      MPI_Test(&receive_, &is_here, MPI_STATUS_IGNORE);
      if (is_here == 0) break;
      ++heard_;
      if (in_.runs < 0) return fail(in_.text);
      if (in_.runs < ended_runs_) ended_runs_ = in_.runs, ended_ = in_.process;
      if (heard_ < world_.processes() - 1)
        expect();
      else
        break;
    }
    if (runs > ended_runs_)
      fail(sentence({"process ", ended_, " has ended its trainer, which this one still runs"})
               .begin());
  }
  /// Tells all other processes of a failure in this one, unless they know of one.
  [[gnu::cold]] void announce(std::string_view text, process_place const& place) {
    if (alone() || has_failed()) return;
    auto const all = sentence({"process ", world_.process(), " (ranks ", place.first_rank, " to ",
                               place.first_rank + place.ranks - 1, "): ", text});
    std::lock_guard const lock(world_.calls());
    if (has_failed()) return;
    fail(all.begin());
    tell(-1);
  }
  /// Ends the notices: this process has no further run. Waits until the others say so, too. Returns
  /// whether all did, and none had failed.
  [[gnu::cold]] bool part(long runs) {
    int is_over = 0;
    MPI_Finalized(&is_over);
    if (is_over != 0 || has_failed()) return false;
    if (alone()) return true;
    {
      std::lock_guard const lock(world_.calls());
      tell(runs);
    }
    for (int is_sent = 0; heard_ < world_.processes() - 1 || is_sent == 0;) {
      {
        std::lock_guard const lock(world_.calls());
        hear(0);
        MPI_Testall(int(sends_.size()), sends_.begin(), &is_sent, MPI_STATUSES_IGNORE);
      }
      if (has_failed()) return false;
      sleep_for(50'000);
    }
    std::lock_guard const lock(world_.calls());
    MPI_Comm_free(&on_);
    return true;
  }

 private:
  /// Short enough that MPI sends it without its receiver's help.
  struct notice {
    int process = 0;
    long runs = 0;  // that the process has completed; -1: it has failed
    char text[1000]{};
  };

  /// Without other processes there is no communicator.
  bool alone() const { return world_.processes() == 1; }
  /// Receives the next notice, of any process.
  void expect() { MPI_Irecv(&in_, sizeof(in_), MPI_BYTE, MPI_ANY_SOURCE, 0, on_, &receive_); }
  /// The first text stays. This process then ends by MPI_Abort.
  [[gnu::cold]] void fail(char const* text) {
    {
      std::lock_guard const lock(text_mutex_);
      if (text_.empty()) text_ = text;
    }
    world_.give_up();
    has_failed_.store(true, std::memory_order_release);
  }
  /// Sends the notice to all others, without waiting for them.
  void tell(long runs) {
    out_.process = world_.process();
    out_.runs = runs;
    std::strncpy(out_.text, text_.c_str(), sizeof(out_.text) - 1);
    for (int p = 0, i = 0; p < world_.processes(); ++p)
      if (p != world_.process()) MPI_Isend(&out_, sizeof(out_), MPI_BYTE, p, 0, on_, &sends_[i++]);
  }

  mpi_world& world_;
  MPI_Comm on_ = MPI_COMM_NULL;
  MPI_Request receive_ = MPI_REQUEST_NULL;
  heap_array<MPI_Request> sends_;
  notice in_, out_;
  int heard_ = 0;
  long ended_runs_ = LONG_MAX;  // of the process that ended first, `ended_`
  int ended_ = 0;
  std::atomic<bool> has_failed_{false};
  mutable std::mutex text_mutex_;
  std::string text_;
};

}  // namespace pp::detail
