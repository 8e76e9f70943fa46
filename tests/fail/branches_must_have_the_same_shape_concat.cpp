// error: wrong::Layer<1, .*wrong::branches_must_have_the_same_shape\b.*ConcatOf<.*Expected<2, 8>.*Found<16>
// SPDX-License-Identifier: BSL-1.0
//
// Results that stand side by side differ in their last extent only.
#include <pipe/pipe.hpp>

using namespace pp;

#ifdef PIPE_EXPECT_OK
struct Net : Model<Input<2, 3>, Linear<8>, ConcatOf<Linear<8>, Tanh>, Linear<8>, MSE> {};
#else
struct Net : Model<Input<2, 3>, Linear<8>, ConcatOf<Linear<8>, Flatten>, Linear<8>, MSE> {};
#endif

using Trainer = Pipeline<Net, Stages<2>, MicroBatches<2>, PortableHost, AdamW>;
#include "program.hpp"
