// error: argument list for class template "pp::Stages" is missing
// compilers: nvcc
// SPDX-License-Identifier: BSL-1.0
//
// A name without its template arguments is no type. g++ and clang++ then have no `Trainer` and say so at each of its uses; nvcc goes on.
#include <pipe/pipe.hpp>

using namespace pp;

struct Net : Model<Input<3>, Linear<4>, Linear<2>, MSE> {};

#ifdef PIPE_EXPECT_OK
using Trainer = Pipeline<Net, PortableHost, AdamW, Stages<1>>;
#else
using Trainer = Pipeline<Net, PortableHost, AdamW, Stages>;
#endif
#include "program.hpp"
