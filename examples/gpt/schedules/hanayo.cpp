// SPDX-License-Identifier: BSL-1.0
#include "../run.hpp"

static compiled_in<pp::Hanayo<>> const schedule;
