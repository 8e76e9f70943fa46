// error: wrong::input_gradients_are_of_one_process_on_the_host, .*InputGradients.*Tcp
// SPDX-License-Identifier: BSL-1.0
//
// Several processes.
#include <pipe/pipe.hpp>
#include <pipe/tcp.hpp>

using namespace pp;

struct Net : Model<Input<3>, Linear<4>, Tanh, Linear<2>, MSE> {};

#ifdef PIPE_EXPECT_OK
using Trainer = Pipeline<Net, PortableHost, Stages<2>, InputGradients>;
#else
using Trainer = Pipeline<Net, PortableHost, Stages<2>, InputGradients, Tcp>;
#endif

#include "program.hpp"
