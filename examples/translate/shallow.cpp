// SPDX-License-Identifier: BSL-1.0
#include "run.hpp"

int run_shallow(options const& o) { return run<Trainer<Shallow>>(o); }
