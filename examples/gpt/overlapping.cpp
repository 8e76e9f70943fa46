// SPDX-License-Identifier: BSL-1.0
//
// The schedules whose steps overlap: on the CPU, with all ranks in one process.
#include "run.hpp"

#ifndef EXAMPLE_USES_MPI
static compiled_in<pp::Host, pp::Steady<pp::OneFOneB>, pp::Steady<pp::ZeroBubbleH2>,
                   pp::Steady<pp::ZeroBubbleV>, pp::PipeDream<>, pp::PipeDream2BW<>,
                   pp::PACI<>> const schedules;
#endif
