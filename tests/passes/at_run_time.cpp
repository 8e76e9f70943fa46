// SPDX-License-Identifier: BSL-1.0
//
// The passes as functions that a program calls: on the heap they find what the compiler finds, and
// each can be asked alone about a graph that was written by hand.
#include "catch.hpp"

#include <utility>
#include <vector>

#include "laws/random_model.hpp"

#include <pipe/passes/heap_compilation.hpp>

using namespace pp;

namespace {

bool same(detail::address const& a, detail::address const& b) {
  return a.where == b.where && a.offset == b.offset;
}
bool same(detail::copied const& a, detail::copied const& b) {
  return same(a.from, b.from) && same(a.to, b.to) && a.bytes == b.bytes;
}
bool same(detail::handed_on const& a, detail::handed_on const& b) {
  return a.what == b.what && a.offset == b.offset;
}
bool same(detail::segment const& a, detail::segment const& b) {
  return a.begin == b.begin && a.end == b.end && a.group == b.group && a.first == b.first &&
         a.operands == b.operands && a.first_origin == b.first_origin &&
         a.last_origin == b.last_origin && a.unit == b.unit;
}
bool same(detail::operand const& a, detail::operand const& b) { return a == b; }
bool same(detail::group const& a, detail::group const& b) { return a == b; }
bool same(detail::scheduled_segment const& a, detail::scheduled_segment const& b) {
  return a.list == b.list && a.index == b.index;
}
bool same(detail::op const& a, detail::op const& b) {
  bool operands = a.kind == b.kind && a.unit == b.unit && a.rows == b.rows &&
                  a.columns == b.columns && a.origin == b.origin && a.attributes == b.attributes;
  for (int k = 0; k < detail::op::max_in; ++k) operands = operands && a.in[k] == b.in[k];
  for (int k = 0; k < detail::op::max_out; ++k) operands = operands && a.out[k] == b.out[k];
  return operands;
}
bool same(detail::value const& a, detail::value const& b) {
  return a.elements == b.elements && a.unit == b.unit;
}
bool same(detail::parameter const& a, detail::parameter const& b) {
  return a.form == b.form && a.unit == b.unit && a.tied_to == b.tied_to && a.kind == b.kind &&
         a.initial.kind == b.initial.kind && a.initial.scale == b.initial.scale &&
         a.trained == b.trained && a.rate_scale == b.rate_scale && a.is_buffer == b.is_buffer &&
         a.decay_scale == b.decay_scale && a.commit.momentum == b.commit.momentum;
}
bool same(detail::unit_record const& a, detail::unit_record const& b) {
  return a.first_op == b.first_op && a.first_value == b.first_value &&
         a.first_parameter == b.first_parameter && a.result == b.result && a.out == b.out &&
         a.middle == b.middle;
}
bool same(detail::crossing const& a, detail::crossing const& b) {
  return a.value == b.value && a.reader == b.reader && a.gradient == b.gradient &&
         a.is_remade == b.is_remade;
}
bool same(unsigned char a, unsigned char b) { return a == b; }
bool same(int a, int b) { return a == b; }
bool same(long a, long b) { return a == b; }

template <class T>
bool equal(detail::view<T> a, detail::view<T> b) {
  if (a.size() != b.size()) return false;
  for (int i = 0; i < a.size(); ++i)
    if (!same(a[i], b[i])) return false;
  return true;
}

template <class C, int S, bool Drops>
void stage_is_the_same(detail::heap_compilation const& heap) {
  using programs = typename C::template programs<S, Drops>;
  detail::heap_stage const stage(heap, S, Drops);
  detail::stage_bytes const &a = stage.totals().bytes, &b = programs::layout.bytes;
  CHECK((a.parameters == b.parameters && a.trained == b.trained && a.transposed == b.transposed));
  CHECK((a.record == b.record && a.pending == b.pending && a.scratch == b.scratch));
  CHECK((a.boundary == b.boundary && a.gradient == b.gradient));
  unsigned inputs = 0;
  bool labels = false;
  for (detail::view<detail::op> const& ops : heap.kernels().ops.of)
    for (detail::op const& o : ops)
      for (int k = 0; k < o.ins && C::stage_of_unit[o.unit] == S; ++k) {
        if (o.in[k].where == detail::space::input) inputs |= 1u << o.in[k].index;
        labels = labels || o.in[k].where == detail::space::label;
      }
  CHECK((stage.totals().inputs_read == inputs && programs::totals().inputs_read == inputs));
  CHECK((stage.totals().reads_labels == labels && programs::totals().reads_labels == labels));
  constexpr int values = C::ranges[S].local_values(), parameters = C::ranges[S].parameters.size();
  detail::operand_places const& places = stage.places();
  CHECK(equal(detail::view<detail::address>{places.values, values},
              {programs::layout.values.items, values}));
  CHECK(equal(detail::view<detail::address>{places.recomputed, values},
              {programs::layout.recomputed.items, values}));
  CHECK(equal(detail::view<long>{places.parameters, parameters},
              {programs::layout.parameters.items, parameters}));
  CHECK(equal(stage.by_offset(), {programs::layout.by_offset.items, parameters}));
  CHECK(equal(stage.passed_values(), programs::passed_values));
  CHECK(equal(stage.passed_gradients(), programs::passed_gradients));
  CHECK(equal(stage.order(detail::program::forward),
              programs::template order<detail::program::forward>));
  constexpr detail::program backward = detail::backward_of(C::whole.splits_backward);
  CHECK(equal(stage.order(backward), programs::template order<backward>));
  if constexpr (C::whole.recomputes_ahead)
    CHECK(equal(stage.order(detail::program::recompute),
                programs::template order<detail::program::recompute>));
}

/// What the compiler found, by the same passes.
template <class C, class Cutter>
void is_the_same() {
  detail::heap_compilation const heap(
      C::model::graph,
      {C::stages, C::samples, C::widths, C::whole.splits_backward,
       detail::rule_of<typename C::recompute>(), C::whole.recomputes_ahead, C::backward.inputs > 0},
      [](auto const& costs, int units, int stages, auto& cuts) {
        Cutter::cut(costs, units, stages, cuts);
      });
  detail::compiled_model const &a = heap.model(), &b = C::whole;
  CHECK(equal(heap.backward().input_ops, C::backward.input_ops));
  CHECK(equal(heap.backward().weight_ops, C::backward.weight_ops));
  CHECK(equal(detail::view<int>{a.cuts, a.stages + 1}, {b.cuts, b.stages + 1}));
  CHECK(equal(a.boundaries.items, b.boundaries.items));
  for (detail::op_list l : detail::every_op_list) {
    CHECK(equal(heap.kernels().ops[l], C::kernels.ops[l]));
    CHECK(equal(a.fused[l].segments, b.fused[l].segments));
    CHECK(equal(a.fused[l].operands, b.fused[l].operands));
  }
  CHECK(equal(heap.groups(), C::shapes));
  [&]<int... S>(std::integer_sequence<int, S...>) {
    (stage_is_the_same<C, S, false>(heap), ...);
    (stage_is_the_same<C, S, true>(heap), ...);
  }(std::make_integer_sequence<int, C::stages>{});
}

template <class M, int Stages, bool Splits, class Rule = NoRecompute, bool Ahead = false>
using of =
    detail::compilation<M, Stages, ByCost, 3, detail::number_widths{4, 2}, Splits, Rule, Ahead>;
/// With gradients of inputs, the second of which is read in two stages.
struct Inputs
    : Model<Named<"a", Input<4>>, Linear<4>, Tanh, Stash<"m">, Named<"b", Input<4>>, Stash<"again">,
            Linear<4>, Pop<"m">, Tanh, Linear<4>, Pop<"again">, Linear<2>, MSE> {};
template <int Stages, bool Splits, class Rule = NoRecompute>
using with_inputs = detail::compilation<Inputs, Stages, ByCost, 3, detail::number_widths{4, 4},
                                        Splits, Rule, false, true>;

/// Two products of a row: y = (x w0) w1, whose loss is in the second unit.
struct two_products {
  detail::op ops[3];
  detail::value values[3]{{4, 0}, {2, 1}, {2, 1}};
  detail::parameter parameters[2];
  detail::unit_record units[3];
  detail::graph_view view() const {
    return {{ops, 3}, {values, 3}, {parameters, 2}, {units, 2}, {}, {}};
  }

