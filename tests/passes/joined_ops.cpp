// SPDX-License-Identifier: BSL-1.0
//
// Ops that are one with the product before them, where values have 16 bits: which they are, and
// that neither cuts nor recomputation take them apart.
#include "catch.hpp"

#include <string>

#include "laws/random_model.hpp"

using namespace pp;

namespace {

template <class M, int Stages = 1, class Rule = NoRecompute, int Value = 2>
using compiled =
    detail::compilation<M, Stages, ByCost, 3, detail::number_widths{4, Value}, false, Rule>;

/// The groups of a list around products, with a + before steps that are one with them.
template <class C>
std::string words(detail::op_list list) {
  std::string text;
  for (int i = 0; i < C::kernels.fused[list].segments.size(); ++i) {
    detail::group const g = C::kernels.describe(list, i).shape;
    if (g.anchor != op_kind::matmul && g.anchor != op_kind::matmul_input_gradient) continue;
    text += text.empty() ? "" : ", ";
    for (detail::pointwise_op const& s : g.prologue)
      text += std::string(detail::name_of(s.kind)) + " ";
    text += std::string(detail::name_of(g.anchor)) + (g.out[0] >= 0 ? "*" : "");
    for (detail::pointwise_op const& s : g.epilogue)
      text += std::string(s.is_joined ? " +" : " ") + detail::name_of(s.kind) +
              (s.store >= 0 ? "*" : "");
  }
  return text;
}
constexpr auto forward = detail::op_list::forward, inputs = detail::op_list::input_gradients,
               again = detail::op_list::recompute;

struct Feed : Model<Input<6>, Linear<6>, Residual<LayerNorm, Linear<8>, GELUTanh, Linear<6>>,
                    Linear<6, NoBias>, MSE> {};
/// The first residual is added to what begins with a formula.
struct Begins : Model<Input<6>, Residual<Tanh, Linear<6>>, Linear<6>, MSE> {};
/// Pop adds in a unit of its own, and what GELU reads is read by a Pop, too.
struct Apart : Model<Input<6>, Stash<"x">, Linear<6>, Pop<"x">, Linear<6>, GELUTanh,
                     Residual<Linear<6>, Stash<"y">, GELUTanh, Linear<6>, Pop<"y">>, MSE> {};

/// What is one op in the graph is in one group, whatever the cut and the policy.
template <class C>
void holds_together() {
  for (detail::op_list l : detail::every_op_list) {
    detail::view<detail::op> const ops = C::kernels.ops[l];
    for (detail::segment const& s : C::kernels.fused[l].segments)
      CHECK_FALSE(detail::joins_product(ops.items, s.begin, C::read_once));
  }
  // Forward and recomputation agree on what is one.
  detail::view<detail::op> const all = C::kernels.ops[forward], some = C::kernels.ops[again];
  for (int i = 1; i < all.count; ++i) {
    if (!detail::joins_product(all.items, i, C::read_once)) continue;
    int runs = 0;
    for (int k = 0; k < some.count; ++k) {
      bool const is_last = some[k].out[0] == all[i].out[0],
                 is_before = some[k].out[0] == all[i - 1].out[0];
      runs += is_last || is_before;
      if (is_last) CHECK(detail::joins_product(some.items, k, C::read_once));
    }
    CHECK((runs == 0 || runs == 2));
  }
}
template <unsigned Seed>
void random_model() {
  INFO("seed " << Seed);
  using M = laws::RandomModel<Seed, 3 + int(Seed) % 7>;
  constexpr int cut = 2 + int(Seed) % (M::graph.size.units - 1);
  holds_together<compiled<M>>();
  holds_together<compiled<M, cut, RecomputeAll>>();
  holds_together<compiled<M, cut, Recompute<op_kind::map, op_kind::norm>>>();
  holds_together<compiled<M, 1, Recompute<op_kind::bias>>>();
}

}  // namespace

TEST_CASE("activations and residuals are one with the product before them", "[passes]") {
  using C = compiled<Feed>;
  CHECK(words<C>(forward) == "matmul bias*, matmul bias* +map*, matmul bias +add*, matmul*");
  CHECK(words<C>(inputs) ==
        "matmul_input_gradient*, matmul_input_gradient +map_gradient*, matmul_input_gradient*");
}
TEST_CASE("with 32 bits nothing is", "[passes]") {
  CHECK(words<compiled<Feed, 1, NoRecompute, 4>>(forward) ==
        "matmul bias*, matmul bias* map*, matmul bias add*, matmul*");
}
TEST_CASE("a product that is one with another op has no prologue", "[passes]") {
  CHECK(words<compiled<Begins>>(forward) == "matmul bias +add*, matmul bias*");
  CHECK(words<compiled<Begins, 1, NoRecompute, 4>>(forward) ==
        "map matmul bias add*, matmul bias*");
}
TEST_CASE("what a cut may take apart, or another op reads, is not one", "[passes]") {
  CHECK(words<compiled<Apart>>(forward) ==
        "matmul bias add*, matmul bias* map*, matmul bias* +map*, matmul bias +add add*");
}
TEST_CASE("an activation is recomputed with its product, and so is the product", "[passes]") {
  CHECK(words<compiled<Feed, 1, Recompute<op_kind::norm>>>(again).empty());
  CHECK(words<compiled<Feed, 1, Recompute<op_kind::map>>>(again) == "matmul bias* +map*");
  CHECK(words<compiled<Feed, 1, Recompute<op_kind::bias>>>(again) ==
        "matmul bias*, matmul bias* +map*");
  CHECK(words<compiled<Feed, 1, Recompute<op_kind::map>, 4>>(again).empty());
}
TEST_CASE("what is one stays one in random models", "[passes]") {
  [&]<unsigned... Seed>(std::integer_sequence<unsigned, Seed...>) {
    (random_model<Seed>(), ...);
  }(std::make_integer_sequence<unsigned, 6>{});
}
