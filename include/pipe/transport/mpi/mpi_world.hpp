// SPDX-License-Identifier: BSL-1.0
//
// The processes that mpirun or srun has started, as MPI sees them. MPI is initialised at the first
// use and ends with the program. It is fail-stop: after a failure in one process, or the loss of a
// process, all end by MPI_Abort, because MPI_Finalize would wait for ever.
//
// source: MPI 3.1, chapters 8 and 12
#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string_view>
#include <utility>

#include <mpi.h>
#include <sched.h>

#include <pipe/base/error.hpp>
#include <pipe/base/heap_array.hpp>
#include <pipe/base/sentence.hpp>
#include <pipe/base/thread.hpp>
#include <pipe/transport/process/process_launch.hpp>
#include <pipe/transport/mpi/mpi_message.hpp>
#include <pipe/transport/mpi/mpi_watch.hpp>
#include <pipe/transport/running_time.hpp>

namespace pp::detail {

/// MPI's world, one object in a process.
///
/// law: calls to MPI are made while calls() is locked, and no call waits for another process. So
///      MPI_THREAD_SERIALIZED is enough, unless the program calls MPI itself beside a trainer
/// law: every wait ends with a failure in any process
class mpi_world {
 public:
  /// throws: error if MPI does not see the other processes of this launch, or was initialised with
  ///         fewer threads than SERIALIZED; rank_error if a process is lost meanwhile
  static mpi_world& get() {
    static mpi_world& world = made();
    return world;
  }
  mpi_world(mpi_world const&) = delete;
  mpi_world& operator=(mpi_world const&) = delete;

  int process() const { return process_; }
  int processes() const { return processes_; }
  /// Processes on this machine with the same cores, and the number of this process among them.
  int neighbours() const { return neighbours_; }
  int neighbour() const { return neighbour_; }

  std::mutex& calls() { return calls_; }
  mpi_watch& watch() { return watch_; }
  bool has_failed() const { return watch_.has_failed(); }

  /// Sends the bytes at `data` from a process to all others.
  ///
  /// throws: as run
  [[gnu::cold]] void broadcast(int from, char* data, long bytes) {
    if (processes_ == 1) return;
    mpi_message const message(bytes);
    heap_array<char>& copy = *new heap_array<char>(bytes);  // left to MPI after a failure
    std::memcpy(copy.begin(), data, std::size_t(bytes));
    run([&](MPI_Request* r) {
      MPI_Ibcast(copy.begin(), message.number, message.type, from, own_, r);
    });
    std::memcpy(data, copy.begin(), std::size_t(bytes));
    delete &copy;
  }
  /// Sets the deadline of the next gatherings; 0: none.
  void set_deadline(std::chrono::milliseconds deadline) { deadline_ = deadline; }
  /// The bytes of each process, in the order of their numbers.
  ///
  /// shape:  mine: [bytes] -> all: [processes, bytes]
  /// throws: as run; rank_error if another process does not come before the deadline
  [[gnu::cold]] void gather(char const* mine, long bytes, char* all) {
    // Left to MPI after a failure: the bytes to send, and behind them room for all that come.
    heap_array<char>& copy = *new heap_array<char>((processes_ + 1) * bytes);
    std::memcpy(copy.begin(), mine, std::size_t(bytes));
    run(
        [&](MPI_Request* r) {
          MPI_Iallgather(copy.begin(), int(bytes), MPI_BYTE, copy.begin() + bytes, int(bytes),
                         MPI_BYTE, own_, r);
        },
        deadline_);
    std::memcpy(all, copy.begin() + bytes, std::size_t(processes_ * bytes));
    delete &copy;
  }
  /// Tells the other processes of a failure here.
  [[gnu::cold]] void announce(std::string_view text) {
    watch_.fail(sentence({std::string_view(watch_.name_of(process_)), ": ", text}).begin());
  }
  /// Says what this process does, until the end of the scope, to processes that miss another
  /// process.
  process_watch::doing during(process_activity what) { return {watch_, what}; }