  two_products() {
    ops[0] = product({detail::space::input, 0}, 0, 5, 4, 0);
    ops[1] = product(detail::value_operand(0), 1, 4, 2, 1);
    ops[2].kind = op_kind::squared_error;
    ops[2].unit = 1;
    ops[2].ins = 2;
    ops[2].in[0] = detail::value_operand(1);
    ops[2].in[1] = detail::operand{detail::space::label, 0};
    ops[2].out[0] = detail::value_operand(2);
    ops[2].rows = 1;
    ops[2].columns = 2;
    for (int i = 0; i < 3; ++i) ops[i].origin = i;
    parameters[0].form = sample_shape(5, 4);
    parameters[1].form = sample_shape(4, 2);
    units[1].first_op = units[1].first_value = units[1].first_parameter = 1;
    units[2].first_op = units[2].first_value = 3;
    units[2].first_parameter = 2;
  }
  static detail::op product(detail::operand x, int w, int inner, int columns, short unit) {
    detail::op o;
    o.kind = op_kind::matmul;
    o.unit = unit;
    o.ins = 2;
    o.in[0] = x;
    o.in[1] = detail::operand{detail::space::parameter, w};
    o.out[0] = detail::value_operand(w);
    o.rows = 1;
    o.columns = columns;
    o.attributes = detail::contraction_attributes{inner};
    return o;
  }
};

/// Cuts after the first unit.
void halve(detail::heap_array<long> const&, int, int, detail::heap_array<int>& cuts) {
  cuts[1] = 1;
  cuts[2] = 2;
}

/// Three stages cut after `first` and after `second` units; recompute as the rule says.
detail::heap_compilation cut_at(detail::graph_view const& g, detail::recompute_rule rule,
                                bool splits, int first, int second) {
  return detail::heap_compilation(
      g, {.stages = 3, .samples = 2, .splits_backward = splits, .recompute = rule},
      [&](auto const&, int units, int, auto& cuts) {
        cuts[1] = first;
        cuts[2] = second;
        cuts[3] = units;
      });
}
/// N copies of layers, one after the other.
template <int N, class... L>
struct copies {
  template <int>
  using one = Seq<L...>;
  template <int... Is>
  static Seq<one<Is>...> all(std::integer_sequence<int, Is...>);
  using type = decltype(all(std::make_integer_sequence<int, N>()));
};
template <int N, class... L>
using Copies = typename copies<N, L...>::type;

void gradients_are_the_same(detail::graph_view const& deep, detail::graph_view const& plain,
                            detail::gradient_size const& counted) {
  detail::heap_gradients const gradients(deep), of_plain(plain);
  detail::gradient_view const a = gradients, b = of_plain;
  CHECK(equal(a.input_ops, b.input_ops));
  CHECK(equal(a.weight_ops, b.weight_ops));
  CHECK(equal(a.values, b.values));
  CHECK(equal(a.crossings, b.crossings));
  CHECK(equal(detail::view<unsigned char>{a.transposed, deep.parameters.size()},
              detail::view<unsigned char>{b.transposed, plain.parameters.size()}));
  CHECK(detail::gradient_size{a.input_ops.size(), a.weight_ops.size(), a.values.size(),
                              a.crossings.size()} == counted);
}
/// Describes and differentiates a model with Repeat and one with the copies written out, and fuses
/// the first with and without its repetitions, for cuts inside and between copies.
template <template <template <int, class...> class> class M>
void repetitions_change_nothing(int count) {
  detail::graph_view const deep = M<Repeat>::graph, plain = M<Copies>::graph;
  REQUIRE(deep.repetitions.size() == count);
  REQUIRE(plain.repetitions.size() == 0);
  CHECK(equal(deep.ops, plain.ops));
  CHECK(equal(deep.values, plain.values));
  CHECK(equal(deep.parameters, plain.parameters));
  CHECK(equal(deep.units, plain.units));
  CHECK(deep.output == plain.output);
  gradients_are_the_same(deep, plain, detail::count_gradients(M<Repeat>::graph));
  detail::graph_view unnoted = deep;
  unnoted.repetitions = {};
  detail::recompute_rule const rules[] = {{}, {.recomputes = true, .drops = ~std::uint64_t(0)}};
  for (detail::recompute_rule const& rule : rules)
    for (bool splits : {false, true})
      for (int first = 1; first + 1 < deep.units.size(); ++first)
        for (int second : {first + 1, (first + deep.units.size()) / 2, deep.units.size() - 1}) {
          detail::heap_compilation const a = cut_at(deep, rule, splits, first, second),
                                         b = cut_at(unnoted, rule, splits, first, second);
          bool same = equal(a.groups(), b.groups());
          for (detail::op_list l : detail::every_op_list) {
            detail::fused_view const &x = a.model().fused[l], &y = b.model().fused[l];
            same = same && equal(x.segments, y.segments) && equal(x.operands, y.operands) &&
                   equal(x.distinct, y.distinct);
          }
          INFO("cuts " << first << " " << second);
          CHECK(same);
        }
}

template <template <int, class...> class Repeat>
struct Decoder : Model<Tokens<9, 4>, Embedding<8>, Positions,
                       Repeat<9, Residual<LayerNorm, Attention<2, RoPE<>>, Dropout<1, 8>>,
                              Residual<LayerNorm, Linear<12>, GELUTanh, Linear<8>>>,
                       LayerNorm, Linear<9>, CrossEntropy> {};
/// Widths that differ before the first copy, layers without parameters that are units, and a
/// repetition of repetitions.
template <template <int, class...> class Repeat>
struct Perceptron : Model<Input<5>, Repeat<7, Linear<4>, Tanh, Dropout<1, 4>>,
                          Repeat<3, LayerNorm, Repeat<4, Linear<4>, ReLU>>, Linear<2>, MSE> {};
/// The bodies of two-copy repetitions, and of repetitions inside a unit, are no copies.
template <template <int, class...> class Repeat>
struct Short : Model<Input<4>, Repeat<2, Linear<4>, ReLU>, Residual<Repeat<5, Linear<4>, Tanh>>,
                     Linear<2>, MSE> {};
/// The first copies train nothing; a map joins the last group of the last copy.
template <template <int, class...> class Repeat>
struct Fixed : Model<Input<4>, Frozen<Repeat<5, Linear<4>, ReLU>>, Repeat<6, Linear<4>, ReLU>, Tanh,
                     Linear<2>, MSE> {};
/// Blocks whose values backward makes again, each from the block after it.
template <template <int, class...> class Repeat>
struct Reversed
    : Model<Input<4>, Repeat<7, Reversible<Linear<2>, Residual<Tanh, Linear<2>>>>, Linear<2>, MSE> {
};
/// Values that stay in scratch memory until forward has ended.
struct Heads
    : Model<Input<4>, Linear<6>, Stash<"a">, Tanh, Linear<5>, Stash<"b">, Tanh, Linear<2>,
            Losses<MSE, FurtherLoss<"first", "a", Linear<7>, Tanh, Linear<3>, CrossEntropy>,
                   FurtherLoss<"second", "b", Linear<4>, Tanh, Linear<1>, MSE>>> {};

}  // namespace

