// SPDX-License-Identifier: BSL-1.0
//
// A kernel in PTX as it is executed: registers have places, labels are positions, and each
// instruction has a function that runs it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace ptx {

/// A program that cannot be executed, or does what no program may do.
struct error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// One bit for each lane of a warp.
using lanes = std::uint32_t;
inline constexpr int warp_size = 32;
inline constexpr lanes all_lanes = 0xffffffff;

/// Where the 32 values of an operand are: a register, or a constant (`index` -1).
struct operand {
  int index = -1;  ///< of the register, for what is known of it
  std::uint32_t at =
      0;  ///< bytes from the start of the warp's registers, or of the kernel's constants
  std::uint8_t width = 0;  ///< bytes of a lane's value; 0: a predicate, one bit for each lane
};

struct warp;
struct instruction;
using function = void (*)(warp&, instruction const&, lanes);

struct instruction {
  function run = nullptr;
  operand guard;  ///< `@%p`: a predicate, or none (index -1)
  bool guard_is_negated = false;
  int count = 0;  ///< operands in use
  std::array<operand, 20> of{};
  std::vector<operand> many;  ///< registers of one operand in braces, of any number
  std::int64_t number = 0;    ///< target of a branch, or offset of an address; of the first of two
  std::int64_t number_2 = 0;  ///< of the second address
  int opcode = 0;             ///< index into opcode_names()
  int line = 0;
  int join = -1;  ///< of a branch: where lanes that take it meet those that do not; -1: nowhere
};

/// Registers that say where a thread is.
enum class special {
  tid_x,
  tid_y,
  tid_z,
  ntid_x,
  ntid_y,
  ntid_z,
  ctaid_x,
  ctaid_y,
  ctaid_z,
  nctaid_x,
  nctaid_y,
  nctaid_z,
  laneid,
  warpid,
  lanemask_eq,
  lanemask_lt,
  lanemask_le,
  lanemask_gt,
  lanemask_ge
};

struct parameter {
  std::size_t offset = 0, bytes = 0;
};

struct kernel {
  std::string name;
  std::vector<parameter> in_order;  ///< its parameters
  std::size_t parameter_bytes = 0;
  std::vector<operand> registers;
  std::vector<std::string> register_names;
  std::vector<std::pair<special, operand>> specials;  ///< those that are in use
  std::size_t register_bytes = 0;
  std::vector<unsigned char> constants;  ///< 32 equal values each
  std::size_t shared_bytes = 0, local_bytes = 0;
  int most_threads = 1024;
  /// Whether it may move values that nobody wrote to shared memory and back: CUB's kernels do, in
  /// place of items behind the last one.
  bool moves_unknown = false;
  std::vector<instruction> code;
  std::vector<std::string> text;  ///< of each instruction, for messages
};

/// Reads the kernels of a PTX file. Throws error with the line for what it does not know.
std::map<std::string, kernel> read(char const* text);

/// Names of the opcodes that were read, by instruction::opcode.
std::vector<std::string> const& opcode_names();

}  // namespace ptx
