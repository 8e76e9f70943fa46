// error: wrong::Layer<1, .*wrong::ratio_is_out_of_range\b.*Epsilon<0(LL)?(, 1(LL)?)?>.*Found<0, 1>
// SPDX-License-Identifier: BSL-1.0
//
// A row of equal numbers would be divided by zero.
#include <pipe/pipe.hpp>

using namespace pp;

#ifdef PIPE_EXPECT_OK
struct Net : Model<Input<3>, Linear<4>, With<LayerNorm, Epsilon<1, 1'000'000>>, Linear<2>, MSE> {};
#else
struct Net : Model<Input<3>, Linear<4>, With<LayerNorm, Epsilon<0>>, Linear<2>, MSE> {};
#endif

using Trainer = Pipeline<Net, MicroBatches<2>, PortableHost, AdamW>;
#include "program.hpp"
