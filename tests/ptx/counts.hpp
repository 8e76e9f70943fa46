// SPDX-License-Identifier: BSL-1.0
//
// Work of kernels, counted while they are executed: warp instructions by kind, sectors of global
// memory, wavefronts of shared memory.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "program.hpp"
#include "warp.hpp"

namespace ptx {

/// Kinds of instructions. `copy`: cp.async; `special`: functions that a table unit approximates;
/// `parameter`: loads of arguments.
enum class work {
  product,
  matrix_load,
  global,
  shared,
  copy,
  special,
  division,
  floating,
  conversion,
  integer,
  exchange,
  branch,
  barrier,
  move,
  parameter,
  other,
  kinds
};

/// Accesses of warps to global memory. A sector has 32 bytes; each that an access touches is moved
/// whole.
struct global_counts {
  std::uint64_t accesses = 0, bytes = 0, sectors = 0;
};
/// Accesses of warps to shared memory, of 32 banks of 4 bytes. A wavefront gives each bank one
/// word. 8 bytes a lane are served half a warp at a time, 16 bytes a quarter, rows of matrices one
/// matrix at a time: `least` is the number of these turns, and conflicts are what is above.
struct shared_counts {
  std::uint64_t accesses = 0, bytes = 0, wavefronts = 0, least = 0;
};

struct counts {
  std::uint64_t launches = 0, blocks = 0;  ///< of all launches
  std::uint64_t counted_blocks = 0;        ///< executed, and counted below
  std::uint64_t threads = 0;               ///< of a block
  std::array<std::uint64_t, std::size_t(work::kinds)> instructions{};
  std::uint64_t operations = 0;  ///< of tensor cores: two for each product and its addition
  std::uint64_t generic = 0;     ///< accesses whose space is known at run time only
  global_counts loads, stores;
  shared_counts shared;

  /// Counts one instruction of a warp that is about to run.
  void add(warp const& w, instruction const& i, lanes active);
};

/// Counts by kernel, grid and block, written at exit as a table of tab-separated values whose first
/// line names the columns.
///
/// PIPE_PTX_COUNTS=FILE asks for it. PIPE_PTX_BLOCKS=N besides executes only N blocks, spread over
/// the grid, of the first launch of each row, and nothing of the others: what is computed is then
/// of no use, and a script scales counts by blocks / counted_blocks.
class count_table {
 public:
  count_table();
  ~count_table();
  count_table(count_table const&) = delete;
  count_table& operator=(count_table const&) = delete;

  bool is_asked() const { return !file_.empty(); }
  bool samples() const { return sample_.blocks != 0; }
  /// Where a launch is to be counted, and which of its blocks are to be executed.
  sample begin(kernel const& k, dimensions grid, dimensions threads, std::size_t shared_bytes);

 private:
  std::string file_;
  sample sample_;
  std::map<std::string, counts> rows_;
};

}  // namespace ptx
