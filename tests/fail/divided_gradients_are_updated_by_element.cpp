// error: wrong::divided_gradients_are_updated_by_element, .*ZeRO<2>.*Muon
// SPDX-License-Identifier: BSL-1.0
//
// Muon needs the gradients of a matrix.
#include <pipe/pipe.hpp>

using namespace pp;

struct Net : Model<Input<3>, Linear<4>, Linear<2>, MSE> {};

#ifdef PIPE_EXPECT_OK
using Trainer = Pipeline<Net, PortableHost, Muon, ZeRO<1>>;
#else
using Trainer = Pipeline<Net, PortableHost, Muon, ZeRO<2>>;
#endif

#include "program.hpp"
