// error: wrong::optimizer_has_no_passes_for_cuda, .*Cuda.*ErrorFeedback<.*AdamW
// compilers: nvcc
// SPDX-License-Identifier: BSL-1.0
//
// On a GPU an element has two states at most.
#include <pipe/pipe.hpp>

using namespace pp;

struct Net : Model<Input<3>, Linear<4>, Tanh, Linear<2>, MSE> {};

#ifdef PIPE_EXPECT_OK
using Trainer = Pipeline<Net, ErrorFeedback<Lion>, Cuda>;
#else
using Trainer = Pipeline<Net, ErrorFeedback<AdamW>, Cuda>;
#endif

static_assert(Trainer::plan.imbalance < 10);
