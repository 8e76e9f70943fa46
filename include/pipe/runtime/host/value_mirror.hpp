// SPDX-License-Identifier: BSL-1.0
//
// Parameters for a program to read and write between runs, where a rank has only its replica's part
// of some of them (ZeRO<3>).
#pragma once

#include <cstring>

#include <pipe/base/error.hpp>
#include <pipe/base/heap_array.hpp>
#include <pipe/runtime/description.hpp>
#include <pipe/transport/waiting.hpp>

namespace pp::detail {

/// Copies of the chunks' parameters, buffers and gradients at their offsets, made when they are
/// asked for. Executor: memory(chunk), windows(chunk). A copy is as large as the chunk's parameters
/// are together, and is not planned: it is there while a program starts, saves or loads.
///
/// law: write_back() of what of() has made changes nothing
class value_mirror {
 public:
  /// Memory in which a chunk's parameters are whole. All replicas call it.
  ///
  /// throws: rank_error if a replica does not
  template <class Executor>
  [[gnu::cold]] char* of(pipeline_description const& d, int chunk, Executor& executor) {
    if (copies_.size() == 0) copies_ = heap_array<heap_array<char>>(d.chunks);
    chunk_description const& c = d.chunk[chunk];
    heap_array<char>& copy = copies_[chunk];
    if (copy.size() == 0) {
      copy = heap_array<char>(c.state - c.values);
      long const first = first_whole(c);
      std::memcpy(copy.begin() + first - c.values, executor.memory(chunk) + first,
                  std::size_t(c.state - first));
      if (executor.windows(chunk).collect(chunk, copy.begin()) != waited::done)
        throw rank_error(
            "parameters are read that replicas divide (ZeRO<3>): one of them is lost, "
            "or does not take part");
    }
    return copy.begin() - c.values;
  }
  /// Takes over what the program has written. Copies are kept.
  template <class Executor>
  [[gnu::cold]] void write_back(pipeline_description const& d, Executor& executor) {
    for (int i = 0; i < int(copies_.size()); ++i) {
      if (copies_[i].size() == 0) continue;
      chunk_description const& c = d.chunk[i];
      long const first = first_whole(c);
      std::memcpy(executor.memory(i) + first, copies_[i].begin() + first - c.values,
                  std::size_t(c.state - first));
      executor.windows(i).distribute(i, copies_[i].begin());
    }
  }
  /// Frees the copies: parameters are about to change.
  void forget() { copies_ = {}; }

 private:
  /// Where the part of a chunk begins that is whole in its rank's arena.
  static long first_whole(chunk_description const& c) { return c.values + c.divided_bytes; }
  heap_array<heap_array<char>> copies_;  // by chunk
};

}  // namespace pp::detail
