// SPDX-License-Identifier: BSL-1.0
//
// The processes of a trainer on GPUs that NCCL connects: small data goes over TCP, the memory of
// devices by one communicator.
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

/// See cuda_processes. A communicator for each trainer: all its groups are on one stream.
class nccl_processes final : public cuda::process_link {
 public:
  static constexpr bool copies = true, is_between_devices = true;

  /// The processes of the launcher, made at the first call.
  [[gnu::cold]] static tcp_world& world() { return tcp_world::of_process(0); }
  /// See place_in_world.
  static process_place place(int ranks) { return place_in_world(world(), ranks, "the launcher"); }

  /// Must be called by all processes, in the same order for several trainers.
  [[gnu::cold]] explicit nccl_processes(executor_settings const& settings)
      : world_(world()), deadline_(settings.waiting.deadline) {}

  int process() const { return world_.process(); }
  int processes() const { return world_.processes(); }
  /// The number of this process's device: its number among those of the machine, by the launcher
  /// (LOCAL_RANK) if it says so, of as many devices as it sees.
  [[gnu::cold]] int device() const {
    int count = 0;
    if (cudaGetDeviceCount(&count) != cudaSuccess) cudaGetLastError();
    int const by_launcher = process_launch::from().local;
    // No device is use_device's to tell.
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
