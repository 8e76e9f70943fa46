// SPDX-License-Identifier: BSL-1.0
//
// Frozen layers and groups: what they write into the graph, what is left of its derivative, and
// that wrapping moves no cut.
#include "catch.hpp"

#include "laws/data.hpp"

using namespace pp;

namespace {

template <class M>
constexpr auto backward = detail::differentiate<detail::count_gradients(M::graph)>(M::graph);

/// What a parameter's gradient is written by, or none.
template <class M>
op_kind made_by(int parameter) {
  op_kind found = op_kind::none;
  for (int i = 0; i < backward<M>.size.weight_ops; ++i)
    for (detail::operand const& out : backward<M>.weight_ops[i].out)
      if (out == detail::operand{detail::space::parameter_gradient, parameter})
        found = backward<M>.weight_ops[i].kind;
  return found;
}

struct Plain : Model<Input<3, 4>, Linear<5>, Tanh, Linear<6>, LayerNorm, Linear<2>, MSE> {};
struct Grouped : Model<Input<3, 4>, Group<LearningRate<1, 10>, Linear<5>, Tanh>,
                       Group<LearningRate<2>, WeightDecay<1, 2>, Linear<6>,
                             Group<LearningRate<1, 4>, LayerNorm>>,
                       Group<WeightDecay<0>, Linear<2>>, MSE> {};
struct FrozenStart
    : Model<Input<3, 4>, Frozen<Linear<5>, Tanh>, Linear<6>, LayerNorm, Linear<2>, MSE> {};
struct FrozenMiddle
    : Model<Input<3, 4>, Linear<5>, Tanh, Frozen<Linear<6>, LayerNorm>, Linear<2>, MSE> {};

/// A norm of which only the shift, or only the scale, is trained.
template <bool Scale>
struct HalfFrozenNorm {
  template <class Builder>
  static constexpr void describe(Builder& b) {
    int const width = b.current().form.columns();
    b.scope().trained = Scale;
    detail::operand const gamma = b.parameter(1, width, {distribution::constant, 1}, false);
    b.scope().trained = !Scale;
    detail::operand const beta = b.parameter(1, width, {distribution::constant, 0}, false);
    b.scope().trained = true;
    b.set(b.norm(b.current(), gamma, beta, true, 1e-5f));
  }
};
template <bool Scale>
struct Halves : Model<Input<3, 4>, Linear<5>, HalfFrozenNorm<Scale>, Linear<2>, MSE> {};

/// Doubles the rate in every repetition, so that what one leaves behind would show in the next.
template <class... L>
struct Doubling {
  using parts = detail::layers<L...>;
  static constexpr int times = 3;
  template <class Builder>
  static constexpr void enter(Builder& b) {
    b.scope().rate_scale *= 2;
  }
  template <class Builder>
  static constexpr void leave(Builder& b) {
    b.set(b.add(b.current(), b.current()));
  }
};
struct Doubled : Model<Input<4>, Linear<4>, Doubling<Linear<4>>, Linear<4>, MSE> {};

}  // namespace

TEST_CASE("ratios of groups multiply and end with the group", "[nn]") {
  constexpr auto const& g = Grouped::graph;
  static_assert(g.size.parameters == 8 &&
                g.size.units == 5);  // opened: the layers are units, the groups are not
  constexpr double rate[] = {0.1, 0.1, 2, 2, 0.5, 0.5, 1, 1}, decay[] = {1, 0, 0.5, 0, 0, 0, 0, 0};
  for (int i = 0; i < 8; ++i) {
    CHECK(g.parameters[i].trained);
    CHECK(g.parameters[i].rate_scale == rate[i]);
    CHECK(g.parameters[i].decay_scale == decay[i]);
  }
  static_assert(detail::count_gradients(g).input_ops ==
                detail::count_gradients(Plain::graph).input_ops);
  static_assert(detail::count_gradients(g).weight_ops ==
                detail::count_gradients(Plain::graph).weight_ops);
}

