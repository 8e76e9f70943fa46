// SPDX-License-Identifier: BSL-1.0
//
// Mini-batches that are given before their step. A GPU's engine uploads them; for a host they are
// copied, so that a program may reuse its arrays in both cases.
#pragma once

#include <cstddef>
#include <cstring>
#include <utility>
#include <vector>

#include <pipe/base/error.hpp>
#include <pipe/base/sentence.hpp>
#include <pipe/base/list.hpp>
#include <pipe/runtime/job.hpp>
#include <pipe/train/parts/batch.hpp>

namespace pp {

namespace detail {

/// The type of pp::prefetched.
struct prefetched_batch {
  explicit constexpr prefetched_batch(int) {}
};

}  // namespace detail

/// The mini-batch that was prefetched first, of those that are not used yet:
/// `trainer.step(pp::prefetched)`.
inline constexpr detail::prefetched_batch prefetched{0};

namespace detail {

/// Bytes of the lists of a batch: of each input, then of the labels.
using list_sizes = list<std::size_t, max_inputs + 1>;
template <class Batch>
list_sizes list_bytes(Batch const& b) {
  constexpr int inputs = Batch::model::graph_type::size.inputs;
  list_sizes bytes{};
  [&]<int... Is>(std::integer_sequence<int, Is...>) {
    ((bytes[Is] = input_of<Is>(b).size_bytes()), ...);
  }(std::make_integer_sequence<int, inputs>{});
  bytes[max_inputs] = b.labels.size_bytes();
  return bytes;
}

/// The prefetched mini-batches of a trainer, as jobs, in the order in which they were given.
class prefetch_queue {
 public:
  static constexpr int most = 2;

  /// throws: pp::error if there are `most` already
  void require_room() const {
    if (count_ == most)
      throw_error<error>({"prefetch(): ", most, " mini-batches are prefetched already: call step(",
                          "pp::prefetched) first"});
  }
  /// The number of the place at which the next mini-batch is added, from 0 on.
  int next_place() const { return (first_ + count_) % most; }
  /// Adds the job of a checked mini-batch. The engine reads the arrays at once if no other
  /// mini-batch waits, and else during the run of the mini-batch before.
  ///
  /// here:   the part of the mini-batch that this process runs
  /// bytes:  of its lists
  /// needs:  room
  template <class Engine>
  void add(job const& j, [[maybe_unused]] job const& here, list_sizes const& bytes,
           Engine& engine) {
    item& to = items_[next_place()];
    to.of = j;
    if constexpr (requires { engine.prefetch(here); }) {
      to.of.batch.place = data_place::loaded;
      engine.prefetch(here, count_ == 0);
    } else if (j.batch.segments == nullptr) {  // those with Lengths are copies: see dense_batches
      for (int i = 0; i <= max_inputs; ++i) {
        void const*& array = i < max_inputs ? to.of.batch.input[i] : to.of.batch.label;
        if (array == nullptr) continue;
        to.copies[i].resize(bytes[i]);
        if (bytes[i] > 0) std::memcpy(to.copies[i].data(), array, bytes[i]);
        array = to.copies[i].data();
      }
    }
    ++count_;
  }
  /// Removes the first mini-batch. Copies of its arrays stay until another mini-batch is added.
  ///
  /// throws: pp::error if there is none
  job take() {
    if (count_ == 0)
      throw_error<error>({"no mini-batch is prefetched: call prefetch(batch) before"});
    job const j = items_[first_].of;
    first_ = (first_ + 1) % most;
    --count_;
    return j;
  }
  int count() const { return count_; }

 private:
  struct item {
    job of;
    std::vector<char> copies[max_inputs + 1];
  };
  item items_[most];
  int first_ = 0, count_ = 0;
};

}  // namespace detail

}  // namespace pp
