// SPDX-License-Identifier: BSL-1.0
//
// Messages between processes by MPI, as process_transport needs them.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>

#include <mpi.h>

#include <pipe/base/config.hpp>
#include <pipe/base/error.hpp>
#include <pipe/base/heap_array.hpp>
#include <pipe/base/sentence.hpp>
#include <pipe/transport/mpi/mpi_message.hpp>
#include <pipe/transport/mpi/mpi_notices.hpp>
#include <pipe/transport/mpi/mpi_world.hpp>
#include <pipe/transport/process/process_transport.hpp>

PIPE_OPTIMIZED_BEGIN
namespace pp::detail {

/// Messages of one trainer, on a communicator of its own.
class mpi_messages {
 public:
  using request = MPI_Request;
  static constexpr char const* launcher = "MPI";
  static mpi_world& world() { return mpi_world::get(); }
  std::mutex& calls() { return world_.calls(); }

  /// In all processes, before any other call; without the lock. tags: the number of tags in use.
  ///
  /// throws: error if MPI has too few tags; as wait
  template <class Wait>
  [[gnu::cold]] void begin(long tags, int ranks, Wait const& wait) {
    // On the heap, as MPI may write it after a failure.
    MPI_Comm& all = *new MPI_Comm(MPI_COMM_NULL);
    whole([&](MPI_Request* r) { MPI_Comm_idup(MPI_COMM_WORLD, &all, r); }, wait);
    all_ = all;
    std::lock_guard const lock(calls());
    int *most = nullptr, is_set = 0;
    MPI_Comm_get_attr(all_, MPI_TAG_UB, &most, &is_set);
    if (is_set != 0 && tags > *most)
      throw_error<error>({"MPI has tags up to ", *most, ", too few for ", ranks, " ranks"});
    notices_.begin(all_, int(tags));
  }
  /// See mpi_notices::part; without the lock.
  [[gnu::cold]] bool part(long runs) { return notices_.part(runs); }
  [[gnu::cold]] void tell_end(long runs) { notices_.tell_end(runs); }
  [[gnu::cold]] void end() { MPI_Comm_free(&all_); }
  void hear(long runs) { notices_.hear(runs); }

  // ---- messages: between two processes the messages of a tag arrive in order ----

  /// Persistent requests, which start() starts any number of times, and free() frees.
  void prepare_send(request& r, int to, int tag, char const* data, long bytes) {
    mpi_message const message(bytes);
    MPI_Send_init(data, message.number, message.type, to, tag, all_, &r);
  }
  /// may_be_less: of a message with fewer bytes, too, as MPI receives any such message
  void prepare_receive(request& r, int from, int tag, char* data, long bytes, bool = false) {
    mpi_message const message(bytes);
    MPI_Recv_init(data, message.number, message.type, from, tag, all_, &r);
  }
  void start(request& r) { MPI_Start(&r); }
  [[gnu::cold]] void free(request& r) { MPI_Request_free(&r); }
  /// Requests for one message, which are free when they are complete.
  void send(request& r, int to, int tag, char const* data, long bytes) {
    mpi_message const message(bytes);
    MPI_Isend(data, message.number, message.type, to, tag, all_, &r);
  }
  void receive(request& r, int from, int tag, char* data, long bytes) {
    mpi_message const message(bytes);
    MPI_Irecv(data, message.number, message.type, from, tag, all_, &r);
  }
  bool are_complete(request* r, int count) {
    int are_done = 0;
    if (count == 1)
      MPI_Test(r, &are_done, MPI_STATUS_IGNORE);
    else
      MPI_Testall(count, r, &are_done, MPI_STATUSES_IGNORE);
    return are_done != 0;
  }
  void start_barrier() { MPI_Ibarrier(all_, &barrier_); }
  bool has_passed_barrier() { return are_complete(&barrier_, 1); }

  // ---- operations of all processes, without the lock ----
  // throws: as wait, by which they wait for a request

  /// Compares a number of the plan with those of the other processes.
  ///
  /// throws: error if another process has another plan
  template <class Wait>
  [[gnu::cold]] void agree(std::uint64_t plan, Wait const& wait) {
    plan_ = plan;
    plans_ = heap_array<std::uint64_t>(world_.processes());
    whole(
        [&](MPI_Request* r) {
          MPI_Iallgather(&plan_, 1, MPI_UINT64_T, plans_.begin(), 1, MPI_UINT64_T, all_, r);
        },
        wait);
    for (int p = 0; p < world_.processes(); ++p)
      if (plans_[p] != plan) world_.watch().refuse_plan(p);
  }
  template <class Wait>
  void broadcast(int from, char* data, long bytes, Wait const& wait) {
    whole(
        [&](MPI_Request* r) {
          mpi_message const message(bytes);
          MPI_Ibcast(data, message.number, message.type, from, all_, r);
        },
        wait);
  }
  template <class Wait>
  long least(long here, Wait const& wait) {
    least_ = here;
    whole(
        [&](MPI_Request* r) {
          MPI_Iallreduce(MPI_IN_PLACE, &least_, 1, MPI_LONG, MPI_MIN, all_, r);
        },
        wait);
    return least_;
  }

 private:
  template <class Start, class Wait>
  void whole(Start const& start, Wait const& wait) {
    MPI_Request r = MPI_REQUEST_NULL;
    {
      std::lock_guard const lock(calls());
      start(&r);
    }
    wait(r);
  }

  mpi_world& world_ = mpi_world::get();
  mpi_notices notices_{world_};
  MPI_Comm all_ = MPI_COMM_NULL;
  MPI_Request barrier_ = MPI_REQUEST_NULL;
  // Of agree() and least().
  heap_array<std::uint64_t> plans_;
  std::uint64_t plan_ = 0;
  long least_ = 0;
};

using mpi = process_transport<mpi_messages>;
static_assert(replica_transport<mpi>);

}  // namespace pp::detail
PIPE_OPTIMIZED_END
