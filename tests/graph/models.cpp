// SPDX-License-Identifier: BSL-1.0
//
// Models as graphs: shapes inferred, ops in order, backward ops after their rules, costs by hand.
#include "catch.hpp"

#include <string>

#include <pipe/graph/cost.hpp>
#include <pipe/graph/gradient_graph.hpp>
#include <pipe/pipe.hpp>

using namespace pp;

namespace {

struct Words
    : Model<Tokens<11, 5>, Embedding<6>, Positions,
            Repeat<2, Residual<LayerNorm, Attention<3>>, GELUTanh>, Linear<11>, CrossEntropy> {};
struct Pooled : Model<Tokens<11, 5>, Embedding<6>, Linear<4>, MeanPool, Linear<3>, CrossEntropy> {};
struct Flat : Model<Tokens<11, 5>, Embedding<6>, ReLU, Flatten, Linear<3>, CrossEntropy> {};
struct Image : Model<Input<4, 4, 3>, Linear<8>, ReLU, Flatten, Seq<Linear<10>, Tanh>, MSE> {};

template <class Graph>
std::string kinds(Graph const& g) {
  std::string text;
  for (int i = 0; i < Graph::size.ops; ++i)
    text += std::string(i > 0 ? " " : "") + detail::name_of(g.ops[i].kind);
  return text;
}

template <class Ops>
std::string axes(Ops const& ops, int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += char('0' + ops[i].axis);
  return text;
}

template <class M>
constexpr auto backward() {
  return detail::differentiate<detail::count_gradients(M::graph)>(M::graph);
}

template <class M>
void units_ascend() {
  detail::graph_view const g = M::graph;
  for (int i = 1; i < g.ops.size(); ++i) CHECK(g.ops[i].unit >= g.ops[i - 1].unit);
  for (int i = 1; i < g.values.size(); ++i) CHECK(g.values[i].unit >= g.values[i - 1].unit);
  for (int i = 1; i < g.parameters.size(); ++i)
    CHECK(g.parameters[i].unit >= g.parameters[i - 1].unit);
  for (detail::op const& o : g.ops)  // nothing is read before it is made
    for (detail::operand const& in : o.in)
      if (in.where == detail::space::value) CHECK(in.index < o.out[0].index);
  for (int u = 0; u < g.units.size(); ++u) {
    CHECK(g.ops[g.first_op(u)].unit == u);
    CHECK(g.first_op(u) < g.first_op(u + 1));
  }
  CHECK(g.first_op(g.units.size()) == g.ops.size());
  CHECK(detail::is_loss(g.loss().kind));
}

}  // namespace

TEST_CASE("attributes are equal if all their members are") {
  detail::attributes const all[] = {
      detail::attributes(),
      detail::contraction_attributes{3},
      detail::contraction_attributes{4},
      detail::lookup_attributes{3},
      detail::map_attributes{false},
      detail::map_attributes{true},
      detail::concat_attributes{3},
      detail::concat_attributes{3, true},
      detail::slice_attributes{3, 0},
      detail::slice_attributes{3, 1},
      detail::norm_attributes{true, 1e-5f},
      detail::norm_attributes{true, 1e-6f},
      detail::norm_attributes{false, 1e-5f},
      detail::pool_attributes{detail::pool_kind::first, 3},
      detail::pool_attributes{detail::pool_kind::last, 3},
      detail::attention_attributes{2, 1, 0, true},
      detail::attention_attributes{2, 2, 0, true},
      detail::attention_attributes{2, 1, 0, false},
      detail::attention_attributes{2, 1, 5, false},
      detail::cross_entropy_attributes{0.1f, 0, detail::row_term::log_probability},
      detail::cross_entropy_attributes{0, 0.1f, detail::row_term::log_probability},
      detail::cross_entropy_attributes{0, 0.1f, detail::row_term::formula},
      detail::custom_attributes{sample_shape(2, 3), 5},
      detail::custom_attributes{sample_shape(3, 2), 5},
      detail::custom_attributes{sample_shape(2, 3), 6}};
  for (detail::attributes const& a : all)
    for (detail::attributes const& b : all) CHECK((a == b) == (&a == &b));
  detail::op o;
  for (detail::attributes const& a : all) {
    o.attributes = a;  // of another kind than before
    CHECK(o.attributes == a);
    CHECK(o.attributes.hash() == a.hash());
  }
}

