// error: wrong::stages_must_update_independently, .*PipeDream<.*Net
// SPDX-License-Identifier: BSL-1.0
//
// A parameter of two stages, which update at different times.
#include <pipe/pipe.hpp>
#include <pipe/schedule/catalog/families.hpp>

using namespace pp;

struct Net : Model<Tokens<9, 4>, Named<"table", Embedding<4>>, Linear<4>, GELUTanh, Tied<"table">,
                   CrossEntropy> {};

#ifdef PIPE_EXPECT_OK
using Trainer = Pipeline<Net, PortableHost, AdamW, Stages<2>, MicroBatches<4>, Steady<>>;
#else
using Trainer = Pipeline<Net, PortableHost, AdamW, Stages<2>, MicroBatches<4>, PipeDream<>>;
#endif

#include "program.hpp"
