// SPDX-License-Identifier: BSL-1.0
//
// Messages between the GPUs of several processes by NCCL: groups of sends and receives on a stream.
// NCCL does not report a peer that has died, and a call that waits for a dead peer does not end. So
// communicators are made non-blocking, every wait looks at the watch over the processes, and a
// failure aborts the kernels on the device.
//
// Nothing is computed by NCCL, whose reductions add up in an order that depends on sizes, settings
// and the network.
//
// source: NVIDIA, NCCL user guide 2.28, "Group calls", "Fault tolerance"
#pragma once
#ifndef PIPE_SHOWS_WARNINGS
#pragma GCC system_header
#endif

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include <cuda_runtime.h>
#include <nccl.h>

#include <pipe/backend/cuda/core/check.cuh>
#include <pipe/base/error.hpp>
#include <pipe/base/sentence.hpp>
#include <pipe/base/thread.hpp>
#include <pipe/transport/process/process_watch.hpp>
#include <pipe/transport/running_time.hpp>

#if NCCL_VERSION_CODE < NCCL_VERSION(2, 18, 0)
#error "pipe needs NCCL 2.18 or newer"
#endif

namespace pp::cuda {

/// A rank of NCCL in each process of a world, on one device.
///
/// law: in all processes groups are made in the same order, so that no group waits for a later one.
///      With one communicator for each device groups cannot wait for each other, however few
///      kernels the device runs at once
/// law: after a failure nothing of NCCL is left on the device, and every call throws rank_error
/// needs: calls from one thread, with the same current device as at construction
class nccl_communicator {
 public:
  /// In all processes. World: tcp_world or mpi_world, which outlives the communicator. deadline: of
  /// each wait for other processes; 0: there is none.
  ///
  /// throws: error in a process in which NCCL refuses; rank_error in all others, and if a process
  ///         fails, or does not come before the deadline
  template <class World>
  [[gnu::cold]] nccl_communicator(World& world,
                                  std::chrono::milliseconds deadline = std::chrono::minutes(5))
      : watch_(world.watch()), world_(&world),
        announce_([](void* of, std::string_view text) { static_cast<World*>(of)->announce(text); }),
        process_(world.process()), processes_(world.processes()), deadline_(deadline) {
    auto const constructs = world.during({"constructing a communicator of NCCL"});
    start first;
    if (process_ == 0) first.result = ncclGetUniqueId(&first.id);
    world.broadcast(0, reinterpret_cast<char*>(&first), sizeof(first));
    if (first.result != ncclSuccess)  // in all processes alike
      detail::throw_error<error>({"NCCL, an id by process 0: ", ncclGetErrorString(first.result)});
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    try {
      check_call(ncclCommInitRankConfig(&comm_, processes_, first.id, process_, &config),
                 "construction of a communicator");
      warm_up();
    } catch (...) {
      abort();
      throw;
    }
  }
  nccl_communicator(nccl_communicator const&) = delete;
  nccl_communicator& operator=(nccl_communicator const&) = delete;
  /// Waits for no other process; all work that was put on a stream must have ended.
  [[gnu::cold]] ~nccl_communicator() {
    if (comm_ == nullptr) return;
    try {
      check_call(ncclCommFinalize(comm_), "the end of a communicator");
      if (ncclCommDestroy(comm_) == ncclSuccess) comm_ = nullptr;
    } catch (error const&) {
    }
    abort();
  }

  int process() const { return process_; }
  int processes() const { return processes_; }

  /// Sends and receives that begin together and end together: calls() makes them by send() and
  /// receive(). Between two processes sends and receives match in their order.
  ///
  /// throws: error if NCCL refuses a call; rank_error if a process has failed
  template <class Calls>
  void group(Calls const& calls) {
    if (comm_ == nullptr) fail_again();
    ncclGroupStart();
    first_ = ncclSuccess;
    try {
      calls();
    } catch (...) {
      ncclGroupEnd();
      abort();
      throw;
    }
    // The group must end, whatever its calls have said.
    ncclResult_t const end = ncclGroupEnd();
    check_call(first_ != ncclSuccess ? first_ : end, "a group of sends and receives");
  }
  /// needs: to be called in a group, for one stream; the data stays until the stream has come
  ///        beyond it
  void send(int to, void const* data, long bytes, cudaStream_t on) {
    note(ncclSend(data, std::size_t(bytes), ncclInt8, to, comm_, on));
  }
  void receive(int from, void* data, long bytes, cudaStream_t on) {
    note(ncclRecv(data, std::size_t(bytes), ncclInt8, from, comm_, on));
  }

