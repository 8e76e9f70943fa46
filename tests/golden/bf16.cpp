// SPDX-License-Identifier: BSL-1.0
//
// Values in bfloat16 as PyTorch's functions compute them with the same rounding (bf16.py): nearer
// to these numbers than to those without rounding. Sums have another order, so now and then a
// number is rounded to its other neighbour.
#include "golden/record.hpp"

using namespace pp;

namespace {

struct Perceptron : Model<Input<20>, Linear<48>, ReLU, Linear<33>, GELU, Linear<5>, MSE> {};
struct Transformer
    : Model<Tokens<17, 8>, Embedding<16>, Positions, Residual<LayerNorm, Attention<2>>,
            Residual<LayerNorm, Linear<40>, GELU, Linear<16>>, LayerNorm, Linear<17>,
            CrossEntropy> {};

/// The norm of a difference over that of the numbers.
template <class A, class B>
double apart(A const& x, B const& from) {
  double difference = 0, norm = 0;
  REQUIRE(x.size() == from.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    double const d = double(x[i]) - double(from[i]);
    difference += d * d, norm += double(from[i]) * double(from[i]);
  }
  return std::sqrt(difference / norm);
}

/// Output, loss and gradients of a trainer, each at most `share` as far from the rounded numbers as
/// these are from those without rounding.
template <class Trainer>
void agrees(std::string const& name, double share) {
  golden::record const theirs("bf16", name), wide("bf16", name + "/wide");
  golden::batches<Trainer> const data(theirs);
  Trainer trainer;
  theirs.load(trainer);
  std::vector<float> output(std::size_t(data.samples() * Trainer::outputs_per_sample));
  trainer.forward(data[0], output);
  auto const expected = theirs.numbers<float>("output");
  INFO(name << " in " << Trainer::plan().stage_count << " stages");
  CHECK(apart(output, expected) < share * apart(wide.numbers<float>("output"), expected));
  for (float const y : output) REQUIRE(float(bf16(y)) == y);
  golden::check_near("loss", std::vector{trainer.gradients(data[0]).loss},
                     theirs.numbers<double>("loss"), 2e-4);
  auto const rounded = theirs.of_trained(trainer, "gradient"),
             exact = wide.of_trained(trainer, "gradient");
  auto const parameters = trainer.parameters();
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    INFO(parameters[i].name << ": " << apart(parameters[i].gradients, rounded[i]) << " of "
                            << apart(exact[i], rounded[i]));
    CHECK(apart(parameters[i].gradients, rounded[i]) < share * apart(exact[i], rounded[i]));
  }
}

}  // namespace

TEST_CASE("bfloat16 is rounded where PyTorch's functions round it", "[golden]") {
  using portable = PortableHost;
  agrees<Pipeline<Perceptron, BF16, portable, MicroBatches<2>, MicroBatchSize<16>>>("perceptron",
                                                                                    0.2);
  agrees<Pipeline<Perceptron, BF16, Host, Stages<2>, MicroBatches<2>, MicroBatchSize<16>>>(
      "perceptron", 0.2);
  agrees<Pipeline<Transformer, BF16, portable, MicroBatches<2>, MicroBatchSize<4>>>("transformer",
                                                                                    0.5);
  agrees<Pipeline<Transformer, BF16, Host, Stages<3>, MicroBatches<4>, MicroBatchSize<2>>>(
      "transformer", 0.5);
}
TEST_CASE("by AMX and AVX-512-BF16 factors are rounded where FlashAttention rounds them",
          "[golden]") {
  if (host::best_isa() != host::isa::avx512) return;
  using enum host::isa;
  agrees<
      Pipeline<Transformer, BF16, HostKernels<emulated_amx>, MicroBatches<2>, MicroBatchSize<4>>>(
      "transformer_by_amx", 0.05);
  agrees<Pipeline<Transformer, BF16, HostKernels<emulated_avx512_bf16>, MicroBatches<2>,
                  MicroBatchSize<4>>>("transformer_by_amx", 0.05);
}
