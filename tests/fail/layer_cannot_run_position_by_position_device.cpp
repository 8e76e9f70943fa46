// error: wrong::Layer<1, .*wrong::layer_cannot_run_position_by_position\b.*Attention<2, .*NotCausal
// compilers: nvcc
// SPDX-License-Identifier: BSL-1.0
//
// Logits that depend on later positions do not stand still while a text grows.
#include <pipe/infer/generate_on_device.cuh>
#include <pipe/pipe.hpp>

using namespace pp;

#ifdef PIPE_EXPECT_OK
struct Net : Model<Tokens<7, 3>, Embedding<4>, Attention<2>, Linear<7>, CrossEntropy> {};
#else
struct Net : Model<Tokens<7, 3>, Embedding<4>, Attention<2, NotCausal>, Linear<7>, CrossEntropy> {};
#endif
using Trainer = Pipeline<Net, Cuda>;

int room(Trainer& trainer) { return device_generator(trainer).texts(); }
