// SPDX-License-Identifier: BSL-1.0
//
// Versions of the weights of all chunks, where steps overlap: an update writes a new version beside
// the versions that micro-batches in flight still read.
#pragma once

#include <cstring>
#include <utility>

#include <pipe/base/config.hpp>
#include <pipe/base/heap_array.hpp>
#include <pipe/runtime/description.hpp>
#include <pipe/runtime/host/core/backend_calls.hpp>

PIPE_OPTIMIZED_BEGIN
namespace pp::detail {

/// The slots of versions: see chunk_description. Outside of a call of train() the newest version is
/// in slot 0. Methods take a chunk of a rank and are called on that rank's thread.
template <class T>
class weight_versions {
 public:
  [[gnu::cold]] explicit weight_versions(pipeline_description const& d)
      : d_(d), memory_(d.ranks), shifts_(d.chunks) {}
  /// Registers a rank's arena.
  void set_memory(int rank, char* memory) { memory_[rank] = memory; }

  /// From slot 0 of a chunk's weights to the newest version, in bytes.
  long newest(chunk_description const& c) const { return shifts_[&c - d_.chunk].newest; }
  /// The address to which the offsets of a chunk's weights are added: that of the newest version.
  char* memory(chunk_description const& c) const { return memory_[c.rank] + newest(c); }

  /// The same for the version that the last update read, or for what is in the slot of that version
  /// now: see exchange_ahead.
  char* memory_before(chunk_description const& c) const {
    return memory_[c.rank] + shifts_[&c - d_.chunk].before;
  }
  /// Notes by how many updates the weights at memory_before() are ahead of the newest version, if
  /// there was an update. Returns the number that was noted before.
  long exchange_ahead(chunk_description const& c, long ahead) {
    long& is = shifts_[&c - d_.chunk].ahead;
    return is == 0 ? 0 : std::exchange(is, ahead);
  }
  /// Begins a new version, in another slot than the newest or in the same slot. The slot has all
  /// parameters that updates do not change; buffers are copied to it.
  void begin(chunk_description const& c, int slot) {
    shift& s = shifts_[&c - d_.chunk];
    s = {s.newest, c.shift_of(slot), -1};
    if (s.before != s.newest)
      std::memcpy(memory_[c.rank] + c.buffers + s.newest, memory_[c.rank] + c.buffers + s.before,
                  std::size_t(c.sizes.buffers));
  }
  /// Updates from the version before to the newest version; the arrays of the request are those of
  /// slot 0. Before begin_runs(), and where there is one slot, the update is made in place.
  void update(chunk_description const& c, backend_calls<T> const& calls,
              update_request<T> const& r) const {
    if (update_ == nullptr || c.versions.slots == 1)
      calls.update(calls.optimizer, r);
    else
      (this->*update_)(c, calls, r);
  }
  /// Lets updates write beside the version before from now on. A program without steps that overlap
  /// does not compile such updates.
  void begin_runs() { update_ = &weight_versions::update_beside; }
  /// Takes the newest update back: the version before it, and the optimizer's state before it, are
  /// the newest again.
  ///
  /// needs: the version and the state before it are kept
  void take_back(chunk_description const& c) {
    shift& s = shifts_[&c - d_.chunk];
    s.newest = s.before;
    char* const state = memory_[c.rank] + c.state;
    std::memcpy(state, state + c.versions.to_kept_state, std::size_t(c.sizes.state));
  }
  /// Copies the newest version to all slots, before a run.
  void spread(chunk_description const& c) const {
    char* const slot_0 = memory_[c.rank] + c.values;
    for (int slot = 1; slot < c.versions.slots; ++slot)
      std::memcpy(slot_0 + c.shift_of(slot), slot_0, std::size_t(c.versions.bytes));
  }
  /// Copies the parameters and buffers that no update changes to all slots.
  void copy_untrained(chunk_description const& c) const {
    copy_newest(c, [](parameter_place const& p) { return !p.trained && !p.is_committed(); });
  }
  /// Copies the newest running means to all slots. The sums of a mini-batch are of differences from
  /// the mean, so all its micro-batches must read the mean that the commit reads, whatever versions
  /// of weights they read.
  void share_means(chunk_description const& c) const {
    copy_newest(c, [](parameter_place const& p) {
      return p.is_committed() && p.commit.of == commit_rule::statistic::mean_of_differences;
    });
  }
  /// Exchanges versions, so that the newest is in slot 0, the version before it in the last slot,
  /// and so on.
  void bring_newest_forward(chunk_description const& c) {
    char* const slot_0 = memory_[c.rank] + c.values;
    auto const reverse = [&](int begin, int end) {
      for (; begin < --end; ++begin)
        exchange(slot_0 + c.shift_of(begin), slot_0 + c.shift_of(end), c.versions.bytes);
    };
    int slot = 0;
    while (c.shift_of(slot) != newest(c)) ++slot;
    if (slot > 0) reverse(0, slot), reverse(slot, c.versions.slots), reverse(0, c.versions.slots);
    shifts_[&c - d_.chunk] = {};
  }

