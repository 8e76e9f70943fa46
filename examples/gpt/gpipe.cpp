// SPDX-License-Identifier: BSL-1.0
#include "run.hpp"

void run_gpipe(options const& o) { run<Trainer<pp::GPipe>>(o); }
