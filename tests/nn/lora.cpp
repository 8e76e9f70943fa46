// SPDX-License-Identifier: BSL-1.0
//
// LoRA: what it writes into the graph and into files, what is trained, and that the merged model
// computes what the adapted one did.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <string>
#include <type_traits>
#include <vector>

#include "catch.hpp"

#include <pipe/weights/merge_lora.hpp>

#include "laws/data.hpp"
#include "train/folder.hpp"

using namespace pp;

namespace {

// [model]
struct Adapted : Model<Input<3, 4>, LoRA<Linear<6>, 2, Alpha<3>>, Tanh, LoRA<Attention<2>, 3>,
                       Linear<2>, MSE> {};
struct Plain : Model<Input<3, 4>, Linear<6>, Tanh, Attention<2>, Linear<2>, MSE> {};
// [/model]

using AdaptedTrainer =
    Pipeline<Adapted, Stages<2>, MicroBatches<2>, MicroBatchSize<3>, AdamW, PortableHost>;
using PlainTrainer = Pipeline<Plain, MicroBatches<2>, MicroBatchSize<3>, PortableHost>;

/// The outputs of all samples of a batch.
template <class Trainer>
std::vector<float> outputs_of(Trainer& trainer, laws::sample_batch<AdaptedTrainer> const& batch) {
  std::vector<float> outputs(std::size_t(Trainer::samples * 3 * 2));
  trainer.forward(batch.inputs, outputs);
  return outputs;
}

}  // namespace

TEST_CASE("names are those of PEFT", "[nn]") {
  char const* const expected[] = {"0.base_layer.weight",
                                  "0.base_layer.bias",
                                  "0.lora_A.weight",
                                  "0.lora_B.weight",
                                  "2.base_layer.in_proj_weight",
                                  "2.base_layer.in_proj_bias",
                                  "2.lora_A.weight",
                                  "2.lora_B.weight",
                                  "2.base_layer.out_proj.base_layer.weight",
                                  "2.base_layer.out_proj.base_layer.bias",
                                  "2.base_layer.out_proj.lora_A.weight",
                                  "2.base_layer.out_proj.lora_B.weight",
                                  "3.weight",
                                  "3.bias"};
  AdaptedTrainer trainer;
  auto const parameters = trainer.parameters();
  REQUIRE(parameters.size() == std::size(expected));
  for (std::size_t i = 0; i < parameters.size(); ++i) CHECK(parameters[i].name == expected[i]);
  CHECK(parameters[2].file_shape == std::vector<long>{2, 4});
  CHECK(parameters[3].file_shape == std::vector<long>{6, 2});
}

TEST_CASE("only low-rank terms and what is outside are trained", "[nn]") {
  long low_rank = 0, frozen = 0;
  for (auto const& p : Adapted::graph.parameters)
    (p.trained ? low_rank : frozen) += p.form.elements();
  CHECK(frozen == (4 * 6 + 6) + (6 * 18 + 18) + (6 * 6 + 6));
  CHECK(low_rank == 2 * (4 + 6) + 3 * (6 + 18) + 3 * (6 + 6) + (6 * 2 + 2));
  CHECK(AdaptedTrainer::plan.trained == low_rank);
  long state = 0;
  for (stage_plan const& s : AdaptedTrainer::plan.stages) state += s.optimizer_bytes;
  CHECK(state < 2 * (4 * low_rank + 64 * 8));  // two numbers for each, in whole cache lines

  // A LoRA inside Frozen is not trained, and what is frozen inside a LoRA has no term.
  struct Both : Model<Input<4>, Frozen<LoRA<Linear<4>, 2>>,
                      LoRA<Seq<Linear<4>, Frozen<Linear<4>>>, 2>, MSE> {};
  CHECK(Both::graph.size.parameters == 4 + 4 + 2);
  for (int i = 0; i < 10; ++i) CHECK(Both::graph.parameters[i].trained == (i == 6 || i == 7));
}