TEST_CASE("shapes are inferred from layer to layer", "[graph]") {
  static_assert(Words::graph.inputs[0].form == sample_shape(5) && Words::graph.inputs[0].is_ids);
  static_assert(Words::graph.output == sample_shape(5, 11));
  static_assert(Words::graph.size.units == 7);  // the Repeat opens up, the Residual does not
  static_assert(Words::graph.units[0].out == sample_shape(5, 6));
  static_assert(Words::graph.units[6].out == sample_shape(5, 11));
  static_assert(Image::graph.inputs[0].form == sample_shape(4, 4, 3) &&
                !Image::graph.inputs[0].is_ids);
  static_assert(Image::graph.units[0].out == sample_shape(4, 4, 8));
  static_assert(Image::graph.units[1].out == sample_shape(4, 4, 8));
  static_assert(Image::graph.output == sample_shape(10));
  static_assert(Image::graph.size.units == 4);  // Flatten is no place to cut
  static_assert(Image::graph.parameters[2].rows() == 128 &&
                Image::graph.parameters[2].columns() == 10);
  SUCCEED();
}

TEST_CASE("layers become ops", "[graph]") {
  CHECK(kinds(Image::graph) == "matmul bias map matmul bias map squared_error");
  CHECK(kinds(Words::graph) ==
        "lookup row_bias norm matmul bias attention matmul bias add map norm matmul bias attention "
        "matmul bias add map "
        "matmul bias cross_entropy");
  units_ascend<Words>();
  units_ascend<Image>();
}

TEST_CASE("every op has its backward", "[graph]") {
  constexpr auto b = backward<Words>();
  static_assert(b.size.weight_ops ==
                Words::graph.size.parameters - 2);  // a LayerNorm's two gradients are one op
  int made[Words::graph.size.parameters]{};
  for (int i = 0; i < b.size.weight_ops; ++i)
    for (detail::operand const& out : b.weight_ops[i].out)
      if (out.where == detail::space::parameter_gradient) ++made[out.index];
  for (int const n : made) CHECK(n == 1);
  for (int i = 1; i < b.size.input_ops; ++i) CHECK(b.input_ops[i].unit <= b.input_ops[i - 1].unit);
  for (int i = 1; i < b.size.weight_ops; ++i)
    CHECK(b.weight_ops[i].unit <= b.weight_ops[i - 1].unit);
  // The first layers' inputs need no gradient: nothing multiplies by the table or by the first
  // matrix transposed.
  constexpr auto image = backward<Image>();
  static_assert(!image.transposed[0] && image.transposed[2]);
  static_assert(image.size.input_ops == 3);  // map, matmul, map
  CHECK(detail::gradient_view(b).entering(1, 0).where == detail::space::value);
}

TEST_CASE("costs are those of the formulas", "[graph]") {
  auto const& g = Image::graph;
  CHECK(detail::cost_of(g.ops[0]).flops == 2L * 16 * 3 * 8);
  CHECK(detail::cost_of(g.ops[0]).bytes == 4L * (16 * 3 + 16 * 8));
  CHECK(detail::cost_of(g.ops[3]).flops == 2L * 128 * 10);
  constexpr auto b = backward<Image>();
  for (int i = 0; i < b.size.weight_ops; ++i)
    if (b.weight_ops[i].kind == op_kind::matmul_weight_gradient)
      CHECK(detail::cost_of(b.weight_ops[i]).flops ==
            detail::cost_of(g.ops[b.weight_ops[i].origin]).flops);
  for (int i = 0; i < b.size.input_ops; ++i)
    if (b.input_ops[i].kind == op_kind::matmul_input_gradient)
      CHECK(detail::cost_of(b.input_ops[i]).flops ==
            detail::cost_of(g.ops[b.input_ops[i].origin]).flops);
  static_assert(detail::estimated_time(detail::cost{100, 10}) == 100 + detail::flops_per_byte * 10);
}

TEST_CASE("ops on positions have the axis of their token ids, and so have their gradients") {
  CHECK(axes(Words::graph.ops, Words::graph.size.ops) ==
        std::string(std::size_t(Words::graph.size.ops), '1'));
  CHECK(axes(Image::graph.ops, Image::graph.size.ops) ==
        std::string(std::size_t(Image::graph.size.ops), '0'));
  // lookup, matmul, bias, pool; matmul, bias, cross_entropy
  CHECK(axes(Pooled::graph.ops, Pooled::graph.size.ops) == "1111000");
  CHECK(axes(Flat::graph.ops, Flat::graph.size.ops) == "11000");
  static constexpr auto words = backward<Words>();
  static constexpr auto pooled = backward<Pooled>();
  detail::gradient_view const of_words = words, of_pooled = pooled;
  for (detail::op const& o : of_words.input_ops) CHECK(o.axis == 1);
  for (detail::op const& o : of_words.weight_ops) CHECK(o.axis == 1);
  for (detail::op const& o : of_pooled.input_ops) CHECK(o.axis == (o.origin < 4 ? 1 : 0));
  for (detail::op const& o : of_pooled.weight_ops) CHECK(o.axis == (o.origin < 4 ? 1 : 0));
}
