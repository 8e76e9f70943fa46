// SPDX-License-Identifier: BSL-1.0
//
// Which ops run as one kernel: the rules, one by one, and the laws of the pass on random models.
#include "catch.hpp"

#include <string>

#include "laws/random_model.hpp"

using namespace pp;
using namespace pp::detail;

namespace {

template <class M, class... Options>
using compiled = typename compiled_pipeline<M, option_set<PortableHost, Options...>>::passes;

/// A list of launches in words: `matmul[bias map] norm ...`, prologues before the anchor, * after a
/// step that is stored.
template <class C>
std::string words(detail::op_list list) {
  std::string text;
  for (int i = 0; i < C::kernels.fused[list].segments.size(); ++i) {
    detail::group const g = C::kernels.describe(list, i).shape;
    auto const steps = [&](auto const& chain) {
      if (chain.empty()) return;
      text += "[";
      for (detail::pointwise_op const& s : chain)
        text += std::string(&s == chain.begin() ? "" : " ") + name_of(s.kind) +
                (s.store >= 0 ? "*" : "");
      text += "]";
    };
    text += i > 0 ? ", " : "";
    steps(g.prologue);
    text += name_of(g.anchor);
    text += g.out[0] >= 0 ? "*" : "";
    steps(g.epilogue);
  }
  return text;
}

struct Mlp : Model<Input<3>, Linear<4>, GELUTanh, Linear<5>, ReLU, Linear<2>, MSE> {};
struct Normed : Model<Input<3>, Linear<4>, Residual<LayerNorm, Linear<4>>, MSE> {};
struct Begins : Model<Input<3>, Tanh, Sigmoid, Linear<4>, Tanh, LayerNorm, MSE> {};
struct Words : Model<Tokens<7, 3>, Embedding<4>, Positions, Linear<7>, CrossEntropy> {};
struct Drops
    : Model<Tokens<7, 3>, Embedding<4>, Dropout<1, 2>,
            Repeat<2, Residual<Linear<6>, SwiGLU, Dropout<1, 3>, Linear<4>, Dropout<1, 3>>>,
            Softmax, Linear<2>, MSE> {};
struct Sloped : Model<Input<3>, Linear<4>, PReLU, Linear<4>, With<PReLU, PerChannel>, PReLU, PReLU,
                      PReLU, PReLU, PReLU, PReLU, Linear<2>, MSE> {};
struct Bags : Model<Tokens<7, 3>, EmbeddingBag<4>, Tanh, Linear<2>, MSE> {};
struct Flat : Model<Input<2, 3>, Linear<4>, Tanh, Flatten, Linear<2>, MSE> {};

template <class C>
void laws_hold() {
  constexpr detail::kernel_lists const& kernels = C::kernels;
  for (detail::op_list l : detail::every_op_list) {
    detail::view<detail::op> const ops = kernels.ops[l];
    int at = 0;
    for (int i = 0; i < kernels.fused[l].segments.size(); ++i) {
      detail::segment const& s = kernels.fused[l].segments[i];
      CHECK(s.begin == at);
      CHECK(s.end > s.begin);
      at = s.end;
      for (int k = s.begin; k < s.end; ++k)
        CHECK(C::stage_of_unit[ops[k].unit] == C::stage_of_unit[ops[s.begin].unit]);
      CHECK(kernels.describe(l, i).shape == C::group_at(C::numbers.number(l, s.group)));
    }
    CHECK(at == ops.size());
    for (int a = 0; a < kernels.fused[l].distinct.size(); ++a)
      for (int b = 0; b < a; ++b)
        CHECK_FALSE(C::group_at(C::numbers.number(l, a)) == C::group_at(C::numbers.number(l, b)));
  }
}

template <unsigned Seed>
void random_model() {
  INFO("seed " << Seed);
  using model = laws::RandomModel<Seed, 3 + int(Seed) % 7>;
  laws_hold<compiled<model>>();
  laws_hold<compiled<model, Stages<2 + int(Seed) % (model::graph.size.units - 1)>>>();
}

}  // namespace

