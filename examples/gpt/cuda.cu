// SPDX-License-Identifier: BSL-1.0
//
// The same program on a GPU, compiled by nvcc: the same schedules.
#include "run.hpp"

static all_schedules<pp::Cuda> const schedules;
