// error: wrong::lengths_do_not_go_with, .*Lengths<8, 8>.*Tcp
// SPDX-License-Identifier: BSL-1.0
//
// Messages between processes have the sizes of the longest samples.
#include <pipe/pipe.hpp>
#include <pipe/tcp.hpp>

using namespace pp;

struct Net : Model<Tokens<7, 8>, Embedding<4>, Linear<7>, CrossEntropy> {};

#ifdef PIPE_EXPECT_OK
using Trainer = Pipeline<Net, PortableHost, Lengths<>, InProcess>;
#else
using Trainer = Pipeline<Net, PortableHost, Lengths<>, Tcp>;
#endif

#include "program.hpp"
