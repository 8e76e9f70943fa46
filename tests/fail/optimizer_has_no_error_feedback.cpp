// error: wrong::optimizer_has_no_error_feedback, .*LAMB
// SPDX-License-Identifier: BSL-1.0
//
// An optimizer whose update depends on the norm of the weights has no error feedback.
#include <pipe/pipe.hpp>

using namespace pp;

struct Net : Model<Input<3>, Linear<4>, Tanh, Linear<2>, MSE> {};

#ifdef PIPE_EXPECT_OK
using Trainer = Pipeline<Net, ErrorFeedback<Muon>, PortableHost>;
#else
using Trainer = Pipeline<Net, ErrorFeedback<LAMB>, PortableHost>;
#endif

static_assert(Trainer::plan.imbalance < 10);
