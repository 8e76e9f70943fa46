// SPDX-License-Identifier: BSL-1.0
//
// The schedules on the CPU, in one file, since they share their kernels.
#include "run.hpp"

template <class T>
static int process_of() {
  if constexpr (requires { T::process(); })
    return T::process();
  else
    return 0;
}
int process() { return process_of<Transport>(); }

// [plan]
// By estimate; measured times are what they are.
static_assert(profiled || Trainer<pp::OneFOneB>::plan.imbalance < 1.10);
static_assert(profiled || Trainer<pp::OneFOneB>::plan.bubble < 0.35);
// [/plan]

static all_schedules<pp::Host> const schedules;