  /// Waits until a stream has done all its work. In place of cudaStreamSynchronize, which does not
  /// return when a peer is lost.
  ///
  /// throws: rank_error if a process has failed, or at the deadline
  void wait(cudaStream_t stream) {
    poll("a wait for another process", [&] {
      cudaError_t const status = cudaStreamQuery(stream);
      if (status == cudaErrorNotReady) return false;
      check(status, "a wait for another process");
      return true;
    });
  }
  /// Ends the work of this process on the device, whose data is lost. Other processes are not told.
  [[gnu::cold]] void abort() noexcept {
    if (comm_ != nullptr) ncclCommAbort(std::exchange(comm_, nullptr));
  }

 private:
  /// The message of process 0 to the other processes.
  struct start {
    ncclResult_t result = ncclSuccess;
    ncclUniqueId id{};
  };

  /// Makes the connections of all pairs, which NCCL makes at their first message: round r is
  /// between processes whose numbers differ by r.
  [[gnu::cold]] void warm_up() {
    char* data = nullptr;
    check(cudaMalloc(reinterpret_cast<void**>(&data), 512), "memory of a warm-up");
    cudaStream_t stream{};
    check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "creation of a stream");
    try {
      for (int apart = 1; apart < processes_; ++apart) {
        group([&] {
          send((process_ + apart) % processes_, data, 1, stream);
          receive((process_ + processes_ - apart) % processes_, data + 256, 1, stream);
        });
        wait(stream);
      }
    } catch (...) {
      abort();  // before the stream and the memory that it uses
      cudaStreamDestroy(stream);
      cudaFree(data);
      throw;
    }
    cudaStreamDestroy(stream);
    cudaFree(data);
  }

  /// Keeps the first error of a group, as the end of the group may report a later one.
  void note(ncclResult_t r) {
    if (first_ == ncclSuccess && r != ncclInProgress) first_ = r;
  }
  /// Waits until a call has had its effect. Nothing may be put on its stream before.
  void check_call(ncclResult_t r, char const* what) {
    if (r != ncclSuccess && r != ncclInProgress) fail(r, what);
    poll(what, [] { return true; });
  }
  /// Waits until NCCL has no call in progress and is_so().
  template <class Condition>
  void poll(char const* what, Condition const& is_so) {
    constexpr std::chrono::milliseconds before_sleep(1);
    if (comm_ == nullptr) fail_again();
    detail::running_time waiting;
    for (;;) {
      ncclResult_t state = ncclSuccess;
      ncclResult_t const r = ncclCommGetAsyncError(comm_, &state);
      if (r != ncclSuccess) fail(r, what);
      if (watch_.has_failed()) {
        abort();
        fail_again();
      }
      if (state != ncclSuccess && state != ncclInProgress) fail(state, what);
      if (is_so() && state == ncclSuccess) return;
      waiting.look();
      if (waiting.is_beyond(deadline_)) time_out(what);
      if (waiting.total() > before_sleep) detail::sleep_for(50'000);
    }
  }

  /// NCCL has failed here: other processes may wait for this process for ever, unless they are
  /// told.
  [[noreturn, gnu::cold]] void fail(ncclResult_t r, char const* what) {
    char const* const more = ncclGetLastError(comm_);
    std::string text = detail::sentence({"NCCL, ", what, ": ", ncclGetErrorString(r)}).begin();
    if (more != nullptr && *more != 0) text = text + " (" + more + ")";
    abort();
    // A failure that follows from another process's failure is not announced.
    if (watch_.has_failed()) fail_again();
    announce_(world_, text);
    throw error(text);
  }
  [[noreturn, gnu::cold]] void time_out(char const* what) {
    abort();
    announce_(world_, detail::sentence({"timed out after ", double(deadline_.count()) / 1000,
                                        " s in ", what, " by NCCL"})
                          .begin());
    fail_again();
  }
  [[noreturn, gnu::cold]] void fail_again() const {
    if (watch_.has_failed()) throw rank_error(watch_.failure());
    throw rank_error("this communicator of NCCL was aborted");
  }

  detail::process_watch& watch_;
  void* world_;
  void (*announce_)(void*, std::string_view);
  int process_, processes_;
  std::chrono::milliseconds deadline_;
  ncclComm_t comm_ = nullptr;
  ncclResult_t first_ = ncclSuccess;  // of the group that is being made
};

}  // namespace pp::cuda
