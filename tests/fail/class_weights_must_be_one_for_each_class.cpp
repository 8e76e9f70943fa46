// error: wrong::Layer<2, .*wrong::class_weights_must_be_one_for_each_class\b.*With<.*CrossEntropy, .*ClassWeights<1, 2>.*Expected<3>.*Found<2>
// SPDX-License-Identifier: BSL-1.0
//
// Three classes and two weights.
#include <pipe/pipe.hpp>

using namespace pp;

#ifdef PIPE_EXPECT_OK
struct Net : Model<Input<3>, Linear<4>, Linear<3>, With<CrossEntropy, ClassWeights<1, 2, 0>>> {};
#else
struct Net : Model<Input<3>, Linear<4>, Linear<3>, With<CrossEntropy, ClassWeights<1, 2>>> {};
#endif

using Trainer = Pipeline<Net, Stages<2>, MicroBatches<2>, PortableHost, AdamW>;
#include "program.hpp"
