// SPDX-License-Identifier: BSL-1.0
//
// Named values under the laws: skips over any number of stages, further inputs, weights that are
// shared.
#include "catch.hpp"

#include <algorithm>
#include <cmath>

#include "laws/bit_law.hpp"
#include "laws/gradient_law.hpp"
#include "laws/schedules.hpp"

using namespace pp;

namespace {

/// A skip inside another, one that crosses others, and a value read twice.
struct Skips : Model<Input<6>, Linear<8>, Stash<"outer">, ReLU, Linear<5>, Stash<"inner">, GELUTanh,
                     Linear<5>, Tanh, Pop<"inner">, Linear<8>, Stash<"late">, Pop<"outer", Concat>,
                     Linear<5>, LayerNorm, Pop<"inner">, Linear<8>, Pop<"late">, Linear<3>, MSE> {};
static_assert(Skips::graph.size.units == 15);

/// The input itself is read again, an input that is stashed before anything is done to it, and one
/// read by nobody else.
struct Inputs
    : Model<Named<"first", Input<4, 3>>, Stash<"raw">, Linear<5>, Tanh, Stash<"left">,
            Named<"second", Tokens<9, 4>>, Embedding<5>, Pop<"left">, Linear<3>, Pop<"raw", Concat>,
            Stash<"both">, Named<"third", Input<4, 6>>, Pop<"both">, Linear<2>, CrossEntropy> {};

/// The head is the embedding's table, as in GPT-2; a second sequence is embedded with the same
/// table.
struct Words
    : Model<Tokens<11, 4>, Named<"table", Embedding<6>>, Positions,
            Residual<LayerNorm, Attention<2>>, Stash<"left">, Named<"right", Tokens<11, 4>>,
            Tied<"table">, Pop<"left">, Residual<LayerNorm, Linear<9>, GELUTanh, Linear<6>>,
            LayerNorm, Tied<"table">, CrossEntropy> {};
/// Blocks that are all the same, as in ALBERT.
struct Shared
    : Model<Input<3, 6>, Named<"block", Seq<Residual<LayerNorm, Attention<3, RoPE<>>>, Linear<6>>>,
            Tanh, Repeat<2, Tied<"block">>, Linear<4>, MSE> {};

/// A cell of branches, which reads values of two cells before it: a graph that is no chain.
// [cells]
struct Cells
    : Model<Input<3, 4>, Linear<6>, Stash<"before">,
            SumOf<Seq<Linear<5>, ReLU, Linear<6>>, Linear<6, NoBias>, Seq<LayerNorm, GELUTanh>>,
            Stash<"now">, Recall<"before">, ConcatOf<Linear<2>, Seq<Tanh, Linear<4>>, Tanh>,
            Linear<6>, Pop<"now">, Stash<"next">, Recall<"now">, SumOf<Tanh, Tanh>, Linear<6>,
            Pop<"next", Concat>, Linear<3>, Stash<"late">, Recall<"before">, Linear<3>, Pop<"late">,
            MSE> {};
// [/cells]

/// Products and differences of branches, some of which read the same value, and of stashed values.
struct Products
    : Model<Input<3, 4>, Linear<6>, Stash<"before">,
            ProductOf<Seq<Linear<6>, Sigmoid>, Linear<6, NoBias>, Seq<LayerNorm, GELUTanh>>,
            Stash<"now">, DifferenceOf<Tanh, Linear<6>>, ProductOf<Tanh, Tanh>, Linear<6>,
            Pop<"before", Multiply>, Dropout<1, 9>, Pop<"now", Subtract>, Pop<"before", Multiply>,
            LayerNorm, Linear<3>, MSE> {};
/// A product in which backward makes a factor again.
struct ReversibleProducts : Model<Input<8>, Linear<8>,
                                  Repeat<2, Reversible<ProductOf<Linear<4>, Seq<Linear<4>, Tanh>>,
                                                       DifferenceOf<Linear<4>, Tanh>>>,
                                  Linear<3>, MSE> {};

using laws::Small;
template <class M, class... More>
using Exact = Pipeline<M, FP64, PortableHost, MicroBatches<2>, MicroBatchSize<2>, More...>;

}  // namespace