TEST_CASE("an adapted model begins as the plain one and is merged into it", "[nn]") {
  AdaptedTrainer adapted({.seed = 1, .optimizer = {.learning_rate = 0.05}});
  PlainTrainer plain({.seed = 2}), merged({.seed = 3});
  laws::disturb(plain, 4, 0.2);
  laws::sample_batch<AdaptedTrainer> const batch(5);
  // [copy]
  copy_weights(plain, adapted, load_policy::partial, names_without_lora(adapted));
  // [/copy]
  CHECK(outputs_of(adapted, batch) == outputs_of(plain, batch));  // to the bit

  double const before = adapted.step(batch.view()).loss;
  for (int i = 0; i < 20; ++i) adapted.step(batch.view());
  CHECK(adapted.evaluate(batch.view()) < 0.8 * before);
  for (std::size_t i = 0; i < 2; ++i)  // the frozen ones are where they were
    CHECK(laws::same_numbers(adapted.parameters()[i].values, plain.parameters()[i].values));

  // [merge]
  merge_lora(adapted, merged);
  // [/merge]
  auto const expected = outputs_of(adapted, batch), found = outputs_of(merged, batch),
             old = outputs_of(plain, batch);
  float furthest = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    CHECK(std::fabs(found[i] - expected[i]) < 1e-5f);
    furthest = std::max(furthest, std::fabs(found[i] - old[i]));
  }
  CHECK(furthest > 0.05f);
}

TEST_CASE("low-rank terms are a file of their own", "[nn]") {
  temporary_folder const folder;
  std::string const path = folder.file("adapter_model.safetensors");
  AdaptedTrainer from({.seed = 1}), to({.seed = 2}), before({.seed = 2});
  laws::disturb(from, 3, 0.2);
  // [save]
  save_lora(from, path);
  load_report const report =
      load_weights(to, path, load_policy::partial, {{"", "base_model.model."}});
  // [/save]
  CHECK(report.loaded.size() == 6);
  CHECK(report.unused.empty());
  for (std::size_t i = 0; i < 14; ++i) {
    bool const is_term = to.parameters()[i].name.find("lora_") != std::string::npos;
    AdaptedTrainer& expected = is_term ? from : before;
    CHECK(laws::same_numbers(to.parameters()[i].values, expected.parameters()[i].values));
  }
}

namespace {

/// Attentions whose heads are as wide as they say; those of the first are normalised.
template <class Attentions>
struct Reads : Model<Named<"memory", Input<5, 4>>, Stash<"memory">, Named<"x", Input<3, 4>>,
                     Attentions, Linear<2>, MSE> {};
using WithOptions =
    Seq<Linear<6, NoBias>, Attention<2, QKNorm<>, HeadSize<4>, KeyValueHeads<1>, RoPE<>>,
        CrossAttention<2, "memory", HeadSize<5>, SoftCap<2>, NoBias>>;
struct PlainReader : Reads<WithOptions> {};
struct AdaptedReader : Reads<LoRA<WithOptions, 2, Alpha<3>>> {};
template <class M>
using Of = Pipeline<M, MicroBatches<2>, MicroBatchSize<3>, AdamW, PortableHost>;

}  // namespace

