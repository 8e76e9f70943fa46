// error: wrong::number_must_be_positive, .*MemoryLimit<-1L?>
// SPDX-License-Identifier: BSL-1.0
//
// No limit is 0, not a negative number.
#include <pipe/pipe.hpp>

using namespace pp;

struct Net : Model<Input<3>, Linear<4>, Linear<2>, MSE> {};

#ifdef PIPE_EXPECT_OK
using Trainer = Pipeline<Net, PortableHost, AdamW, MemoryLimit<0>>;
#else
using Trainer = Pipeline<Net, PortableHost, AdamW, MemoryLimit<-1>>;
#endif

#include "program.hpp"
