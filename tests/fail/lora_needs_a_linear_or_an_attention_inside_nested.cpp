// error: wrong::Layer<0, .*wrong::lora_needs_a_linear_or_an_attention_inside\b.*LoRA<.*LoRA<.*Linear<4>
// SPDX-License-Identifier: BSL-1.0
//
// What the inner one adapts is nothing for the outer one to adapt.
#include <pipe/pipe.hpp>
using namespace pp;

#ifdef PIPE_EXPECT_OK
struct Net : Model<Input<4>, LoRA<Seq<Linear<4>, LoRA<Linear<4>, 2>>, 3>, Linear<2>, MSE> {};
#else
struct Net : Model<Input<4>, LoRA<LoRA<Linear<4>, 2>, 3>, Linear<2>, MSE> {};
#endif
using Trainer = Pipeline<Net, MicroBatches<2>, PortableHost>;
#include "program.hpp"
