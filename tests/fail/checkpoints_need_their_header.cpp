// error: wrong::checkpoints_need_their_header,
// SPDX-License-Identifier: BSL-1.0
//
// What saves a run is in a header that other programs do not read.
#include <pipe/pipe.hpp>

#ifdef PIPE_EXPECT_OK
#include <pipe/checkpoint/checkpoint.hpp>
#endif

using namespace pp;

struct Net : Model<Input<3>, Linear<4>, Linear<2>, MSE> {};

void interrupt(Pipeline<Net, PortableHost>& trainer) {
  trainer.save("run.safetensors");
  trainer.load("run.safetensors");
}
