// SPDX-License-Identifier: BSL-1.0
//
// Faults put into a program's kernels, one at a time: each must be found, by an error or by another
// result.
#pragma once

#include <map>
#include <string>

#include "program.hpp"

namespace ptx {

/// With PIPE_PTX_MUTANTS=FILE in the environment the process becomes the parent of others, which go
/// on from here: first one whose kernels are as they are, then one for each mutant of an
/// instruction that the first executed, where a copy of no bytes (zeros behind the end of a matrix)
/// does not count. It ends with 0 if all were killed, else 1.
///
///   barrier   without a bar.sync
///   wait      without a cp.async.wait_group or wait_all, or a wgmma.commit_group or wait_group
///   fence     without a wgmma.fence or fence.mbarrier_init
///   arrival   without an mbarrier.arrive
///   product   with two registers of a, or of b, of an mma swapped
///   shared    16 bytes further on in shared memory: ld, st, ldmatrix, cp.async
///
/// A mutant is killed when its process ends with another status or output than the first, or runs
/// far longer. FILE gets a line for each: `killed` or `survived`, kind, number, kernel, line of the
/// PTX, instruction. PIPE_PTX_SAMPLE=N takes N of them, the same each time;
/// PIPE_PTX_MUTANT=KIND:NUMBER only that one.
void run_mutants(std::map<std::string, kernel>& kernels);

}  // namespace ptx
