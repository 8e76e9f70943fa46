// SPDX-License-Identifier: BSL-1.0
//
// The copies between ranks on different devices. Values of boundaries go to slots of the reader.
// Each boundary stream between two devices of this process has its own stream of the CUDA runtime,
// so that copy engines move values while both devices compute. Values from and to other processes
// are exchanged by a process_link, in groups.
#pragma once

#include <cstddef>
#include <vector>

#include <pipe/base/heap_array.hpp>
#include <pipe/base/owner.hpp>
#include <pipe/runtime/cuda/process_link.cuh>
#include <pipe/runtime/cuda/rank_streams.cuh>
#include <pipe/runtime/cuda/resources.cuh>
#include <pipe/runtime/description.hpp>
#include <pipe/runtime/transfers.hpp>

namespace pp::cuda {

/// The copies from and to the devices of this process. Boundary streams are numbered: see
/// for_each_stream.
///
/// law: work is enqueued only
class rank_copies {
 public:
  /// processes: null if there are no others
  ///
  /// needs: the streams, the arenas and `processes` outlive this object
  [[gnu::cold]] rank_copies(detail::pipeline_description const& d, rank_streams const& streams,
                            detail::heap_array<device_buffer> const& arenas,
                            process_link* processes)
      : streams_(streams), arenas_(arenas), processes_(processes), links_(2 * d.chunks) {
    detail::for_each_stream(d, [&](int number, transports::boundary_stream const& s) {
      int const maker = s.first.from_rank, reader = s.first.to_rank;
      bool const is_maker = local().has(maker), is_reader = local().has(reader);
      if (d.devices.share(maker, reader) || !(is_maker || is_reader)) return;
      streams.make_current(is_maker ? maker : reader);
      links_[number] =
          detail::owner<link>(new link{s, detail::heap_array<event>(d.micro_batches),
                                       detail::heap_array<stream>(is_maker && is_reader ? 1 : 0)});
    });
    streams.make_current(streams.root());
    exchanges_ = detail::heap_array<stream>(processes != nullptr);
    hop_ = detail::heap_array<event>(processes != nullptr);
  }

  /// The link to the other processes; null if there are none.
  process_link* processes() const { return processes_; }

  /// Copies a micro-batch between two devices of this process once `made` and `released` have
  /// occurred. released: the release of the reader's slot by micro-batch micro_batch -
  /// slots(number), which had the slot before; null if there was none
  void copy(int number, int micro_batch, event const& made, event const* released) {
    link const& l = *links_[number];
    cudaStream_t const on = l.on[0];
    transports::transfer const x = l.of.of(micro_batch);
    check(cudaStreamWaitEvent(on, made, 0), "a wait for a value");
    if (released != nullptr) check(cudaStreamWaitEvent(on, *released, 0), "a wait for a slot");
    copy_on_devices(at(x.to_rank, x.to), at(x.from_rank, x.from), x.bytes, on);
    check(cudaEventRecord(arrived(number, micro_batch), on), "record of an event");
  }

  /// A micro-batch that comes from another process or goes to it, once event `after` has occurred:
  /// the value is made or, at the reader, its slot is free. null: the slot is free from the start.
  struct exchange {
    int number, micro_batch;
    event const* after;
  };
  /// Exchanges micro-batches together.
  void exchange_all(std::vector<exchange> const& group) {
    cudaStream_t const on = exchanges_[0];
    for (exchange const& e : group)
      if (e.after != nullptr) check(cudaStreamWaitEvent(on, *e.after, 0), "a wait for a value");
    messages_.clear();
    for (exchange const& e : group) {
      transports::transfer const x = links_[e.number]->of.of(e.micro_batch);
      if (local().has(x.from_rank))
        messages_.push_back(
            {local().process_of(x.to_rank), true, at(x.from_rank, x.from), x.bytes});
      else
        messages_.push_back({local().process_of(x.from_rank), false, at(x.to_rank, x.to), x.bytes});
    }
    processes_->exchange(messages_, on);
    for (exchange const& e : group)
      check(cudaEventRecord(arrived(e.number, e.micro_batch), on), "record of an event");
  }

  /// Orders all later work of the process's first rank after all exchanges, so that the run ends
  /// behind them: the next run writes the slots that the exchanges read.
  void join() {
    if (processes_ != nullptr) await(streams_.root());
  }

  /// The event that the copy of a micro-batch has ended: the reader may read its slot, and the
  /// maker write its own.
  event const& arrived(int number, int micro_batch) const {
    return links_[number]->arrived[micro_batch];
  }
  /// The number of the reader's slots.
  int slots(int number) const { return links_[number]->of.to_slots; }

  /// Copies `bytes` from one rank's device to another's, in the order of the work on both. Within
  /// this process the copy is on the stream of rank `on`, one of the two ranks, and the caller has
  /// ordered both streams. Each process passes its own address, and a copy between other processes
  /// does nothing here.
  ///
  /// needs: all processes make the same calls in the same order
  void move(int from_rank, void const* from, int to_rank, void* to, long bytes, int on) {
    bool const is_maker = local().has(from_rank), is_reader = local().has(to_rank);
    if (is_maker && is_reader) return copy_on_devices(to, from, bytes, streams_.of(on));
    if (!is_maker && !is_reader) return;
    int const mine = is_maker ? from_rank : to_rank;
    messages_.assign(1, {local().process_of(is_maker ? to_rank : from_rank), is_maker,
                         is_maker ? const_cast<void*>(from) : to, bytes});
    processes_->exchange(messages_, exchanges_behind(mine));
    await(mine);
  }
  /// The stream of all exchanges, ordered behind all work so far of a rank of this process.
  ///
  /// needs: there are other processes
  cudaStream_t exchanges_behind(int rank) {
    streams_.follow(exchanges_[0], rank);
    return exchanges_[0];
  }
  /// Orders all later work of a rank of this process after all exchanges.
  void await(int rank) {
    check(cudaEventRecord(hop_[0], exchanges_[0]), "record of an event");
    check(cudaStreamWaitEvent(streams_.of(rank), hop_[0], 0), "a wait for other processes");
  }

  /// After a failure: see rank_streams::drain.
  void drain() const noexcept {
    for (detail::owner<link> const& l : links_)
      if (l.get() != nullptr)
        for (stream const& s : l->on) (void)cudaStreamSynchronize(s);
    for (stream const& s : exchanges_) (void)cudaStreamSynchronize(s);
  }

 private:
  struct link {
    transports::boundary_stream of;
    detail::heap_array<event> arrived;  // by micro-batch
    /// The stream of the copies, on the device of the maker; none if values are exchanged with
    /// another process.
    detail::heap_array<stream> on;
  };

  detail::local_devices const& local() const { return streams_.local(); }
  char* at(int rank, long offset) const { return arenas_[rank].data() + offset; }
  /// Copies by address: cudaMemcpyPeerAsync cannot be captured in a graph.
  static void copy_on_devices(void* to, void const* from, long bytes, cudaStream_t on) {
    check(cudaMemcpyAsync(to, from, std::size_t(bytes), cudaMemcpyDeviceToDevice, on),
          "copy between ranks");
  }

  rank_streams const& streams_;
  detail::heap_array<device_buffer> const& arenas_;
  process_link* processes_;
  detail::heap_array<detail::owner<link>>
      links_;  // by number; null: between ranks of one device, or of other processes
  detail::heap_array<stream> exchanges_;  // one stream, if there are other processes
  std::vector<message> messages_;         // of one exchange
  detail::heap_array<event> hop_;         // one event, if there are other processes
};

}  // namespace pp::cuda
