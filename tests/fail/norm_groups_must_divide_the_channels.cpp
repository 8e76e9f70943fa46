// error: wrong::Layer<1, .*wrong::norm_groups_must_divide_the_channels\b.*GroupNorm<4.*Found<6>
// SPDX-License-Identifier: BSL-1.0
//
// Each group has as many channels.
#include <pipe/pipe.hpp>

using namespace pp;

#ifdef PIPE_EXPECT_OK
struct Net : Model<Input<3>, Linear<6>, GroupNorm<3>, Linear<2>, MSE> {};
#else
struct Net : Model<Input<3>, Linear<6>, GroupNorm<4>, Linear<2>, MSE> {};
#endif

using Trainer = Pipeline<Net, PortableHost>;
#include "program.hpp"
