// SPDX-License-Identifier: BSL-1.0
//
// The copies of boundary values to ranks on other devices. Each stream of values between two
// devices has a stream of the CUDA runtime of its own, so that copy engines move them while both
// devices compute.
#pragma once

#include <cstddef>
#include <vector>

#include <pipe/base/heap_array.hpp>
#include <pipe/base/owner.hpp>
#include <pipe/runtime/cuda/rank_streams.cuh>
#include <pipe/runtime/cuda/resources.cuh>
#include <pipe/runtime/description.hpp>
#include <pipe/runtime/transfers.hpp>

namespace pp::cuda {

/// Enqueues a copy between arenas that may be on different devices, on a stream of either of them.
inline void copy_between_arenas(char* to, char const* from, long bytes, cudaStream_t on) {
  // By address, unlike cudaMemcpyPeerAsync, which no capture of a graph takes.
  check(cudaMemcpyAsync(to, from, std::size_t(bytes), cudaMemcpyDeviceToDevice, on),
        "copy between ranks");
}

/// Streams of values are numbered: see for_each_stream.
///
/// law: work is enqueued only
class peer_copies {
 public:
  /// needs: the arenas outlive this object
  [[gnu::cold]] peer_copies(detail::pipeline_description const& d, rank_streams const& streams,
                            detail::heap_array<device_buffer> const& arenas)
      : arenas_(arenas), links_(2 * d.chunks) {
    detail::for_each_stream(d, [&](int number, boundary_stream const& s) {
      if (d.devices.share(s.first.from_rank, s.first.to_rank)) return;
      streams.make_current(s.first.from_rank);
      links_[number] = detail::owner<link>(new link{s, detail::heap_array<event>(d.micro_batches)});
    });
  }

  /// Copies a micro-batch once `made` has occurred, and `released`: of micro-batch n -
  /// slots(number), which had the reader's slot before; null if there was none.
  void copy(int number, int micro_batch, event const& made, event const* released) {
    link const& l = *links_[number];
    transfer const x = l.of.of(micro_batch);
    check(cudaStreamWaitEvent(l.on, made, 0), "a wait for a value");
    if (released != nullptr) check(cudaStreamWaitEvent(l.on, *released, 0), "a wait for a slot");
    copy_between_arenas(arenas_[x.to_rank].data() + x.to, arenas_[x.from_rank].data() + x.from,
                        x.bytes, l.on);
    check(cudaEventRecord(arrived(number, micro_batch), l.on), "record of an event");
  }
  /// The copy of a micro-batch has ended: the reader may read it, and the maker write its slot.
  event const& arrived(int number, int micro_batch) const {
    return links_[number]->arrived[micro_batch];
  }
  /// The slots of the reader.
  int slots(int number) const { return links_[number]->of.to_slots; }
  /// After a failure: see rank_streams::drain.
  void drain() const noexcept {
    for (detail::owner<link> const& l : links_)
      if (l.get() != nullptr) (void)cudaStreamSynchronize(l->on);
  }

 private:
  /// On the device of the rank that makes the values.
  struct link {
    boundary_stream of;
    detail::heap_array<event> arrived;  // by micro-batch
    stream on{};
  };
  detail::heap_array<device_buffer> const& arenas_;
  detail::heap_array<detail::owner<link>> links_;  // by number; null: ranks of one device
};

}  // namespace pp::cuda
