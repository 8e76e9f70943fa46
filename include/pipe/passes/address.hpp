// SPDX-License-Identifier: BSL-1.0
//
// The address of a value at run time: a region of the rank's memory and a constant offset in it.
// The runtime resolves an operand by adding the region's base for the current micro-batch.
#pragma once

#include <pipe/base/config.hpp>
#include <pipe/graph/graph.hpp>

PIPE_OPTIMIZED_BEGIN
namespace pp::detail {

/// The memory regions of a rank.
enum class region : unsigned char {
  none,
  parameters,           // of the stage
  parameter_gradients,  // same offsets as parameters
  copies,               // of parameters, in 16 bits, in the same order
  transposed,           // copies of weights that input gradients read
  record,               // one per micro-batch in flight: values that forward stores for backward
  pending,              // one per micro-batch between B (or R) and W: values that they store
  buffers,              // of the stage, in the type of parameters
  buffer_sums,          // of the buffers that steps write, same offsets as buffers
  scratch,              // of one program run
  boundary_in,          // values from the previous stage
  boundary_out,         // values for the next stage
  gradient_in,          // gradients of boundary_out, from the next stage
  gradient_out,         // gradients of boundary_in, for the previous stage
  random,               // the numbers 0, 1, 2 ... of streams of random bits
  label,                // the micro-batch's labels
  input,                // the micro-batch's samples; further inputs have the regions after this one
};
/// The number of regions. The further inputs of a model have the last max_inputs - 1 numbers,
/// beyond the enumerators.
inline constexpr int region_count = int(region::input) + max_inputs;
/// The region of an input of the model, counted from 0.
constexpr region input_region(int input) { return region(int(region::input) + input); }

/// A region and an offset; region::none for a value without memory.
struct address {
  region where = region::none;
  long offset = 0;  // bytes
};

/// A value that leaves the stage but is not computed in its boundary slot: a program copies the
/// value there at its end.
struct copied {
  address from, to;
  long bytes = 0;
};

/// An operand of a launch.
struct placed_operand {
  address at;
  long elements = 0;       // of a micro-batch; 0 for an operand that the launch only reads
  bool is_wide = false;    // has the type of parameters; else the type of values
  unsigned char axis = 0;  // of the rows that the launch writes: see op::axis
  short layer = 0;         // top-level, of the operand's group: a chain has several
};

/// One kernel launch of a program: operands [first, first + count) of the program's list. `group`:
/// the number of a group or, above all groups, of a chain.
struct launch {
  int group = 0;
  int first = 0, count = 0;
  int layer = 0;               // top-level, from 0; of several fused layers the first
  bool recomputed = false;     // repeats a launch of the forward program
  unsigned char axis = 0;      // of the rows: see op::axis
  unsigned char key_axis = 0;  // likewise of the keys of an attention to another sequence
  unsigned panels = 0;         // bit k: operand k is a transposed copy in panels
};

}  // namespace pp::detail
PIPE_OPTIMIZED_END
