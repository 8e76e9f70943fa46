// SPDX-License-Identifier: BSL-1.0
//
// What each opcode does. Their meaning is that of the PTX ISA 9.0, sections 9.7; an opcode that is
// not in the table is an error which names it.
#pragma once

#include <map>
#include <string>

#include "program.hpp"

namespace ptx {

struct opcode {
  function run = nullptr;
  /// A letter for each operand, those in braces one by one: 2, 4, 8 bytes of a lane's value, p a
  /// predicate, a an address, l a label, m a list in braces of any number of registers.
  std::string operands;
  int least = 0;  ///< operands that are there, where some may be missing; 0: all
};

/// By full name, as it stands in the text: `add.s32`. `mov` between a register and its parts is
/// `mov.b64.unpack` or `mov.b64.pack`.
std::map<std::string, opcode> const& opcodes();

using opcode_table = std::map<std::string, opcode>;
void add_integers(opcode_table& t);
void add_floats(opcode_table& t);
void add_conversions(opcode_table& t);
void add_memory(opcode_table& t);
void add_warp(opcode_table& t);
void add_hopper(opcode_table& t);

}  // namespace ptx
