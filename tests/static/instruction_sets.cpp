// SPDX-License-Identifier: BSL-1.0
//
// A program that says for which instruction sets its kernels are compiled.
#include <type_traits>

#define PIPE_INSTRUCTION_SETS avx512
#include <pipe/pipe.hpp>

static_assert(std::is_same_v<pp::Host, pp::HostKernels<pp::host::isa::avx512>>);
