// error: wrong::host_has_no_device_memory, .*HostKernels<
// SPDX-License-Identifier: BSL-1.0
//
// Outputs of a trainer on the host stay in its memory.
#include <pipe/pipe.hpp>

using namespace pp;

struct Net : Model<Input<3>, Linear<4>, Linear<2>, MSE> {};
using Trainer = Pipeline<Net, PortableHost>;

#ifdef PIPE_EXPECT_OK
using numbers = std::span<float>;
#else
using numbers = device_span<float>;
#endif

void first(Trainer& trainer, Trainer::batch const& b, numbers outputs) {
  trainer.forward(b, outputs);
}
