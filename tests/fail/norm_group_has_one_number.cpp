// error: wrong::Layer<1, .*wrong::norm_group_has_one_number\b.*InstanceNorm.*Found<6>
// SPDX-License-Identifier: BSL-1.0
//
// A single number less its mean is 0.
#include <pipe/pipe.hpp>

using namespace pp;

#ifdef PIPE_EXPECT_OK
struct Net : Model<Input<2, 3>, Linear<6>, InstanceNorm, Linear<2>, MSE> {};
#else
struct Net : Model<Input<3>, Linear<6>, InstanceNorm, Linear<2>, MSE> {};
#endif

using Trainer = Pipeline<Net, PortableHost>;
#include "program.hpp"
