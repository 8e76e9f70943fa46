// SPDX-License-Identifier: BSL-1.0
//
// The processes of a trainer on GPUs: this one alone, with several devices, or one of those that a
// transport connects, with a device each.
#pragma once

#include <utility>
#include <vector>

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

  explicit cuda_processes(executor_settings const&) {}
  static constexpr int device() { return 0; }
  static pipeline_description description() { return P::description(); }
  static cuda_place place(std::vector<int> numbers) {
    return {{{P::devices, P::ranks}, 0, P::devices}, std::move(numbers), nullptr};
  }
  void share_output(job const&) const {}
  void abort(char const*) const noexcept {}
};

/// P::transport connects the processes, of which each has consecutive ranks on one device:
///
///     place(ranks)           the ranks of this process: see process_place
///     T(settings)            in all processes; a world for small data: see stream_transport
///     processes(), process()
///     device()               the number of this process's device
///     link()                 a cuda::process_link
template <class P>
class cuda_processes<P, true> {
 public:
  static constexpr bool are_several = true;
  static bool has(int rank) { return P::transport::place(P::ranks).has(rank); }

  [[gnu::cold]] explicit cuda_processes(executor_settings const& settings) : transport_(settings) {
    if (transport_.processes() > P::ranks)
      throw_error<error>({"there are ", transport_.processes(), " processes and ", P::ranks,
                          " ranks: on GPUs there are no replicas yet"});
    transport_.agree(fingerprint(P::description()));
  }
  typename P::transport& world() { return transport_; }
  int device() const { return transport_.device(); }
  pipeline_description description() const {
    pipeline_description d = P::description();
    d.devices = blocks();
    return d;
  }
  cuda_place place(std::vector<int> numbers) {
    return {local(), std::move(numbers), &transport_.link()};
  }
  /// From the steps of all ranks: every process derives the same order.
  [[gnu::cold]] cuda_order order() const {
    auto const of = [&](bool trains) {
      return cuda::turns_of(cuda::merge_steps(P::steps().items, P::ranks, trains), local());
    };
    return {of(true), of(false)};
  }
  /// Gives the output of an inference to all processes.
  void share_output(job const& j) {
    pipeline_description const d = description();
    transport_.broadcast(
        d.devices.of(d.chunk[d.chunks - 1].rank), static_cast<char*>(j.output),
        j.samples * (d.output_bytes / size_of(d.value_type) / d.samples) * long(sizeof(float)));
  }
  void abort(char const* why) noexcept { transport_.link().abort(why); }

 private:
  device_blocks blocks() const { return {transport_.processes(), P::ranks}; }
  local_devices local() const { return {blocks(), transport_.process(), 1}; }

  typename P::transport transport_;
};

}  // namespace pp::detail
