// SPDX-License-Identifier: BSL-1.0
//
// The address of a value at run time: a region of the rank's memory and a constant offset in it.
// The runtime resolves a launch's operands by adding the region's base for the present micro-batch.
#pragma once

#include <pipe/base/config.hpp>
#include <pipe/graph/graph.hpp>

PIPE_OPTIMIZED_BEGIN
namespace pp {

enum class region : unsigned char {
  none,
  parameters,           // of the stage
  parameter_gradients,  // same offsets as parameters
  copies,               // of parameters, in 16 bits: numbers have the same places
  transposed,           // copies of weights that an input gradient reads
  record,               // one per micro-batch in flight: what forward keeps for backward
  pending,              // one per micro-batch between B and W: what B keeps for W
  buffers,              // of the stage, as wide as parameters
  buffer_sums,          // of those that steps write, same offsets as buffers
  scratch,              // of one program run
  boundary_in,          // what the previous stage hands on
  boundary_out,         // what this stage hands on
  gradient_in,          // the gradients of what this stage handed on, from the next stage
  gradient_out,         // the gradients of what this stage was handed
  random,               // the numbers 0, 1, 2 ... of streams of random bits
  label,                // the micro-batch's labels
  input,                // and its samples; further inputs have the regions after this one
};
inline constexpr int region_count = int(region::input) + max_inputs;
constexpr region input_region(int input) { return region(int(region::input) + input); }

struct address {
  region where = region::none;
  long offset = 0;  // bytes
};

/// What a stage hands on without making it, or made elsewhere: copied when its program has run.
struct copied {
  address from, to;
  long bytes = 0;
};

/// An operand of a launch. What the launch writes has as many elements of a micro-batch; what it
/// only reads has none. Wide ones are of the type of parameters and gradients, others of the type
/// of values.
struct placed_operand {
  address at;
  long elements = 0;
  bool is_wide = true;
  short layer = 0;  // top-level, of its group: a chain has several
};

namespace detail {

/// One kernel launch of a program: operands [first, first + count) of the program's list. `group`:
/// the number of a group, or, after all groups, of a chain of them.
struct launch {
  int group = 0;
  int first = 0, count = 0;
  int layer = 0;       // top-level, from 0; of several that were fused, the first
  bool again = false;  // makes values again that forward made and did not keep
};

}  // namespace detail

}  // namespace pp
PIPE_OPTIMIZED_END