 private:
  /// Copies the parameters of the newest version for which takes(place) to all other slots.
  template <class Takes>
  void copy_newest(chunk_description const& c, Takes takes) const {
    for (parameter_place const& p : c.parameters)
      for (int slot = 0; slot < c.versions.slots && takes(p); ++slot)
        if (long const to = c.shift_of(slot), from = newest(c); to != from) {
          char* const slot_0 = memory_[c.rank] + c.values_of(p);
          std::memcpy(slot_0 + to, slot_0 + from, sizeof(T) * std::size_t(p.elements()));
        }
  }
  /// An update beside the version before: see update(). The version before is copied block by
  /// block, so that a block is in the cache when it is updated. The state before the update is
  /// kept, if there is room.
  void update_beside(chunk_description const& c, backend_calls<T> const& calls,
                     update_request<T> r) const {
    constexpr long block = 8192;
    shift const& s = shifts_[&c - d_.chunk];
    T* const before = r.values + s.before / long(sizeof(T));
    T* const kept = c.versions.to_kept_state > 0
                        ? r.state + c.versions.to_kept_state / long(sizeof(T))
                        : nullptr;
    r.values += s.newest / long(sizeof(T));
    long const n = r.range.shape.elements();
    auto const copy = [](T* to, T const* from, long count) {
      std::memcpy(to, from, sizeof(T) * std::size_t(count));
    };
    bool const whole = r.range.whole;
    host::part_range const own = whole ? host::part_range{0, n} : r.own;
    for (long first = own.begin, end = 0; first < own.end; first = end) {
      end = whole || own.end - first < block ? own.end : first + block;
      if (before != r.values) copy(r.values + first, before + first, end - first);
      if (kept != nullptr && whole) copy(kept, r.state, r.range.state_size);
      for (int k = 0; k < calls.states && kept != nullptr && !whole; ++k)
        copy(kept + k * n + first, r.state + k * n + first, end - first);
      if (!whole) r.own = {first, end};
      calls.update(calls.optimizer, r);
    }
  }
  /// Bytes from slot 0 to the newest version, and to the version that its update read.
  struct shift {
    long before = 0, newest = 0;
    /// The number of updates by which the weights in the slot `before` are ahead of the newest
    /// version. -1: the version before it. 1 or more: predicted weights. 0: there was no update in
    /// this run.
    long ahead = 0;
  };
  static void exchange(char* a, char* b, long bytes) {
    char block[4096];
    for (long size = 0; bytes > 0; bytes -= size, a += size, b += size) {
      size = bytes < long(sizeof(block)) ? bytes : long(sizeof(block));
      std::memcpy(block, a, std::size_t(size));
      std::memcpy(a, b, std::size_t(size));
      std::memcpy(b, block, std::size_t(size));
    }
  }

  pipeline_description const& d_;
  heap_array<char*> memory_;  // by rank
  heap_array<shift> shifts_;  // by chunk
  void (weight_versions::*update_)(chunk_description const&, backend_calls<T> const&,
                                   update_request<T>) const = nullptr;
};

}  // namespace pp::detail
PIPE_OPTIMIZED_END
