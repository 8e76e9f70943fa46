// error: wrong::replicas_of_a_stage_need_shared_memory_or_streams, .*Chimera.*Posted
// SPDX-License-Identifier: BSL-1.0
//
// Two directions need every weight on two ranks, a wave needs it on one.
#include <pipe/pipe.hpp>

using namespace pp;
using namespace pp::detail;

/// Ranks without each other's memory, as of several processes.
struct letters : in_process {
  static constexpr bool copies = true;
  using in_process::in_process;
};
struct Posted {
  using transport = letters;
};

struct Net : Model<Input<3>, Linear<4>, Tanh, Linear<4>, Linear<2>, MSE> {};

#ifdef PIPE_EXPECT_OK
using Trainer = Pipeline<Net, PortableHost, AdamW, Stages<4>, MicroBatches<4>, Chimera>;
#else
using Trainer = Pipeline<Net, PortableHost, AdamW, Stages<4>, MicroBatches<4>, Chimera, Posted>;
#endif

#include "program.hpp"