  /// An operation of all processes: start(request) begins the operation, which is polled until it
  /// is done. The memory that it writes must outlive a failure. deadline: see running_time
  ///
  /// throws: rank_error if a process has failed
  template <class Start>
  [[gnu::cold]] void run(Start const& start, std::chrono::milliseconds deadline = {}) {
    MPI_Request request = MPI_REQUEST_NULL;
    running_time waiting;
    for (int begins = 1, is_done = 0; is_done == 0; begins = 0) {
      {
        std::lock_guard const lock(calls_);
        if (has_failed()) throw rank_error(watch_.failure());
        if (begins != 0) start(&request);
        MPI_Test(&request, &is_done, MPI_STATUS_IGNORE);
      }
      if (is_done != 0) continue;
      sleep_for(50'000);
      waiting.look();
      if (!waiting.is_beyond(deadline)) continue;
      announce(sentence({"timed out after ", deadline.count() / 1000,
                         " s waiting for another process, ", std::string_view(watch_.activity())})
                   .begin());
      throw rank_error(watch_.failure());
    }
  }

 private:
  mpi_world() : watch_(calls_) {}
  /// Never destroyed: its thread, and the end of MPI, may need it after static objects are gone.
  [[gnu::cold]] static mpi_world& made() {
    mpi_world& world = *new mpi_world;  // end() is called by exit()
    world.begin();
    return world;
  }
  /// In all processes. After MPI_Init the watch begins, and then the operations with other
  /// processes.
  [[gnu::cold]] void begin() {
    process_launch const by = process_launch::from();
    int is_there = 0, level = 0;
    MPI_Initialized(&is_there);
    if (is_there != 0)
      MPI_Query_thread(&level);
    else
      MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &level);
    ends_ = is_there == 0;
    if (level < MPI_THREAD_SERIALIZED)
      throw error(
          "MPI was initialised for one thread: pipe needs MPI_THREAD_SERIALIZED, and "
          "MPI_THREAD_MULTIPLE if the program calls MPI beside a trainer");
    MPI_Comm_rank(MPI_COMM_WORLD, &process_);
    MPI_Comm_size(MPI_COMM_WORLD, &processes_);
#if defined(__GLIBC__)
    on_exit([](int status, void* self) { static_cast<mpi_world*>(self)->end(status); }, this);
#else
    std::atexit([] { get().end(0); });
#endif
    if (by.processes > 1 && processes_ == 1)
      throw_error<error>({"this is one of ", by.processes, " processes by ", by.size,
                          ", and MPI sees no other: start them by mpirun, of the MPI that the "
                          "program is built with, or by srun"});
    if (processes_ == 1) return;
    // MPI_Finalize, here or in the program, begins with the deletion of this attribute.
    int key = MPI_KEYVAL_INVALID;
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, &mpi_world::finalizes, &key, nullptr);
    MPI_Comm_set_attr(MPI_COMM_SELF, key, this);
    // A message to a dead process may be an error: the watch says more about the death than MPI.
    MPI_Errhandler of_program = MPI_ERRHANDLER_NULL;
    MPI_Comm_get_errhandler(MPI_COMM_WORLD, &of_program);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    watch_.begin(process_, processes_, ends_);
    mpi_watch::doing const starts(watch_, {"starting"});
    run([&](MPI_Request* r) { MPI_Comm_idup(MPI_COMM_WORLD, &own_, r); });
    watch_.move(own_);
    {
      std::lock_guard const lock(calls_);
      MPI_Comm_set_errhandler(MPI_COMM_WORLD, of_program);
      MPI_Errhandler_free(&of_program);
    }
    find_neighbours();
  }

  /// Counts the neighbours. Processes that are bound to other cores are no neighbours.
  [[gnu::cold]] void find_neighbours() {
    struct place {
      process_identity of;
      cpu_set_t cores;
    };
    // Static, as MPI may write there after a failure.
    static place mine{process_identity::own(), {}};
    static heap_array<place> all;
    all = heap_array<place>(processes_);
    CPU_ZERO(&mine.cores);
    sched_getaffinity(0, sizeof(mine.cores), &mine.cores);
    run([&](MPI_Request* r) {
      MPI_Iallgather(&mine, sizeof(mine), MPI_BYTE, all.begin(), sizeof(mine), MPI_BYTE, own_, r);
    });
    neighbours_ = 0;
    heap_array<process_identity> identities(processes_);
    for (int p = 0; p < processes_; ++p) {
      identities[p] = all[p].of;
      if (all[p].of.machine == mine.of.machine && CPU_EQUAL(&all[p].cores, &mine.cores))
        neighbours_++, neighbour_ += p < process_;
    }
    watch_.meet(std::move(identities));
  }

  /// The end of the program, by exit() or a return from main. A program that has initialised MPI
  /// itself also finalizes MPI itself.
  [[gnu::cold]] void end(int status) {
    int is_over = 0;
    MPI_Finalized(&is_over);
    if (is_over != 0 || watch_.is_ending()) return;
    if (status != 0) watch_.leave(status);
    if (status != 0 || has_failed()) watch_.end_all(status != 0 ? status : 1);
    watch_.leave_all();
    if (ends_) MPI_Finalize();
  }
  /// Called by MPI_Finalize, which waits for all processes and does not see the loss of a process:
  /// so the processes meet before, while they are watched.
  [[gnu::cold]] static int finalizes(MPI_Comm, int, void* self, void*) {
    mpi_world& world = *static_cast<mpi_world*>(self);
    mpi_watch::doing const ends(world.watch_, {"ending the program"});
    try {
      world.run([&](MPI_Request* r) { MPI_Ibarrier(world.own_, r); });
    } catch (rank_error const&) {
    }
    if (!world.watch_.part()) world.watch_.end_all(1);
    return MPI_SUCCESS;
  }

  int process_ = 0, processes_ = 1, neighbours_ = 1, neighbour_ = 0;
  bool ends_ = false;
  std::chrono::milliseconds deadline_{};
  MPI_Comm own_ = MPI_COMM_NULL;
  std::mutex calls_;
  mpi_watch watch_;
};

}  // namespace pp::detail