TEST_CASE("passes find the same on the heap as in constants", "[passes]") {
  is_the_same<of<laws::RandomModel<3, 6>, 1, false>, ByCost>();
  is_the_same<of<laws::RandomModel<4, 8>, 3, true>, ByCost>();
  is_the_same<of<laws::RandomModel<5, 9>, 4, false, RecomputeAll>, ByCost>();
  is_the_same<of<laws::RandomModel<5, 9>, 4, true, RecomputeAll, true>, ByCost>();
  is_the_same<of<laws::RandomModel<7, 7>, 2, true, Recompute<op_kind::matmul, op_kind::map>>,
              ByCost>();
  is_the_same<of<Reversed<Repeat>, 3, true>, ByCost>();
  is_the_same<with_inputs<1, false>, ByCost>();
  is_the_same<with_inputs<4, true>, ByCost>();
  is_the_same<with_inputs<2, false, RecomputeAll>, ByCost>();
  using two = with_inputs<2, false>;
  CHECK(two::boundaries[0].gradient.count == 2);
  CHECK(two::boundaries[0].forward.count == 0);
  CHECK(of<Inputs, 2, false>::boundaries[0].gradient.count == 0);
  is_the_same<of<Heads, 1, false>, ByCost>();
  is_the_same<of<Heads, 2, true, RecomputeAll>, ByCost>();
}

