// error: wrong::replicas_of_a_stage_need_shared_memory_or_streams, .*StageReplicas<2, 1>.*Posted
// SPDX-License-Identifier: BSL-1.0
//
// Replicas of a stage read one copy of its weights, which a transport that copies does not show
// them, or send each other sums while they compute, which one without streams cannot.
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

struct Net : Model<Input<3>, Linear<4>, Tanh, Linear<2>, MSE> {};

#ifdef PIPE_EXPECT_OK
using Trainer = Pipeline<Net, PortableHost, AdamW, StageReplicas<2, 1>, InProcess>;
#else
using Trainer = Pipeline<Net, PortableHost, AdamW, StageReplicas<2, 1>, Posted>;
#endif

#include "program.hpp"
