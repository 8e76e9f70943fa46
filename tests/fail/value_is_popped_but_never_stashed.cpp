// error: wrong::Layer<2, .*wrong::value_is_popped_but_never_stashed\b.*Pop<.*Called<'s', 'k', 'i', 'p'>
// SPDX-License-Identifier: BSL-1.0
//
// A name that nobody has used before.
#include <pipe/pipe.hpp>

using namespace pp;

#ifdef PIPE_EXPECT_OK
struct Net
    : Model<Input<3>, Linear<4>, Stash<"skip">, Tanh, Linear<4>, Pop<"skip">, Linear<2>, MSE> {};
#else
struct Net : Model<Input<3>, Linear<4>, Stash<"skin">, Tanh, Pop<"skip">, Linear<4>, Pop<"skin">,
                   Linear<2>, MSE> {};
#endif

using Trainer = Pipeline<Net, Stages<2>, MicroBatches<2>, PortableHost, AdamW>;
#include "program.hpp"