TEST_CASE("copies are what they are without knowing that they are copies", "[passes]") {
  repetitions_change_nothing<Decoder>(1);
  repetitions_change_nothing<Perceptron>(2);
  repetitions_change_nothing<Short>(0);
  repetitions_change_nothing<Fixed>(2);
  repetitions_change_nothing<Reversed>(1);
}

TEST_CASE("a graph that was written by hand is differentiated", "[passes]") {
  two_products const g;
  detail::heap_gradients const gradients(g.view());
  detail::gradient_view const b = gradients;
  REQUIRE(b.input_ops.size() == 1);  // nothing before the first product needs a gradient
  CHECK(b.input_ops[0].kind == op_kind::matmul_input_gradient);
  CHECK(b.input_ops[0].in[0] == detail::value_operand(2));  // the loss's gradient
  CHECK(b.input_ops[0].in[1] == detail::operand{detail::space::parameter_transposed, 1});
  REQUIRE(b.weight_ops.size() == 2);
  CHECK(b.weight_ops[0].in[0] == detail::value_operand(0));
  CHECK(b.weight_ops[1].in[0] == detail::operand{detail::space::input, 0});
  CHECK(b.weight_ops[1].in[1] == b.input_ops[0].out[0]);
  REQUIRE(b.values.size() == 1);
  CHECK(b.values[0].elements == 4);
  CHECK((!b.transposed[0] && b.transposed[1]));
  CHECK(b.entering(1, 0) == b.input_ops[0].out[0]);
}

