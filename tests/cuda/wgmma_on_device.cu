// SPDX-License-Identifier: BSL-1.0
//
// A trainer whose large products run by wgmma, on a Hopper GPU or from PTX: it learns what one with
// the kernels for every GPU learns.
#include "catch.hpp"

#include <cmath>
#include <vector>

#include <pipe/pipe.hpp>

using namespace pp;

namespace {

struct Net : Model<Input<16>, Linear<1160>, ReLU, Linear<8>, MSE> {};

struct learnt {
  std::vector<double> losses;
  std::vector<float> weights;
};
template <class Products>
learnt learn() {
  using Trainer = Pipeline<Net, MicroBatchSize<1000>, MicroBatches<1>, SGD, BF16, Products, Cuda>;
  Trainer trainer({.seed = 3, .optimizer = {.learning_rate = 0.02f}});
  std::vector<float> x(1000 * 16), y(1000 * 8);
  for (std::size_t i = 0; i < x.size(); ++i)
    x[i] = float(math::random_block(1, 1, i).word[0] % 64) / 32 - 1;
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = x[i * 7 % x.size()];
  learnt all;
  for (int step = 0; step < 2; ++step) all.losses.push_back(trainer.step({x, y}).loss);
  for (auto const& p : trainer.parameters())
    all.weights.insert(all.weights.end(), p.values.begin(), p.values.end());
  return all;
}

}  // namespace

TEST_CASE("a trainer learns the same by products of wgmma", "[gpu]") {
  cudaDeviceProp p{};
  cuda::check(cudaGetDeviceProperties(&p, 0), "properties");
  if (p.major != 9) {
    WARN("no GPU of compute capability 9.0");
    return;
  }
  learnt const expected = learn<OwnProducts>(), found = learn<WgmmaProducts>();
  REQUIRE(found.weights.size() == expected.weights.size());
  for (std::size_t i = 0; i < expected.losses.size(); ++i)
    CHECK(std::fabs(found.losses[i] - expected.losses[i]) < 1e-3 * expected.losses[i]);
  CHECK(found.losses[1] < found.losses[0]);
  double most = 0;
  for (std::size_t i = 0; i < expected.weights.size(); ++i)
    most = std::fmax(most, std::fabs(double(found.weights[i]) - double(expected.weights[i])));
  CHECK(most < 1e-3);
}
