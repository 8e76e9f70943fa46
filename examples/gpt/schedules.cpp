// SPDX-License-Identifier: BSL-1.0
//
// The schedules on the CPU, in one file, since they share their kernels.
#include "run.hpp"

// [plan]
// By estimate; measured times are what they are.
static_assert(profiled || Trainer<pp::OneFOneB>::plan.imbalance < 1.10);
static_assert(profiled || Trainer<pp::OneFOneB>::plan.bubble < 0.35);
// [/plan]

static all_schedules<pp::Host> const schedules;
