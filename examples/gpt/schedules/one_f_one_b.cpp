// SPDX-License-Identifier: BSL-1.0
#include "../run.hpp"

// [plan]
// By estimate; measured times are what they are.
static_assert(profiled || Trainer<pp::OneFOneB>::plan.imbalance < 1.10);
static_assert(profiled || Trainer<pp::OneFOneB>::plan.bubble < 0.35);
// [/plan]

static compiled_in<pp::OneFOneB> const schedule;