TEST_CASE("skips have the gradients of central differences", "[laws]") {
  laws::gradients_hold<Exact<Skips>>(1);
  laws::gradients_hold<Exact<Skips, Stages<5>>>(2);
}
TEST_CASE("skips give the bits of one stage", "[laws]") {
  laws::options_keep_the_bits<Skips, 4, Stages<15>>();
  laws::options_keep_the_bits<Skips, 4, Stages<4>>();
  laws::options_keep_the_bits<Skips, 5, GPipe, Stages<6>, ByCount>();
  laws::options_keep_the_bits<Skips, 5, laws::LastWeights, Stages<5>>();
  laws::options_keep_the_bits<Skips, 4, laws::MixedWeights, Stages<8>, ByCount>();
  laws::options_keep_the_bits<Skips, 4, laws::ManyChunks<schedules::placement::loop, 3, true>,
                              Stages<6>>();
  laws::options_keep_the_bits<Skips, 4, laws::ManyChunks<schedules::placement::vee, 2>,
                              Stages<8>>();
}
TEST_CASE("further inputs have the gradients of central differences", "[laws]") {
  laws::gradients_hold<Exact<Inputs>>(3);
}
TEST_CASE("further inputs give the bits of one stage", "[laws]") {
  laws::options_keep_the_bits<Inputs, 4, Stages<Inputs::graph.size.units>>();
  laws::options_keep_the_bits<Inputs, 4, Stages<3>, GPipe>();
  laws::options_keep_the_bits<Inputs, 5, laws::LateWeights, Stages<4>>();
}
TEST_CASE("branches and recalled values have the gradients of central differences", "[laws]") {
  laws::gradients_hold<Exact<Cells>>(8);
  laws::gradients_hold<Exact<Cells, Stages<5>>>(9);
}
TEST_CASE("branches and recalled values give the bits of one stage", "[laws]") {
  laws::options_keep_the_bits<Cells, 4, Stages<Cells::graph.size.units>>();
  laws::options_keep_the_bits<Cells, 5, Stages<3>, GPipe, RecomputeAll>();
  laws::options_keep_the_bits<Cells, 4, laws::MixedWeights, Stages<4>>();
  laws::options_keep_the_bits<Cells, 4, laws::ManyChunks<schedules::placement::vee, 2>,
                              Stages<4>>();
}
TEST_CASE("products and differences have the gradients of central differences", "[laws]") {
  laws::gradients_hold<Exact<Products>>(10);
  laws::gradients_hold<Exact<Products, Stages<4>, RecomputeAll>>(11);
  laws::gradients_hold<Exact<ReversibleProducts>>(12);
}
TEST_CASE("products and differences give the bits of one stage", "[laws]") {
  laws::options_keep_the_bits<Products, 4, Stages<Products::graph.size.units>>();
  laws::options_keep_the_bits<Products, 5, Stages<3>, GPipe, RecomputeAll>();
  laws::options_keep_the_bits<Products, 4, laws::MixedWeights, Stages<4>>();
  laws::options_keep_the_bits<ReversibleProducts, 4, Stages<4>>();
}
TEST_CASE("branches are added, multiplied, subtracted, and stand side by side", "[laws]") {
  struct both : Model<Input<2>, Linear<2, NoBias>,
                      ConcatOf<SumOf<Tanh, ReLU, Seq<Tanh, Tanh>>, ReLU, Tanh,
                               ProductOf<Tanh, ReLU, ReLU>, DifferenceOf<Tanh, ReLU>>,
                      MSE> {};
  Exact<both> trainer;
  std::vector<double> const one{1, 0, 0, 1};
  std::copy(one.begin(), one.end(), trainer.parameters()[0].values.begin());
  trainer.parameters_changed();
  std::vector<double> const x{-0.5, 2}, y = predict(trainer, x);
  REQUIRE(y.size() == 10);
  for (std::size_t i = 0; i < 2; ++i) {
    double const t = std::tanh(x[i]), r = std::max(x[i], 0.0);
    CHECK(y[i] == Approx(t + r + std::tanh(t)));
    CHECK(y[2 + i] == r);
    CHECK(y[4 + i] == Approx(t));
    CHECK(y[6 + i] == Approx(t * r * r));
    CHECK(y[8 + i] == Approx(t - r));
  }
}
TEST_CASE("shared weights have the gradients of central differences", "[laws]") {
  laws::gradients_hold<Exact<Words>>(4);
  laws::gradients_hold<Exact<Words, Stages<5>>>(5);
  laws::gradients_hold<Exact<Shared, Stages<2>>>(6);
}
TEST_CASE("shared weights give the bits of one stage", "[laws]") {
  laws::options_keep_the_bits<Words, 4, Stages<Words::graph.size.units>>();
  laws::options_keep_the_bits<Words, 4, Stages<3>, GPipe>();
  laws::options_keep_the_bits<Words, 5, laws::MixedWeights, Stages<4>>();
  laws::options_keep_the_bits<Words, 4, laws::ManyChunks<schedules::placement::vee, 2>,
                              Stages<4>>();
  laws::options_keep_the_bits<Shared, 4, Stages<Shared::graph.size.units>>();
  laws::options_keep_the_bits<Shared, 4, Stages<4>>();
}
namespace {

/// Words with a table of its own in every place; the head's is transposed.
struct Apart : Model<Tokens<11, 4>, Embedding<6>, Positions, Residual<LayerNorm, Attention<2>>,
                     Stash<"left">, Named<"right", Tokens<11, 4>>, Embedding<6>, Pop<"left">,
                     Residual<LayerNorm, Linear<9>, GELUTanh, Linear<6>>, LayerNorm,
                     Linear<11, NoBias>, CrossEntropy> {};

/// see(parameter of one, that of the other, transposed): all of `one`, the shared table with each
/// of its places in `other`.
template <class One, class Other, class See>
void for_each_place_apart(One& one, Other& other, See see) {
  auto const ours = one.parameters();
  auto theirs = other.parameters();
  std::size_t next = 1;
  for (auto& p : theirs) {
    bool const is_head = &p == &theirs.back(), is_table = p.rows == 11 || is_head;
    see(ours[is_table ? 0 : next++], p, is_head);
  }
  CHECK(next == ours.size());
}

}  // namespace

