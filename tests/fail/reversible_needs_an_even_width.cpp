// error: wrong::Layer<0, .*wrong::reversible_needs_an_even_width\b.*Reversible<.*Found<7>
// SPDX-License-Identifier: BSL-1.0
//
// A row has two halves.
#include <pipe/pipe.hpp>
using namespace pp;

#ifdef PIPE_EXPECT_OK
struct Net : Model<Input<8>, Reversible<Linear<4>, Tanh>, Linear<2>, MSE> {};
#else
struct Net : Model<Input<7>, Reversible<Linear<4>, Tanh>, Linear<2>, MSE> {};
#endif
using Trainer = Pipeline<Net, MicroBatches<2>, PortableHost>;
#include "program.hpp"
