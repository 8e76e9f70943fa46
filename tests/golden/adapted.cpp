// SPDX-License-Identifier: BSL-1.0
//
// LoRA and reversible blocks against PyTorch: outputs, gradients, and ten steps of AdamW. The
// models are those of adapted_cases() in write_golden.py.
#include <cstddef>
#include <string>
#include <vector>

#include "golden/record.hpp"

using namespace pp;

namespace {

struct Adapted
    : Model<Input<3, 5>, LoRA<Linear<7>, 2, Alpha<3>>, Tanh, LoRA<Linear<6, NoBias>, 3>,
            LoRA<Attention<3, KeyValueHeads<1>, RoPE<>>, 2, Alpha<5>>,
            LoRA<Residual<LayerNorm, Linear<9>, GELUTanh, Linear<6>>, 2>, Linear<2>, MSE> {};
struct Reversed
    : Model<Input<3, 8>, Linear<8>,
            Reversible<Seq<LayerNorm, Attention<2, NoBias>>, Seq<Linear<6>, GELUTanh, Linear<4>>>,
            Reversible<Seq<RMSNorm, Linear<4>>, Tanh>, Linear<2>, MSE> {};
struct Both
    : Model<
          Input<3, 6>, Linear<6>,
          LoRA<Reversible<Seq<LayerNorm, Linear<5>, Tanh, Linear<3>>, Seq<Linear<3>>>, 2, Alpha<3>>,
          Linear<2>, MSE> {};

/// Holds those parameters that are trained to PyTorch's. number: that of a parameter i
template <class Trainer, class Numbers>
void check_trained(golden::record const& theirs, Trainer& trainer, std::string const& what,
                   Numbers const& numbers) {
  auto const parameters = trainer.parameters();
  auto const wanted = theirs.of_trained(trainer, what);
  for (std::size_t i = 0; i < wanted.size(); ++i)
    if (!wanted[i].empty())
      golden::check_near(theirs.name() + ": " + what + " of " + parameters[i].name,
                         numbers(parameters[i]), wanted[i]);
}

template <class M, class... More>
void check(char const* name) {
  using trainer = Pipeline<M, PortableHost, AdamW, MicroBatches<2>, MicroBatchSize<2>, More...>;
  golden::record const theirs("adapted", name);
  golden::batches<trainer> const data(theirs);
  trainer ours({.optimizer = {.learning_rate = 0.05}});
  theirs.load(ours);
  std::vector<float> output(std::size_t(data.samples() * trainer::outputs_per_sample));
  ours.forward(data[0], output);
  golden::check_near(theirs.name() + ": output", output, theirs.numbers<double>("output"));
  ours.gradients(data[0]);
  check_trained(theirs, ours, "gradient", [](auto const& p) { return p.gradients; });
  auto const wanted = theirs.numbers<double>("loss");
  std::vector<double> losses, norms;
  for (std::size_t step = 0; step < wanted.size(); ++step) {
    step_result const r = ours.step(data[step]);
    losses.push_back(r.loss), norms.push_back(r.gradient_norm);
  }
  golden::check_near(theirs.name() + ": loss", losses, wanted);
  golden::check_near(theirs.name() + ": norm", norms, theirs.numbers<double>("norm"));
  check_trained(theirs, ours, "step_10", [](auto const& p) { return p.values; });
}

}  // namespace

TEST_CASE("LoRA is PEFT's, in outputs, gradients and training", "[golden]") {
  check<Adapted>("lora");
}
TEST_CASE("reversible blocks are the two formulas that PyTorch differentiates", "[golden]") {
  check<Reversed, Stages<2>>("reversible");
}
TEST_CASE("LoRA in a reversible block gives PyTorch's numbers", "[golden]") {
  check<Both>("lora.reversible");
}
