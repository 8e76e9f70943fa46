// SPDX-License-Identifier: BSL-1.0
//
// The processes of a trainer on GPUs: one process alone, with one or several devices, or several
// processes that a transport connects, with one device each.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include <pipe/backend/cuda/core/check.cuh>
#include <pipe/base/error.hpp>
#include <pipe/base/sentence.hpp>
#include <pipe/runtime/cuda/group_launch.cuh>
#include <pipe/runtime/cuda/process_order.hpp>
#include <pipe/runtime/description.hpp>
#include <pipe/runtime/fingerprint.hpp>
#include <pipe/runtime/job.hpp>

namespace pp::detail {

/// All ranks of compiled pipeline P are in this process.
template <class P, bool = bool(P::transport::copies)>
class cuda_processes {
 public:
  static constexpr bool are_several = false;
  static constexpr bool has(int) { return true; }
  static constexpr bool is_first_replica() { return true; }

  explicit cuda_processes(executor_settings const&) {}
  static constexpr int device() { return 0; }
  static pipeline_description description() { return P::description(); }
  static cuda_place place(std::vector<int> numbers) {
    return {{{P::devices, P::ranks}, 0, P::devices}, std::move(numbers), nullptr};
  }
  void share_outputs(job const&) const {}
  void abort(char const*) const noexcept {}
};

/// Several processes, each with consecutive ranks on one device. P::transport, a device_transport,
/// connects them:
///
///     place(ranks)           the ranks and the replica of this process: see process_place
///     T(settings)            in all processes
///     process(), processes(), broadcast(), least()    see stream_transport
///     device()               the number of this process's device
///     connect(plan)          once, after the device has become current
///     link()                 a cuda::process_link; null if the process is alone
template <class P>
class cuda_processes<P, true> {
 public:
  static constexpr bool are_several = true;
  static bool has(int rank) { return P::transport::place(P::ranks).has(rank); }
  static bool is_first_replica() { return P::transport::place(P::ranks).replica == 0; }

  [[gnu::cold]] explicit cuda_processes(executor_settings const& settings) : transport_(settings) {}
  typename P::transport& world() { return transport_; }
  int device() const { return transport_.device(); }
  pipeline_description description() const {
    pipeline_description d = P::description();
    d.devices = local().all;
    return d;
  }
  /// needs: the device of this process is current
  [[gnu::cold]] cuda_place place(std::vector<int> numbers) {
    transport_.connect(fingerprint(P::description()));
    return {local(), std::move(numbers), transport_.link()};
  }
  /// This process's part of the order that every process derives from the steps of all ranks.
  [[gnu::cold]] cuda_order order() const {
    auto const of = [&](bool trains) {
      return cuda::entries_of(cuda::merge_instructions(P::instructions().items, P::ranks, trains),
                              local());
    };
    return {of(true), of(false)};
  }
  /// Gives the outputs of an inference, as the first replica has them, to all processes.
  ///
  /// needs: the run has ended
  void share_outputs(job const& j) {
    pipeline_description const d = description();
    for_each_output(d, j, [&](int output) {
      long const each = d.output[output].bytes / size_of(d.value_type) / d.samples;
      share(d.devices.of(d.chunk[d.chunks - 1].rank), j.batch.output[output],
            j.batch.samples * each * long(sizeof(float)), j.batch.output_is_on_device);
    });
  }
  void abort(char const* why) noexcept {
    if (transport_.link() != nullptr) transport_.link()->abort(why);
  }

 private:
  /// Gives an array of one process to all.
  void share(int from, void* output, long bytes, bool is_on_device) {
    if (!is_on_device) return transport_.broadcast(from, static_cast<char*>(output), bytes);
    std::vector<char> values(static_cast<std::size_t>(bytes));
    auto const copy = [&](void* to, void const* of, cudaMemcpyKind kind) {
      cuda::check(cudaMemcpy(to, of, values.size(), kind), "copy of outputs");
    };
    if (transport_.process() == from) copy(values.data(), output, cudaMemcpyDeviceToHost);
    transport_.broadcast(from, values.data(), bytes);
    copy(output, values.data(), cudaMemcpyHostToDevice);
  }
  local_devices local() const {
    process_place const here = P::transport::place(P::ranks);
    int const each = transport_.processes() / here.replicas;
    return {{each, P::ranks}, transport_.process() % each, 1, here.replica, here.replicas};
  }

  typename P::transport transport_;
};

}  // namespace pp::detail
