// SPDX-License-Identifier: BSL-1.0
//
// The one source file that has the trainer.
// [source]
#include "predictor.hpp"

#include <pipe/pipe.hpp>

struct Line : pp::Model<pp::Input<1>, pp::Linear<1>, pp::MSE> {};
struct predictor::network {
  pp::Pipeline<Line, pp::MicroBatches<2>, pp::MicroBatchSize<4>> trainer{
      {.optimizer = {.learning_rate = 0.05}}};
};

predictor::predictor() : network_(std::make_unique<network>()) {}
predictor::~predictor() = default;
double predictor::train(std::span<float const> inputs, std::span<float const> labels) {
  return network_->trainer.step({inputs, labels}).loss;
}
float predictor::predict(float input) {
  float output = 0;
  network_->trainer.forward({&input, 1}, {&output, 1});
  return output;
}
// [/source]
