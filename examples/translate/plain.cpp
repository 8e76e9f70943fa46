// SPDX-License-Identifier: BSL-1.0
#include "run.hpp"

int run_plain(options const& o) { return run<Trainer<Plain>>(o); }
