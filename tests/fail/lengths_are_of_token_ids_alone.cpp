// error: wrong::lengths_are_of_token_ids_alone, .*Net.*Lengths<8, 8>
// SPDX-License-Identifier: BSL-1.0
//
// Numbers have no -1 that says where a sample ends.
#include <pipe/pipe.hpp>

using namespace pp;

struct Net : Model<Input<8, 3>, Linear<4>, MeanPool, Linear<2>, MSE> {};

#ifdef PIPE_EXPECT_OK
using Trainer = Pipeline<Net, PortableHost, NoLengths>;
#else
using Trainer = Pipeline<Net, PortableHost, Lengths<>>;
#endif

#include "program.hpp"
