// SPDX-License-Identifier: BSL-1.0
//
// What the stand-in for CUDA's runtime tells those for libraries above it.
#pragma once

#include <cstddef>

/// Whether [p, p + bytes) lies in one allocation of the device.
extern "C" bool pipe_ptx_holds(void const* p, std::size_t bytes);

/// The first call of a program whose kernels are to be mutated: see mutants.hpp. It returns once
/// for each mutant, in a process of its own.
extern "C" void pipe_ptx_run_mutants();
