// error: wrong::recompute_needs_kinds_of_op, .*Recompute<
// SPDX-License-Identifier: BSL-1.0
//
// Nothing is recomputed without the option; with it, at least one kind.
#include <pipe/pipe.hpp>

using namespace pp;

struct Net : Model<Input<3>, Linear<4>, Linear<2>, MSE> {};

#ifdef PIPE_EXPECT_OK
using Trainer = Pipeline<Net, Recompute<op_kind::norm>, PortableHost>;
#else
using Trainer = Pipeline<Net, Recompute<>, PortableHost>;
#endif

static_assert(Trainer::plan.bubble < 1);
