// SPDX-License-Identifier: BSL-1.0
//
// Conversions between a program's arrays in device memory, which are float, and the values that
// kernels read and write. A program's arrays may begin at any float, so their elements are accessed
// one by one.
#pragma once

#include <pipe/backend/cuda/update/flat_parameters.hpp>

namespace pp::cuda {

/// to = from, rounded to To. A functor for flat_kernel.
///
/// needs: `to` is aligned as the plan aligns values
template <class To>
struct from_program {
  To* to = nullptr;
  float const* from = nullptr;

  PIPE_HD bool is_wanted() const { return true; }
  template <int Count>
  PIPE_HD PIPE_INLINE void run(extent at, int) const {
    float v[Count];
    PIPE_UNROLL
    for (int k = 0; k < Count; ++k) v[k] = from[at + k];
    save<Count>(to + at, v);
  }
};

/// to = from. A functor for flat_kernel.
///
/// law:   exact
/// needs: `from` is aligned as the plan aligns values
template <class From>
struct to_program {
  float* to = nullptr;
  From const* from = nullptr;

  PIPE_HD bool is_wanted() const { return true; }
  template <int Count>
  PIPE_HD PIPE_INLINE void run(extent at, int) const {
    float v[Count];
    load<Count>(from + at, v);
    PIPE_UNROLL
    for (int k = 0; k < Count; ++k) to[at + k] = v[k];
  }
};

}  // namespace pp::cuda