TEST_CASE("shared weights compute what equal weights in each place compute, after every step",
          "[laws]") {
  using shared = Exact<Words, Stages<5>>;
  shared one({.seed = 3});
  Exact<Apart> many({.seed = 4});
  laws::disturb(one, 3, 0.3);
  laws::sample_batch<shared> const data(5);
  for (int step = 0; step < 4; ++step) {
    INFO("after " << step << " steps");
    for_each_place_apart(one, many, [](auto const& from, auto& to, bool transposed) {
      long const rows = from.rows, columns = from.columns;
      for (long i = 0; i < rows * columns; ++i)
        to.values[std::size_t(transposed ? i % columns * rows + i / columns : i)] =
            from.values[std::size_t(i)];
    });
    many.parameters_changed();
    CHECK(one.evaluate(data.view()) ==
          Approx(many.evaluate(data.view<Exact<Apart>>())).epsilon(1e-12));
    one.gradients(data.view());
    many.gradients(data.view<Exact<Apart>>());
    std::vector<double> sum[2];  // of the shared table: by place, and its own
    for_each_place_apart(one, many, [&](auto const& ours, auto const& theirs, bool transposed) {
      long const rows = ours.rows, columns = ours.columns;
      bool const is_table = rows == 11;
      sum[0].resize(11 * 6);
      for (long i = 0; i < rows * columns; ++i) {
        double const part =
            theirs.gradients[std::size_t(transposed ? i % columns * rows + i / columns : i)];
        if (is_table)
          sum[0][std::size_t(i)] += part;
        else
          CHECK(ours.gradients[std::size_t(i)] == Approx(part).epsilon(1e-9).margin(1e-12));
      }
      if (is_table) sum[1].assign(ours.gradients.begin(), ours.gradients.end());
    });
    for (std::size_t i = 0; i < sum[1].size(); ++i)
      CHECK(sum[1][i] == Approx(sum[0][i]).epsilon(1e-9).margin(1e-12));
    one.step(data.view(), 0.05);
  }
}
TEST_CASE("shared weights are counted, listed and drawn once", "[laws]") {
  using trainer = Small<Words, Stages<3>>;
  static_assert(trainer::plan.parameters ==
                11 * 6 + 4 * 6 + 12 + 6 * 18 + 18 + 36 + 6 + 12 + 54 + 9 + 54 + 6 + 12);
  trainer t;
  long n = 0;
  for (auto const& p : t.parameters()) n += long(p.values.size());
  CHECK(n == trainer::plan.parameters);
}

namespace {

/// An encoder and a decoder that reads it in every block, with padding in the source.
struct Translator
    : Model<Tokens<13, 5>, Embedding<6>, SinusoidalPositions,
            Repeat<2, Residual<LayerNorm, Attention<2, NotCausal>>>, LayerNorm, Stash<"memory">,
            Named<"target", Tokens<11, 4>>, Named<"words", Embedding<6>>, Positions,
            Repeat<2, Residual<LayerNorm, Attention<3, RoPE<>>>,
                   Residual<LayerNorm, CrossAttention<3, "memory", KeyValueHeads<1>>>,
                   Residual<LayerNorm, Linear<16>, SwiGLU, Linear<6>>>,
            LayerNorm, Tied<"words">, CrossEntropy> {};

}  // namespace

TEST_CASE("an encoder and a decoder have the gradients of central differences", "[laws]") {
  laws::gradients_hold<Exact<Translator>>(7);
  laws::gradients_hold<Exact<Translator, Stages<4>>>(7);
}
TEST_CASE("an encoder and a decoder give the bits of one stage", "[laws]") {
  laws::options_keep_the_bits<Translator, 4, Stages<Translator::graph.size.units>>();
  laws::options_keep_the_bits<Translator, 4, Stages<5>, GPipe, RecomputeAll>();
  laws::options_keep_the_bits<Translator, 5, laws::MixedWeights, Stages<4>>();
  laws::options_keep_the_bits<Translator, 4, laws::ManyChunks<schedules::placement::loop, 2>,
                              Stages<6>>();
}
