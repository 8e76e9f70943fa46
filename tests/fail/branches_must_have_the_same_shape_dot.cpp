// error: wrong::Layer<1, .*wrong::branches_must_have_the_same_shape\b.*DotOf<.*Expected<2, 8>.*Found<2, 9>
// SPDX-License-Identifier: BSL-1.0
//
// Rows of a dot product are equally wide.
#include <pipe/pipe.hpp>

using namespace pp;

#ifdef PIPE_EXPECT_OK
struct Net : Model<Input<2, 3>, Linear<8>, DotOf<Linear<8>, Seq<LayerNorm, Linear<8>>>, MSE> {};
#else
struct Net : Model<Input<2, 3>, Linear<8>, DotOf<Linear<8>, Seq<LayerNorm, Linear<9>>>, MSE> {};
#endif

using Trainer = Pipeline<Net, Stages<2>, MicroBatches<2>, PortableHost, AdamW>;
#include "program.hpp"
