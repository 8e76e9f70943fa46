// SPDX-License-Identifier: BSL-1.0
//
// The laws for Dropout wherever it is fused: into the epilogue of a contraction, a lookup, a norm,
// a gated unit, a softmax; into a prologue; alone; twice in one kernel. And the laws of its own:
// evaluation drops nothing, every step, sample and layer drops something else, and micro-batches do
// not matter.
#include "catch.hpp"

#include <cmath>

#include "laws/layer_laws.hpp"

using namespace pp;

namespace {

struct Drops : Model<Tokens<11, 5>, Embedding<10>, Positions, Dropout<1, 10>,
                     Residual<LayerNorm, Attention<2>, Dropout<1, 5>>,
                     Residual<LayerNorm, Dropout<1, 4>, Linear<18>, SwiGLU, Dropout<1, 3>,
                              Linear<10>, Dropout<1, 3>>,
                     Linear<11>, CrossEntropy> {};
struct Twice
    : Model<Input<3, 7>, Dropout<1, 2>, Dropout2d<1, 3>, Tanh, Dropout<1, 7>, Linear<33>, GELUTanh,
            Dropout2d<2, 7>, Residual<Linear<33>, DropPath<1, 3>>, Residual<Dropout<1, 2>>,
            Linear<5>, Softmax, Dropout<1, 9>, LayerNorm, Dropout<0, 1>, Linear<3>, MSE> {};
/// Widths above and below the vectors and tiles of every instruction set.
struct Wide : Model<Input<2, 67>, Linear<70>, SiLU, Dropout<1, 3>, Dropout<1, 2>, Linear<131>,
                    Dropout<1, 5>, Tanh, RMSNorm, Dropout<1, 4>, Linear<5>, CrossEntropy> {};

template <int Count, int Size, class... More>
using Trained = Pipeline<Drops, PortableHost, MicroBatches<Count>, MicroBatchSize<Size>, More...>;

}  // namespace

TEST_CASE("Dropout obeys the laws", "[laws]") {
  laws::obeys<Drops>(1);
  laws::obeys<Twice>(2);
  laws::cuts_keep_the_bits_everywhere<Wide>(3);
}

TEST_CASE("recomputation drops the same once more", "[laws]") {
  using plain = Trained<4, 2, AdamW>;
  laws::same_as_one_stage<plain, Trained<4, 2, AdamW, RecomputeAll, Stages<3>>>(5, 2);
  laws::same_as_one_stage<
      plain,
      Trained<4, 2, AdamW, Recompute<op_kind::dropout, op_kind::attention>, GPipe, Stages<2>>>(6,
                                                                                               2);
}

TEST_CASE("what is dropped does not depend on micro-batches", "[laws]") {
  Trained<6, 1> one({.seed = 3});
  Trained<2, 3> three({.seed = 3});
  Trained<1, 6> six({.seed = 3});
  laws::sample_batch<Trained<6, 1>> const data(3);
  double const a = one.gradients(data.view()).loss;
  CHECK(three.gradients(data.template view<Trained<2, 3>>()).loss == Approx(a).epsilon(1e-6));
  CHECK(six.gradients(data.template view<Trained<1, 6>>()).loss == Approx(a).epsilon(1e-6));
  CHECK(std::fabs(one.evaluate(data.view()) - a) > 1e-3);
}

TEST_CASE("every step and every seed drops something else, gradients the same as the next step",
          "[laws]") {
  using trainer = Trained<2, 3>;
  trainer::settings frozen{.seed = 3};
  frozen.optimizer.learning_rate = 0;
  trainer t(frozen), other(trainer::settings{.seed = 4});
  laws::copy_parameters(t, other);
  laws::sample_batch<trainer> const data(3);
  double const before = t.evaluate(data.view());
  double const now = t.gradients(data.view()).loss;
  CHECK(t.gradients(data.view()).loss == now);
  CHECK(t.step(data.view()).loss == now);
  CHECK(std::fabs(t.gradients(data.view()).loss - now) > 1e-4);
  CHECK(std::fabs(other.gradients(data.view()).loss - now) > 1e-4);
  CHECK(t.evaluate(data.view()) == before);
}
