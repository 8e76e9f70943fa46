// SPDX-License-Identifier: BSL-1.0
#include "run.hpp"

int run_deep(options const& o) { return run<Trainer<Deep>>(o); }
