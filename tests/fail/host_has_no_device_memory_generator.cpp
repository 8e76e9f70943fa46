// error: wrong::host_has_no_device_memory, .*HostKernels<
// compilers: nvcc
// SPDX-License-Identifier: BSL-1.0
//
// Texts in a GPU's memory need a trainer there.
#include <pipe/infer/generate_on_device.cuh>
#include <pipe/pipe.hpp>

using namespace pp;

struct Net : Model<Tokens<7, 3>, Embedding<4>, Attention<2>, Linear<7>, CrossEntropy> {};
using Trainer = Pipeline<Net, PortableHost>;

#ifdef PIPE_EXPECT_OK
using generator = decoder<Trainer>;
#else
using generator = device_generator<Trainer>;
#endif

int room(Trainer& trainer) {
  generator const on(trainer);
  return generator::context;
}
