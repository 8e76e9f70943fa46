// SPDX-License-Identifier: BSL-1.0
#include "../run.hpp"

static compiled_in<pp::Interleaved<2>> const schedule;
