// error: wrong::Layer<1, .*wrong::loss_needs_two_classes\b.*CrossEntropy.*Found<1>
// SPDX-License-Identifier: BSL-1.0
//
// The softmax of one number is 1.
#include <pipe/pipe.hpp>

using namespace pp;

#ifdef PIPE_EXPECT_OK
struct Net : Model<Input<3>, Linear<2>, CrossEntropy> {};
#else
struct Net : Model<Input<3>, Linear<1>, CrossEntropy> {};
#endif

using Trainer = Pipeline<Net, PortableHost, AdamW>;
#include "program.hpp"
