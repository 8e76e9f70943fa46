// SPDX-License-Identifier: BSL-1.0
//
// Neighbouring stages in one process. Their memory is one address space, so a hand-off moves no
// data: the maker writes a value into a slot of its own arena, publishes how far it is, and the
// reader reads it there. The slot is free again when the reader publishes that it is done.
#pragma once

#include <pipe/base/config.hpp>
#include <pipe/base/heap_array.hpp>
#include <pipe/transport/waiting.hpp>

PIPE_OPTIMIZED_BEGIN
namespace pp {

/// What a chunk has finished, counted in micro-batches, each in order.
enum class milestone : unsigned char {
  forward,         ///< its result is there
  input_gradient,  ///< the gradient of its input is there
  release          ///< it will not read its input, nor the gradient it got, again
};

/// One board for all chunks.
class in_process {
 public:
  in_process(int chunks, patience const& limits) : board_(3L * chunks), limits_(limits) {}

  /// Before a run, while no rank is in one.
  void reset() {
    for (progress& p : board_) p.reset();
  }
  void publish(int chunk, milestone m, int micro_batch) { at(chunk, m).publish(micro_batch + 1); }

  /// Until `chunk` has reached `m` with `micro_batch`; a negative micro-batch has always been.
  waited wait(int chunk, milestone m, int micro_batch, failure_flag const& failed) {
    return at(chunk, m).wait(micro_batch + 1, limits_, failed);
  }
  void wake_all() {
    for (progress& p : board_) p.wake();
  }

 private:
  progress& at(int chunk, milestone m) { return board_[3L * chunk + int(m)]; }

  heap_array<progress> board_;
  patience limits_;
};

}  // namespace pp
PIPE_OPTIMIZED_END