TEST_CASE("enter and leave stand around every repetition", "[nn]") {
  constexpr auto const& g = Doubled::graph;
  for (int i = 0; i < g.size.parameters; ++i)
    CHECK(g.parameters[i].rate_scale == (i < 2 || i >= 8 ? 1 : 2));
  int adds = 0;
  for (int i = 0; i < g.size.ops; ++i) adds += g.ops[i].kind == op_kind::add;
  CHECK(adds == 3);
}

TEST_CASE("kinds of parameters", "[nn]") {
  struct Words : Model<Tokens<7, 3>, Embedding<4>, Positions, LayerNorm, Linear<7>, CrossEntropy> {
  };
  using enum custom::tensor_kind;
  constexpr custom::tensor_kind expected[] = {table, table, vector, vector, matrix, vector};
  for (int i = 0; i < 6; ++i) CHECK(Words::graph.parameters[i].kind == expected[i]);
  struct One : Model<Input<1>, Linear<3>, Positions, MSE> {};  // one row each, and yet no vectors
  CHECK(One::graph.parameters[0].kind == matrix);
  CHECK(One::graph.parameters[1].kind == vector);
  CHECK(One::graph.parameters[2].kind == table);
}

TEST_CASE("nothing is differentiated for frozen layers at the start", "[nn]") {
  constexpr auto size = detail::count_gradients(FrozenStart::graph);
  static_assert(size.weight_ops == 5 && size.input_ops == 2);  // of the norm and the last Linear
  for (int i = 0; i < 2; ++i) CHECK(made_by<FrozenStart>(i) == op_kind::none);
  CHECK(made_by<FrozenStart>(2) == op_kind::matmul_weight_gradient);
  auto const entering = [](int u) {
    return detail::gradient_view(backward<FrozenStart>)
        .entering(u, FrozenStart::graph.units[u - 1].result.index);
  };
  for (int u = 1; u <= 2; ++u) CHECK(entering(u).where == detail::space::none);
  CHECK(entering(3).where == detail::space::value);
  CHECK_FALSE(backward<FrozenStart>.transposed[2]);
}

TEST_CASE("gradients pass through frozen layers in the middle", "[nn]") {
  for (int i = 0; i < Plain::graph.size.parameters; ++i) {
    bool const frozen = i >= 2 && i < 6;
    CHECK(FrozenMiddle::graph.parameters[i].trained == !frozen);
    CHECK(made_by<FrozenMiddle>(i) == (frozen ? op_kind::none : made_by<Plain>(i)));
    CHECK(backward<FrozenMiddle>.transposed[i] == backward<Plain>.transposed[i]);
  }
  static_assert(detail::count_gradients(FrozenMiddle::graph).input_ops ==
                detail::count_gradients(Plain::graph).input_ops);
}

TEMPLATE_TEST_CASE_SIG("one of a norm's two parameters may be frozen", "[nn]",
                       ((bool Scale), Scale), false, true) {
  struct Whole : Model<Input<3, 4>, Linear<5>, LayerNorm, Linear<2>, MSE> {};
  CHECK(made_by<Halves<Scale>>(2) == (Scale ? op_kind::norm_parameter_gradient : op_kind::none));
  CHECK(made_by<Halves<Scale>>(3) == (Scale ? op_kind::none : op_kind::norm_parameter_gradient));
  Pipeline<Whole, PortableHost> whole({.seed = 2});
  Pipeline<Halves<Scale>, PortableHost> half({.seed = 2});
  laws::sample_batch<Pipeline<Whole, PortableHost>> const data(1);
  whole.gradients(data.view());
  half.gradients({data.inputs, data.labels});
  auto const a = whole.parameters(), b = half.parameters();
  for (std::size_t i = 0; i < a.size(); ++i)
    if (i == (Scale ? 3 : 2))
      CHECK(b[i].gradients.empty());
    else
      CHECK(laws::same_numbers(a[i].gradients, b[i].gradients));
}
