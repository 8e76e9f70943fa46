// SPDX-License-Identifier: BSL-1.0
//
// The processes that mpirun or srun has started, as MPI sees them. MPI is initialised at the first
// use and ends with the program. It is fail-stop: a process that ends with an error, or whose
// trainer is broken, ends all others with MPI_Abort, because MPI_Finalize would wait for ever.
//
// source: MPI 3.1, chapters 8 and 12
#pragma once

#include <cstdlib>
#include <mutex>
#include <string>

#include <mpi.h>
#include <sched.h>

#include <pipe/base/error.hpp>
#include <pipe/base/heap_array.hpp>
#include <pipe/base/sentence.hpp>
#include <pipe/base/thread.hpp>

namespace pp::detail {

/// MPI's world, one object in a process.
///
/// law: calls to MPI are made while calls() is locked, so that MPI_THREAD_SERIALIZED is enough
class mpi_world {
 public:
  /// throws: error if MPI does not see the other processes of this launch, or was initialised with
  ///         fewer threads than SERIALIZED
  static mpi_world& get() {
    static mpi_world& world = *new mpi_world;  // end() is called by exit()
    return world;
  }
  mpi_world(mpi_world const&) = delete;
  mpi_world& operator=(mpi_world const&) = delete;

  int process() const { return process_; }
  int processes() const { return processes_; }
  /// Processes on this machine with the same cores, and the number of this one among them.
  int neighbours() const { return neighbours_; }
  int neighbour() const { return neighbour_; }

  std::mutex& calls() { return calls_; }
  /// From now on nothing but MPI_Abort ends the processes.
  void give_up() { broken_ = true; }

 private:
  [[gnu::cold]] mpi_world() {
    int const launched = launched_processes();
    int is_there = 0, level = 0;
    MPI_Initialized(&is_there);
    if (is_there != 0)
      MPI_Query_thread(&level);
    else
      MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &level);
    ends_ = is_there == 0;
    if (level < MPI_THREAD_SERIALIZED)
      throw error("MPI was initialised for one thread: pipe needs MPI_THREAD_SERIALIZED");
    MPI_Comm_rank(MPI_COMM_WORLD, &process_);
    MPI_Comm_size(MPI_COMM_WORLD, &processes_);
#if defined(__GLIBC__)
    on_exit([](int status, void* self) { static_cast<mpi_world*>(self)->end(status); }, this);
#else
    std::atexit([] { get().end(0); });
#endif
    if (launched > 1 && processes_ == 1)
      throw_error<error>({"this is one of ", launched,
                          " processes, and MPI sees no other: the program is built with another "
                          "MPI than the one whose mpirun has started it"});
    find_neighbours();
  }

  /// The number of processes by the launcher's word, or 1. To be asked before MPI is initialised,
  /// which sets these variables itself.
  [[gnu::cold]] static int launched_processes() {
    for (char const* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"})
      if (char const* const text = std::getenv(name)) return std::atoi(text);
    return 1;
  }
  /// Processes that are bound to other cores are no neighbours.
  [[gnu::cold]] void find_neighbours() {
    MPI_Comm machine = MPI_COMM_NULL;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, process_, MPI_INFO_NULL, &machine);
    int size = 1, own = 0;
    MPI_Comm_size(machine, &size);
    MPI_Comm_rank(machine, &own);
    heap_array<cpu_set_t> cores(size);
    cpu_set_t mine;
    CPU_ZERO(&mine);
    sched_getaffinity(0, sizeof(mine), &mine);
    MPI_Allgather(&mine, sizeof(mine), MPI_BYTE, cores.begin(), sizeof(mine), MPI_BYTE, machine);
    for (int i = 0; i < size; ++i)
      if (i == own || CPU_EQUAL(&cores[i], &mine)) neighbours_++, neighbour_ += i < own;
    MPI_Comm_free(&machine);
  }

  /// The end of the program, by exit() or a return from main.
  [[gnu::cold]] void end(int status) {
    int is_over = 0;
    MPI_Finalized(&is_over);
    if (is_over != 0) return;
    if (broken_) sleep_for(500'000'000);  // the others know, and may end by themselves
    if (status != 0 || broken_) MPI_Abort(MPI_COMM_WORLD, status != 0 ? status : 1);
    if (ends_) MPI_Finalize();
  }

  int process_ = 0, processes_ = 1, neighbours_ = 0, neighbour_ = 0;
  bool ends_ = false, broken_ = false;
  std::mutex calls_;
};

}  // namespace pp::detail
