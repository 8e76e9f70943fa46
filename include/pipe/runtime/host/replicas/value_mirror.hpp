// SPDX-License-Identifier: BSL-1.0
//
// Copies of parameters for a program to read and write between runs, where a rank has only its
// replica's part of some parameters (ZeRO<3>).
#pragma once

#include <cstring>

#include <pipe/base/error.hpp>
#include <pipe/base/heap_array.hpp>
#include <pipe/runtime/description.hpp>
#include <pipe/transport/waiting.hpp>

namespace pp::detail {

/// Copies of the chunks' divided parameters at their offsets, made when a program asks for views of
/// all parameters at once: see Pipeline::parameters(). The memory of these copies is not in the
/// plan. All other access is to one parameter at a time, in a rank's ring. Executor: a type with
/// windows(chunk).
///
/// law: write_back() after of() changes nothing, unless the program has written to the copies
class value_mirror {
 public:
  /// The copy of a chunk's divided parameters: the address to which their offsets are added. All
  /// replicas call this function.
  ///
  /// throws: rank_error if a replica does not take part
  template <class Executor>
  [[gnu::cold]] char* of(pipeline_description const& d, int chunk, Executor& executor) {
    if (copies_.size() == 0) copies_ = heap_array<heap_array<char>>(d.chunks);
    heap_array<char>& copy = copies_[chunk];
    if (copy.size() == 0 && d.chunk[chunk].sizes.divided > 0) {
      heap_array<char> made(d.chunk[chunk].sizes.divided);
      collect(executor, chunk, made.begin());
      copy = static_cast<heap_array<char>&&>(made);
    }
    return copy.begin();
  }
  /// Takes over the values that the program has written. Copies are kept.
  template <class Executor>
  [[gnu::cold]] void write_back(Executor& executor) {
    for (int i = 0; i < int(copies_.size()); ++i)
      if (copies_[i].size() > 0) executor.windows(i).distribute(i, copies_[i].begin());
  }
  /// Renews the copies after parameters have changed elsewhere. All replicas call this function.
  ///
  /// throws: as of()
  template <class Executor>
  [[gnu::cold]] void renew(Executor& executor) {
    for (int i = 0; i < int(copies_.size()); ++i)
      if (copies_[i].size() > 0) collect(executor, i, copies_[i].begin());
  }
  /// Renews the copy of one parameter, whose values are given.
  void renew(int chunk, parameter_place const& p, char const* values, long bytes) {
    if (copies_.size() > 0 && copies_[chunk].size() > 0)
      std::memcpy(copies_[chunk].begin() + p.offset, values, std::size_t(bytes));
  }
  /// Frees the copies, as parameters are about to change.
  void forget() { copies_ = {}; }

  [[noreturn, gnu::cold]] static void refuse() {
    throw rank_error(
        "parameters are read that replicas divide (ZeRO<3>): one of them is lost, "
        "or does not take part");
  }

 private:
  template <class Executor>
  static void collect(Executor& executor, int chunk, char* to) {
    auto& windows = executor.windows(chunk);
    windows.clear();
    if (windows.collect(chunk, to) != waited::done) refuse();
  }
  heap_array<heap_array<char>> copies_;  // by chunk
};

}  // namespace pp::detail
