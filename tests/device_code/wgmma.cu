// SPDX-License-Identifier: BSL-1.0
//
// A program of products by wgmma, for tests/cuda/device_code.py: the layers of a transformer's MLP,
// forward and backward, in both kinds of tiles.
#include <vector>

#include <pipe/pipe.hpp>

using namespace pp;

struct Mlp : Model<Input<768>, Linear<3072>, GELUTanh, Linear<768>, MSE> {};

int main() {
  using Trainer = Pipeline<Mlp, MicroBatchSize<8192>, AdamW, BF16, WgmmaProducts, Cuda>;
  Trainer trainer({.seed = 1});
  std::vector<float> const x(8192 * 768, 1.0f);
  return trainer.step({x, x}).loss > 0 ? 0 : 1;
}
