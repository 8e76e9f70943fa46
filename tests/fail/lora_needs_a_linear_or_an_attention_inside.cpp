// error: wrong::Layer<0, .*wrong::lora_needs_a_linear_or_an_attention_inside\b.*LoRA<
// SPDX-License-Identifier: BSL-1.0
//
// There is nothing to adapt in a norm.
#include <pipe/pipe.hpp>
using namespace pp;

#ifdef PIPE_EXPECT_OK
struct Net : Model<Input<4>, LoRA<Seq<LayerNorm, Linear<4>>, 2>, Linear<2>, MSE> {};
#else
struct Net : Model<Input<4>, LoRA<LayerNorm, 2>, Linear<2>, MSE> {};
#endif
using Trainer = Pipeline<Net, MicroBatches<2>, PortableHost>;
#include "program.hpp"
