// SPDX-License-Identifier: BSL-1.0
//
// Sums over processes on their GPUs, bit for bit the same for any sizes and any network. Every
// process owns a slice of a bucket: it receives that slice from all others, adds them in the tree's
// order, and sends the sum back, as host replicas do: see replica_sum.
#pragma once
#ifndef PIPE_SHOWS_WARNINGS
#pragma GCC system_header
#endif

#include <pipe/runtime/leaves.hpp>
#include <pipe/transport/nccl.cuh>

namespace pp::cuda {

/// Sums over the processes of a communicator.
///
/// law: sum = that of join_leaves over the processes, in all of them; each sends and receives
///      2 (n - 1) / n times the data
template <class T>
class nccl_sum {
 public:
  /// Enqueues to[i] += from[i] for i < n.
  using addition = void (*)(long n, T* to, T const* from, cudaStream_t on);

  /// room: on the device, for what others send; the larger, the fewer messages.
  ///
  /// shape: room: [elements], at least one for each process
  nccl_sum(nccl_communicator& of, T* room, long elements) : of_(of), room_(room) {
    int const n = of.processes();
    slice_ = n > 1 ? elements / (n - 1) : elements;
    if (slice_ < 1) throw error("a sum over processes needs room for an element of each");
  }

  /// Adds up over the processes, which all call it with as many elements.
  ///
  /// throws: as nccl_communicator::group
  void add_up(T* data, long elements, cudaStream_t on, addition add) {
    int const n = of_.processes();
    if (n == 1) return;
    for (long from = 0; from < elements; from += n * slice_) {
      long const left = elements - from;
      add_bucket(data + from, left < n * slice_ ? left : n * slice_, on, add);
    }
  }

 private:
  /// Slice p of a bucket has elements [begin(p), begin(p + 1)).
  void add_bucket(T* data, long elements, cudaStream_t on, addition add) {
    int const n = of_.processes(), me = of_.process();
    long const each = (elements + n - 1) / n;
    auto const begin = [&](int p) { return p * each < elements ? p * each : elements; };
    auto const size = [&](int p) { return begin(p + 1) - begin(p); };
    auto const part = [&](int p) {
      return p == me ? data + begin(me) : room_ + (p - (p > me)) * each;
    };
    of_.group([&] {
      for (int p = 0; p < n; ++p) exchange(p, data + begin(p), size(p), part(p), size(me), on);
    });
    if (size(me) > 0)
      detail::join_leaves_into(
          me, n, [&](int to, int added) { add(size(me), part(to), part(added), on); });
    of_.group([&] {
      for (int p = 0; p < n; ++p)
        exchange(p, data + begin(me), size(me), data + begin(p), size(p), on);
    });
  }
  void exchange(int with, T const* sent, long sent_count, T* received, long received_count,
                cudaStream_t on) {
    if (with == of_.process()) return;
    if (sent_count > 0) of_.send(with, sent, sent_count * long(sizeof(T)), on);
    if (received_count > 0) of_.receive(with, received, received_count * long(sizeof(T)), on);
  }

  nccl_communicator& of_;
  T* room_;
  long slice_ = 0;
};

}  // namespace pp::cuda
