// SPDX-License-Identifier: BSL-1.0
//
// Where a value is at run time: a region of the rank's memory and a constant offset in it. The runtime resolves a launch's
// operands by adding the region's base for the present micro-batch.
#pragma once

namespace pp {

enum class region : unsigned char {
  none,
  parameters,           // of the stage
  parameter_gradients,  // same offsets as parameters
  transposed,           // copies of weights that an input gradient reads
  record,               // one per micro-batch in flight: what forward keeps for backward
  pending,              // one per micro-batch between B and W: what B keeps for W
  scratch,              // of one program run
  boundary_in,          // the previous stage's result
  boundary_out,         // this stage's result
  gradient_in,          // the gradient of this stage's result, made by the next stage
  gradient_out,         // the gradient of the previous stage's result
  input,                // the micro-batch's samples
  label,                // and its labels
};
inline constexpr int region_count = 13;

struct address {
  region where = region::none;
  long offset = 0;  // bytes
};

/// One kernel launch of a program: operands [first, first + count) of the program's list.
struct launch {
  int group = 0;
  int first = 0, count = 0;
};

}  // namespace pp