TEST_CASE("angles of rotary positions keep their bits beside 16-bit copies", "[passes]") {
  struct model : Model<Input<6, 8>, Attention<2, RoPE<>, NoBias>, Linear<2>, MSE> {};
  detail::heap_compilation const c(
      model::graph, {.stages = 1, .samples = 3, .widths = {4, 2}},
      [](auto const&, int units, int, auto& cuts) { cuts[1] = units; });
  detail::heap_stage const stage(c, 0, false);
  detail::stage_bytes const& bytes = stage.totals().bytes;
  CHECK(bytes.buffers == detail::align_up(6 * 4 * 4));
  CHECK(bytes.sums == 0);
  CHECK(bytes.parameters == detail::align_up(8 * 24 * 4) + detail::align_up(8 * 8 * 4) +
                                detail::align_up(8 * 2 * 4) + detail::align_up(2 * 4));
  int angles = 0;
  for (detail::op const& o : c.graph().ops)
    for (int k = 0; k < o.ins; ++k)
      if (detail::operand const x = o.in[k];
          detail::is_parameter(x) || x.where == detail::space::buffer) {
        detail::region const at = stage.places().resolve(detail::program::forward, x).where;
        CHECK(at == (x.where == detail::space::buffer ? detail::region::buffers
                                                      : detail::region::copies));
        angles += at == detail::region::buffers;
      }
  CHECK(angles == 1);
}

