// SPDX-License-Identifier: BSL-1.0
//
// The schedules whose steps overlap, on the CPU.
#ifdef EXAMPLE_NONE_IS_COMPILED
#include "compiled_in.hpp"
#else
#include "run.hpp"
#endif

static compiled_in<pp::Host, pp::Steady<pp::OneFOneB>, pp::Steady<pp::ZeroBubbleH2>,
                   pp::Steady<pp::ZeroBubbleV>, pp::PipeDream<>, pp::PipeDream2BW<>,
                   pp::PACI<>> const schedules;