TEST_CASE("bias and activation join the matmul that feeds them", "[passes]") {
  CHECK(words<compiled<Mlp>>(detail::op_list::forward) ==
        "matmul[bias* map*], matmul[bias map*], matmul[bias*], squared_error*");
  CHECK(words<compiled<Mlp>>(detail::op_list::input_gradients) ==
        "matmul_input_gradient[map_gradient*], matmul_input_gradient[map_gradient*]");
  CHECK(words<compiled<Mlp>>(detail::op_list::weight_gradients) ==
        "[bias_gradient*]matmul_weight_gradient*, [bias_gradient*]matmul_weight_gradient*, "
        "[bias_gradient*]matmul_weight_gradient*");
}
TEST_CASE("a residual add joins the contraction before it, and in backward the norm", "[passes]") {
  CHECK(words<compiled<Normed>>(detail::op_list::forward) ==
        "matmul[bias*], norm*, matmul[bias add*], squared_error*");
  CHECK(words<compiled<Normed>>(detail::op_list::input_gradients) ==
        "matmul_input_gradient*, norm_gradient[add*]");
}
TEST_CASE("pointwise ops before a contraction or a norm are its prologue", "[passes]") {
  CHECK(words<compiled<Begins>>(detail::op_list::forward) ==
        "[map map*]matmul[bias map*], norm*, squared_error*");
  using cut = compiled<Begins, Stages<2>, Cut<3>>;  // the second stage begins with Tanh
  CHECK(words<cut>(detail::op_list::forward) ==
        "[map map*]matmul[bias*], [map*]norm*, squared_error*");
}
TEST_CASE("positions join the lookup", "[passes]") {
  CHECK(words<compiled<Words>>(detail::op_list::forward) ==
        "lookup[row_bias*], matmul[bias*], cross_entropy*");
  CHECK(words<compiled<Words, Stages<3>>>(detail::op_list::forward) ==
        "lookup*, pointwise[row_bias*], matmul[bias*], cross_entropy*");
}
TEST_CASE("a dropout joins as other pointwise ops do, and streams make no difference", "[passes]") {
  CHECK(words<compiled<Drops>>(detail::op_list::forward) ==
        "lookup[dropout*], matmul[bias*], gate[dropout*], matmul[bias dropout add*], "
        "matmul[bias*], gate[dropout*], "
        "matmul[bias dropout add*], softmax*, matmul[bias*], squared_error*");
  using passes = compiled<Drops>;
  for (int i : {1, 2, 3})
    CHECK(passes::kernels.fused[detail::op_list::forward].segments[i].group ==
          passes::kernels.fused[detail::op_list::forward].segments[i + 3].group);
}
TEST_CASE("trained slopes join as activations do, and take two places of a group backward",
          "[passes]") {
  CHECK(words<compiled<Sloped>>(detail::op_list::forward) ==
        "matmul[bias* prelu*], matmul[bias* prelu* prelu* prelu* prelu* prelu* prelu*], "
        "[prelu*]matmul[bias*], squared_error*");
  CHECK(words<compiled<Sloped>>(detail::op_list::input_gradients) ==
        "matmul_input_gradient*[prelu_gradient* prelu_gradient* prelu_gradient*], "
        "pointwise[prelu_gradient* prelu_gradient* prelu_gradient* prelu_gradient*], "
        "matmul_input_gradient*[prelu_gradient*]");
}
TEST_CASE("an activation joins a bag of ids", "[passes]") {
  CHECK(words<compiled<Bags>>(detail::op_list::forward) ==
        "bag[map*], matmul[bias*], squared_error*");
}
TEST_CASE("nothing joins across another look at the numbers", "[passes]") {
  using cut = compiled<Flat, Stages<2>, Cut<1>>;
  CHECK(words<cut>(detail::op_list::forward) ==
        "matmul[bias*], pointwise[map*], matmul[bias*], squared_error*");
}
TEST_CASE("the laws of fusion hold on random models", "[passes]") {
  random_model<31>(), random_model<32>(), random_model<33>(), random_model<34>(),
      random_model<35>(), random_model<36>();
}
