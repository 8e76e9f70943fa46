// error: wrong::Layer<1, .*wrong::layer_is_derived_from_this_and_named_itself\b.*Activation<.*ReLU
// SPDX-License-Identifier: BSL-1.0
//
// An activation is derived from activation, and the list names the activation.
#include <pipe/pipe.hpp>

using namespace pp;

struct Twice : ReLU {};

#ifdef PIPE_EXPECT_OK
struct Net : Model<Input<3>, Linear<4>, Twice, Linear<2>, MSE> {};
#else
struct Net : Model<Input<3>, Linear<4>, Activation<ReLU>, Linear<2>, MSE> {};
#endif
