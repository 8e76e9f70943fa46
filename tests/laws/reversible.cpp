// SPDX-License-Identifier: BSL-1.0
//
// The laws of reversible blocks: gradients are those of stored values within rounding, bits do not
// depend on cuts and schedules, and memory does not grow with depth.
#include <algorithm>
#include <cmath>

#include "catch.hpp"

#include <pipe/train/check_gradients.hpp>

#include "laws/bit_law.hpp"
#include "laws/schedules.hpp"
#include "laws/stored.hpp"

using namespace pp;
using laws::Stored;

namespace {

using F = Seq<LayerNorm, Attention<2>>;
using G = Seq<RMSNorm, Linear<6>, GELUTanh, Dropout<1, 10>, Linear<4>>;

template <class Block, int N>
struct Deep : Model<Input<3, 8>, Linear<8>, Repeat<N, Block>, Linear<2>, MSE> {};
/// Blocks beside other layers: the first reads the input of the model, the last leads to the loss.
struct Mixed
    : Model<Input<3, 8>, Reversible<F, G>, Tanh, Reversible<G, Linear<4>>, Reversible<F, F>,
            Residual<Linear<8>, Reversible<F, G>>, Reversible<G, F>, MSE> {};

/// Copies of a block, and blocks that share a layer inside.
template <int N>
struct Copies : Model<Input<3, 8>, Named<"block", Reversible<F, G>>, Repeat<N, Tied<"block">>,
                      Linear<2>, MSE> {};
template <int N>
struct Sharing : Model<Input<3, 8>, Reversible<F, Named<"a", Linear<4>>>,
                       Repeat<N, Reversible<F, Tied<"a">>>, Linear<2>, MSE> {};

template <class M, class... More>
using Small = Pipeline<M, PortableHost, AdamW, MicroBatches<4>, More...>;

/// Values of a running program.
template <class Trainer>
long scratch_of() {
  for (auto const& share : Trainer::plan.memory_of(0))
    if (share.what == memory_use::scratch) return share.bytes;
  return -1;
}

}  // namespace

TEST_CASE("gradients through blocks agree with central differences", "[laws]") {
  using Smooth = Seq<LayerNorm, Linear<5>, GELUTanh, Linear<4>>;
  CHECK(check_gradients<
            Seq<Reversible<F, Smooth>, Tanh, Reversible<Smooth, F>, Reversible<Tanh, Smooth>>,
            Input<3, 8>>()
            .ok());
}

TEST_CASE("what is made again is what was stored, within rounding", "[laws]") {
  Small<Deep<Reversible<F, G>, 6>, MicroBatchSize<2>> again({.seed = 1});
  Small<Deep<Stored<Reversible<F, G>>, 6>, MicroBatchSize<2>> stored({.seed = 1});
  laws::copy_parameters(again, stored);
  laws::sample_batch<decltype(again)> const batch(3);
  CHECK(laws::same_bits(again.gradients(batch.view()).loss,
                        stored.gradients(batch.view<decltype(stored)>()).loss));
  auto const a = again.parameters();
  auto const b = stored.parameters();
  REQUIRE(a.size() == b.size());
  float furthest = 0, largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    for (std::size_t e = 0; e < a[i].gradients.size(); ++e) {
      furthest = std::max(furthest, std::fabs(a[i].gradients[e] - b[i].gradients[e]));
      largest = std::max(largest, std::fabs(b[i].gradients[e]));
    }
  CHECK(furthest < 1e-5f * largest);
  CHECK(largest > 0.01f);
}

TEST_CASE("cuts and schedules change no bit", "[laws]") {
  using one = Small<Mixed>;
  laws::same_as_one_stage<one, Small<Mixed, Stages<2>>>(5);
  laws::same_as_one_stage<one, Small<Mixed, Stages<6>>>(5);
  laws::same_as_one_stage<one, Small<Mixed, Stages<4>, laws::LateWeights>>(5);
  using deep = Deep<Reversible<F, G>, 5>;
  laws::same_as_one_stage<Small<deep>, Small<deep, Stages<4>, ByCount>>(5);
  laws::same_as_one_stage<Small<deep>, Small<deep, Stages<3>, ByCount, GPipe, RecomputeAll>>(5);
}

TEST_CASE("memory is flat in depth", "[laws]") {
  using shallow = Small<Deep<Reversible<F, G>, 4>>;
  using deep = Small<Deep<Reversible<F, G>, 32>>;
  using stored = Small<Deep<Stored<Reversible<F, G>>, 32>>;
  CHECK(deep::plan.stages[0].saved_bytes == shallow::plan.stages[0].saved_bytes);
  CHECK(scratch_of<deep>() == scratch_of<shallow>());
  CHECK(stored::plan.stages[0].saved_bytes > 32 * deep::plan.stages[0].saved_bytes);

  CHECK(Small<Sharing<32>>::plan.stages[0].saved_bytes ==
        Small<Sharing<4>>::plan.stages[0].saved_bytes);
  CHECK(Small<Copies<32>>::plan.stages[0].saved_bytes >
        6 * Small<Copies<4>>::plan.stages[0].saved_bytes);

  // Each of four stages stores the result of its last block, and sends it back beside its gradient.
  using cut = Small<Deep<Reversible<F, G>, 32>, Stages<4>, GPipe>;
  for (stage_plan const& s : cut::plan.stages) CHECK(s.saved_bytes < 4 * 4 * 1024);
  long values = 0, gradients = 0;
  for (link_plan const& l : cut::plan.links) values += l.values, gradients += l.gradients;
  CHECK(values > 0);
  CHECK(gradients == 2 * values);
}
