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

/// Copies of the chunks' divided parameters at their offsets, made when a program asks for views of
/// all parameters at once: see Pipeline::parameters(). They are not planned. Everything else works
/// with one parameter at a time, which is in a rank's ring. Executor: windows(chunk).
///
/// law: write_back() of what of() has made changes nothing
class value_mirror {
 public:
  /// Memory from which the offsets of a chunk's divided parameters count. All replicas call it.
  ///
  /// throws: rank_error if a replica does not
  template <class Executor>
  [[gnu::cold]] char* of(pipeline_description const& d, int chunk, Executor& executor) {
    if (copies_.size() == 0) copies_ = heap_array<heap_array<char>>(d.chunks);
    heap_array<char>& copy = copies_[chunk];
    if (copy.size() == 0 && d.chunk[chunk].divided_bytes > 0) {
      heap_array<char> made(d.chunk[chunk].divided_bytes);
      collect(executor, chunk, made.begin());
      copy = static_cast<heap_array<char>&&>(made);
    }
    return copy.begin();
  }
  /// Takes over what the program has written. Copies are kept.
  template <class Executor>
  [[gnu::cold]] void write_back(Executor& executor) {
    for (int i = 0; i < int(copies_.size()); ++i)
      if (copies_[i].size() > 0) executor.windows(i).distribute(i, copies_[i].begin());
  }
  /// Renews the copies: parameters have changed elsewhere. All replicas call it.
  ///
  /// throws: as of()
  template <class Executor>
  [[gnu::cold]] void renew(Executor& executor) {
    for (int i = 0; i < int(copies_.size()); ++i)
      if (copies_[i].size() > 0) collect(executor, i, copies_[i].begin());
  }
  /// The same of one parameter, whose values are given.
  void renew(int chunk, parameter_place const& p, char const* values, long bytes) {
    if (copies_.size() > 0 && copies_[chunk].size() > 0)
      std::memcpy(copies_[chunk].begin() + p.offset, values, std::size_t(bytes));
  }
  /// Frees the copies: parameters are about to change.
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
