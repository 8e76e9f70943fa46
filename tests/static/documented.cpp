// SPDX-License-Identifier: BSL-1.0
//
// Short code of the pages that no other file has. Compiling is passing.
#include <cmath>
#include <cstdio>
#include <iostream>
#include <optional>
#include <vector>

#include <pipe/pipe.hpp>
#include <pipe/weights/weights.hpp>

#include "../../examples/models/hub/resnet.hpp"
#include "../../examples/models/resnet.hpp"

using namespace pp;

namespace {

struct GPT : Model<Tokens<256, 16>, Embedding<8>, Residual<LayerNorm, Attention<2>>, Linear<256>,
                   CrossEntropy> {};

namespace one_gpu {
// [cuda]
using Trainer = Pipeline<GPT, Stages<4>, MicroBatches<8>, OneFOneB, AdamW, Cuda>;
// [/cuda]
}  // namespace one_gpu

namespace several_gpus {
// [devices]
using Trainer =
    Pipeline<GPT, Stages<8>, MicroBatches<32>, ZeroBubbleH1, AdamW, BF16, Cuda, Devices<4>>;
// [/devices]
}  // namespace several_gpus

namespace layers_of_layers {
// [feed_forward]
template <int Width>
using FeedForward = Residual<RMSNorm, Linear<8 * Width, NoBias>, SwiGLU, Linear<Width, NoBias>>;
// [/feed_forward]
struct Net : Model<Input<8>, FeedForward<8>, Linear<2>, CrossEntropy> {};
static_assert(Net::valid);
}  // namespace layers_of_layers

namespace targets {
struct Measured : ElementLoss<Measured, Target<"variance">> {
  template <class T>
  PIPE_HD static T value(T x, T target, T variance) {
    return (x - target) * (x - target) / (T(2) * variance);
  }
  template <class T>
  PIPE_HD static T slope(T x, T target, T variance) {
    return (x - target) / variance;
  }
};
using Trainer = Pipeline<Model<Input<2>, Linear<1>, Measured>>;

[[maybe_unused]] void train(Trainer& trainer, std::vector<float> const& inputs,
                            std::vector<float> const& targets,
                            std::vector<float> const& variances) {
  // [variance]
  Trainer::batch b{inputs, targets};
  b.set<"variance">(variances);  // as many numbers as targets
  trainer.step(b);
  // [/variance]
}
}  // namespace targets

namespace settings {
struct Net : Model<Input<8>, Linear<2>, CrossEntropy> {};

[[maybe_unused]] void optimize(Pipeline<Net, AdamW>::batch const& batch) {
  // [optimizer]
  using Trainer = Pipeline<Net, AdamW>;
  Trainer trainer({.optimizer = {.learning_rate = 3e-4, .weight_decay = 0.1}, .clip_norm = 1});
  // [/optimizer]
  trainer.step(batch);
}

[[maybe_unused]] void correct() {
  using Trainer = Pipeline<Net, ErrorFeedback<SGD>>;
  // [error_feedback]
  Trainer trainer({.optimizer = {{.learning_rate = 0.02, .momentum = 0.95}, 1}});
  // [/error_feedback]
}

using Trainer = Pipeline<Net, AdamW>;

[[maybe_unused]] void construct() {
  // [settings]
  Trainer trainer(
      {.seed = 1, .optimizer = {.learning_rate = 3e-4, .weight_decay = 0.1}, .clip_norm = 1});
  // [/settings]
}

[[maybe_unused]] void schedules() {
  // [learning_rates]
  Trainer::settings all;
  all.learning_rate_factor = learning_rate_schedule{
      .shape = decay_shape::cosine, .warm_up = 100, .steps = 5000, .floor = 0.1};
  all.learning_rate_factor = warm_up_stable_decay(100, 1000, 5000);
  all.learning_rate_factor = [](long step) { return 1 / std::sqrt(double(step)); };
  // [/learning_rates]
}

[[maybe_unused]] void print(Trainer::batch const& batch) {
  Trainer trainer;
  // [losses]
  auto const result = trainer.step(batch);
  for (int i = 0; i < result.losses.size(); ++i)
    std::cout << Trainer::loss_names[i] << " " << result.losses[i] << "\n";
  // [/losses]
}

[[maybe_unused]] void train(std::vector<float> const& images, std::vector<int> const& labels) {
  // [steps]
  Trainer trainer({.seed = 1, .optimizer = {.learning_rate = 1e-3}});
  for (int step = 0; step < 100; ++step) std::printf("%.4f\n", trainer.step({images, labels}).loss);
  // [/steps]
}
}  // namespace settings

/// Of a template, so that no kernel of ResNet-50 is compiled.
template <class Unused>
void load() {
  // [resnet]
  pp::Pipeline<models::ResNet50, pp::MicroBatchSize<8>> trainer;
  pp::load_weights(trainer, "resnet50.safetensors", pp::load_policy::strict,
                   models::hub::torchvision_resnet<models::ResNet50>());
  // [/resnet]
}

}  // namespace
