// error: wrong::Layer<0, .*wrong::model_has_too_many_inputs\b.*Named<.*Input<5>.*Expected<4>
// SPDX-License-Identifier: BSL-1.0
//
// Four inputs are enough for everybody.
#include <pipe/pipe.hpp>

using namespace pp;

#ifdef PIPE_EXPECT_OK
struct Net : Model<Input<1>, Stash<"1">, Named<"b", Input<2>>, Stash<"2">, Named<"c", Input<3>>,
                   Stash<"3">, Named<"d", Input<4>>, Pop<"3", Concat>, Pop<"2", Concat>,
                   Pop<"1", Concat>, Linear<2>, MSE> {};
#else
struct Net
    : Model<Input<1>, Stash<"1">, Named<"b", Input<2>>, Stash<"2">, Named<"c", Input<3>>,
            Stash<"3">, Named<"d", Input<4>>, Stash<"4">, Named<"e", Input<5>>, Pop<"4", Concat>,
            Pop<"3", Concat>, Pop<"2", Concat>, Pop<"1", Concat>, Linear<2>, MSE> {};
#endif

using Trainer = Pipeline<Net, PortableHost, AdamW>;
#include "program.hpp"
