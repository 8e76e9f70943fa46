// SPDX-License-Identifier: BSL-1.0
//
// The processes of a trainer on GPUs that NCCL connects: small data goes over TCP, device memory
// through one communicator.
#pragma once
#ifndef PIPE_SHOWS_WARNINGS
#pragma GCC system_header
#endif

#include <chrono>
#include <vector>

#include <pipe/base/error.hpp>
#include <pipe/base/owner.hpp>
#include <pipe/base/sentence.hpp>
#include <pipe/runtime/cuda/process_link.cuh>
#include <pipe/runtime/job.hpp>
#include <pipe/schedule/communication.hpp>
#include <pipe/transport/nccl/nccl.cuh>
#include <pipe/transport/place_in_world.hpp>
#include <pipe/transport/process/process_launch.hpp>
#include <pipe/transport/tcp/tcp_world.hpp>
#include <pipe/transport/transport.hpp>

namespace pp::detail {

/// The transport between GPUs of several processes, as cuda_processes needs it. Each trainer has a
/// communicator, all of whose groups are on one stream.
class nccl_processes final : public cuda::process_link {
 public:
  static constexpr bool copies = true, is_between_devices = true;

  /// The processes that the launcher has started; connected at the first call.
  [[gnu::cold]] static tcp_world& world() { return tcp_world::of_process(0); }
  /// The ranks and the replica of this process: see place_in_world.
  static process_place place(int ranks) { return place_in_world(world(), ranks, "the launcher"); }

  /// Must be called by all processes; for several trainers in the same order.
  [[gnu::cold]] explicit nccl_processes(executor_settings const& settings)
      : world_(world()), deadline_(settings.waiting.deadline) {}

  int process() const { return world_.process(); }
  int processes() const { return world_.processes(); }
  /// The number of this process's device: the number of the process among the processes of its
  /// machine, from the launcher (LOCAL_RANK) if it is set, modulo the number of devices that the
  /// process sees.
  [[gnu::cold]] int device() const {
    int count = 0;
    if (cudaGetDeviceCount(&count) != cudaSuccess) cudaGetLastError();
    int const by_launcher = process_launch::from().local;
    // If there is no device, use_device throws.
    return count > 0 ? (by_launcher >= 0 ? by_launcher : world_.neighbour()) % count : 0;
  }
  /// Compares the plans of all processes, and connects their devices.
  ///
  /// needs: the device of this process is current
  [[gnu::cold]] void connect(std::uint64_t plan) {
    world_.agree(plan);
    if (processes() > 1)
      communicator_ =
          owner<cuda::nccl_communicator>(new cuda::nccl_communicator(world_, deadline_));
  }
  cuda::process_link* link() { return processes() > 1 ? this : nullptr; }

  void broadcast(int process, char* data, long bytes) { world_.broadcast(process, data, bytes); }
  long least(long here) { return world_.least(here); }

  void exchange(std::vector<cuda::message> const& messages, cudaStream_t on) override {
    communicator_->group([&] {
      for (cuda::message const& m : messages)
        if (m.is_sent)
          communicator_->send(m.process, m.data, m.bytes, on);
        else
          communicator_->receive(m.process, m.data, m.bytes, on);
    });
  }
  void wait(cudaStream_t stream) override { communicator_->wait(stream); }
  [[gnu::cold]] void abort(char const* why) noexcept override {
    communicator_->abort();
    if (!world_.has_failed()) world_.announce(why);
  }

 private:
  tcp_world& world_;
  std::chrono::milliseconds deadline_;
  owner<cuda::nccl_communicator> communicator_;  // none if the process is alone
};

}  // namespace pp::detail