TEST_CASE("attentions with all options are adapted, merged and saved", "[nn]") {
  struct entry {
    char const* name;
    std::vector<long> shape;
  };
  entry const expected[] = {{"2.0.base_layer.weight", {6, 4}},
                            {"2.0.lora_A.weight", {2, 4}},
                            {"2.0.lora_B.weight", {6, 2}},
                            {"2.1.q_proj.base_layer.weight", {8, 6}},
                            {"2.1.q_proj.base_layer.bias", {8}},
                            {"2.1.q_proj.lora_A.weight", {2, 6}},
                            {"2.1.q_proj.lora_B.weight", {8, 2}},
                            {"2.1.k_proj.base_layer.weight", {4, 6}},
                            {"2.1.k_proj.base_layer.bias", {4}},
                            {"2.1.k_proj.lora_A.weight", {2, 6}},
                            {"2.1.k_proj.lora_B.weight", {4, 2}},
                            {"2.1.v_proj.base_layer.weight", {4, 6}},
                            {"2.1.v_proj.base_layer.bias", {4}},
                            {"2.1.v_proj.lora_A.weight", {2, 6}},
                            {"2.1.v_proj.lora_B.weight", {4, 2}},
                            {"2.1.q_norm.weight", {4}},
                            {"2.1.k_norm.weight", {4}},
                            {"2.1.out_proj.base_layer.weight", {6, 8}},
                            {"2.1.out_proj.base_layer.bias", {6}},
                            {"2.1.out_proj.lora_A.weight", {2, 8}},
                            {"2.1.out_proj.lora_B.weight", {6, 2}},
                            {"2.2.base_layer.q_proj_weight", {10, 6}},
                            {"2.2.q_proj.lora_A.weight", {2, 6}},
                            {"2.2.q_proj.lora_B.weight", {10, 2}},
                            {"2.2.base_layer.kv_proj_weight", {20, 4}},
                            {"2.2.kv_proj.lora_A.weight", {2, 4}},
                            {"2.2.kv_proj.lora_B.weight", {20, 2}},
                            {"2.2.base_layer.out_proj.base_layer.weight", {6, 10}},
                            {"2.2.base_layer.out_proj.lora_A.weight", {2, 10}},
                            {"2.2.base_layer.out_proj.lora_B.weight", {6, 2}},
                            {"3.weight", {2, 6}},
                            {"3.bias", {2}}};
  Of<AdaptedReader> adapted({.seed = 1, .optimizer = {.learning_rate = 0.05}}), again({.seed = 2});
  Of<PlainReader> plain({.seed = 3}), merged({.seed = 4}), loaded({.seed = 5});
  auto const all = adapted.parameters();
  REQUIRE(all.size() == std::size(expected));
  for (std::size_t i = 0; i < all.size(); ++i) {
    CHECK(all[i].name == expected[i].name);
    CHECK(all[i].file_shape == expected[i].shape);
  }

  laws::disturb(plain, 6, 0.2);
  temporary_folder const folder;
  laws::sample_batch<Of<PlainReader>> const batch(7);
  auto const outputs = [&](auto& trainer) {
    std::vector<float> y(std::size_t(6 * 3 * 2));
    trainer.forward(batch.view<std::remove_reference_t<decltype(trainer)>>(), y);
    return y;
  };
  save_weights(plain, folder.file("plain"));
  load_weights(adapted, folder.file("plain"), load_policy::partial, names_without_lora(adapted));
  CHECK(laws::same_numbers(outputs(adapted), outputs(plain)));
  for (int i = 0; i < 20; ++i) adapted.step(batch.view<Of<AdaptedReader>>());
  auto const trained = outputs(adapted), before = outputs(plain);
  float furthest = 0;
  for (std::size_t i = 0; i < trained.size(); ++i)
    furthest = std::max(furthest, std::fabs(trained[i] - before[i]));
  CHECK(furthest > 0.05f);

  save_weights(adapted, folder.file("adapted"));
  load_weights(again, folder.file("adapted"));
  CHECK(laws::same_numbers(laws::snapshot(again).values, laws::snapshot(adapted).values));
  merge_lora(adapted, merged);
  save_weights(merged, folder.file("merged"));
  load_weights(loaded, folder.file("merged"));
  CHECK(laws::same_numbers(laws::snapshot(loaded).values, laws::snapshot(merged).values));
  auto const found = outputs(loaded);
  for (std::size_t i = 0; i < trained.size(); ++i) CHECK(std::fabs(found[i] - trained[i]) < 1e-5f);
}

TEST_CASE("models that differ in more are not merged", "[nn]") {
  AdaptedTrainer from({.seed = 1}), to({.seed = 2}), same({.seed = 2});
  CHECK_THROWS_AS(merge_lora(from, to), data_error);
  for (std::size_t i = 0; i < 14; ++i)
    CHECK(laws::same_numbers(to.parameters()[i].values, same.parameters()[i].values));
}