TEST_CASE("without transposed copies kernels read the parameters themselves", "[passes]") {
  two_products const g;
  detail::operand const w{detail::space::parameter, 1},
      turned{detail::space::parameter_transposed, 1};
  for (bool const has_transposes : {true, false}) {
    detail::heap_compilation const c(
        g.view(), {.stages = 2, .samples = 3, .widths = {4, 2, has_transposes}}, halve);
    detail::heap_stage const last(c, 1, false);
    CHECK(last.totals().bytes.transposed == (has_transposes ? detail::align_up(4 * 2 * 2) : 0));
    auto const at = [&](detail::operand x) {
      return last.places().resolve(detail::program::backward, x);
    };
    CHECK(
        same(at(turned), has_transposes ? detail::address{detail::region::transposed, 0} : at(w)));
  }
}

TEST_CASE("transposed copies are in panels where products alone read them, and they are wide",
          "[passes]") {
  using enum detail::copy_layout;
  using by = detail::transposed_by;
  detail::parameter const wide{.form = sample_shape(768, 512)},
      narrow{.form = sample_shape(64, 512)}, ragged{.form = sample_shape(769, 512)},
      all[]{wide, wide, wide, wide, narrow, ragged};
  unsigned char const read[]{by::products,     0,
                             by::convolutions, by::products | by::convolutions,
                             by::products,     by::products};
  auto const layouts = [&](detail::number_widths widths) {
    detail::gradient_view g{};
    g.transposed = read;
    auto const found = detail::find_transposed({all, 6}, g, widths, 6);
    return std::vector<detail::copy_layout>(found.begin(), found.begin() + 6);
  };
  CHECK(layouts({4, 4, true, false, true}) == std::vector{panels, none, rows, rows, rows, rows});
  CHECK(layouts({4, 4, true, false, false}) == std::vector{rows, none, rows, rows, rows, rows});
  CHECK(layouts({4, 4, false, false, true}) == std::vector(6, none));
}

TEST_CASE("a graph that was written by hand is cut and laid out", "[passes]") {
  two_products const g;
  detail::heap_compilation const c(g.view(), {.stages = 2, .samples = 3}, halve);
  REQUIRE(c.model().boundaries[1].forward.size() == 1);
  CHECK(c.model().boundaries[1].forward[0].what == detail::value_operand(0));
  CHECK(c.model().boundaries[1].forward_bytes == detail::align_up(3 * 4 * 4));
  REQUIRE(c.model().boundaries[1].gradient.size() == 1);
  CHECK(c.groups().size() == 6);  // two products, the loss, and a gradient of x and two of weights
  detail::heap_stage const first(c, 0, false), last(c, 1, false);
  CHECK(first.totals().bytes.parameters == detail::align_up(5 * 4 * 4));
  CHECK(first.totals().bytes.transposed == 0);
  CHECK(last.totals().bytes.transposed == detail::align_up(4 * 2 * 4));
  CHECK(first.totals().bytes.record == 0);  // its result leaves, its input is the caller's
  CHECK(last.totals().bytes.record ==
        detail::align_up(3 * 2 * 4));  // logits, and over them their gradient
  CHECK(same(first.places().resolve(detail::program::forward, detail::value_operand(0)),
             {detail::region::boundary_out, 0}));
  CHECK(same(last.places().resolve(detail::program::forward, detail::value_operand(0)),
             {detail::region::boundary_in, 0}));
}

TEST_CASE("what backward reads is kept or made again", "[passes]") {
  two_products const g;
  detail::recompute_rule const all{.recomputes = true, .drops = ~std::uint64_t(0)};
  detail::heap_compilation const one(g.view(), {.samples = 3, .recompute = all},
                                     [](auto const&, int, int, auto& cuts) { cuts[1] = 2; });
  CHECK(one.model().dropped[0]);  // the second product's gradient reads it
  detail::heap_stage const kept(one, 0, false), again(one, 0, true);
  CHECK(kept.totals().bytes.record > again.totals().bytes.record);
  CHECK(again.order(detail::program::backward)[0].list == detail::op_list::recompute);
}
