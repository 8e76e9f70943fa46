// SPDX-License-Identifier: BSL-1.0
//
// The lists of a graph's backward ops, which differentiation fills and later passes read.
#pragma once

#include <pipe/graph/copies.hpp>

namespace pp::detail {

/// The lengths of the lists of a gradient graph.
struct gradient_size {
  int input_ops = 0, weight_ops = 0, values = 0, crossings = 0;
  friend constexpr bool operator==(gradient_size const&, gradient_size const&) = default;
  friend constexpr gradient_size operator-(gradient_size const& a, gradient_size const& b) {
    return gradient_size{a.input_ops - b.input_ops, a.weight_ops - b.weight_ops,
                         a.values - b.values, a.crossings - b.crossings};
  }
};

/// The operands of a backward op. count(): up to the last operand that is present, absent ones
/// before it included.
struct gradient_operands {
  operand a{}, b{}, c{}, d{}, e{}, f{};
  constexpr short count() const {
    constexpr auto none = space::none;
    if (f.where != none) return 6;
    if (e.where != none) return 5;
    if (d.where != none) return 4;
    if (c.where != none) return 3;
    return b.where != none ? 2 : 1;
  }
};

/// The number of an input among values in crossings: an input comes before all units.
constexpr int crossing_of_input(int input) { return -1 - input; }

/// A value of an earlier unit that is read in unit `reader`. After the backward ops of unit
/// `reader`, `gradient` is the sum of the contributions of the value's readers in units >=
/// `reader`.
struct crossing {
  int value = 0;
  short reader = 0;
  operand gradient{};
  bool is_remade =
      false;  // `gradient` is not a gradient, but the value itself, remade from later values
};
/// The crossing of the next copy of a Repeat: see graph/copies.hpp.
constexpr crossing next_copy(crossing a, crossing b) {
  b.value += b.value - a.value;
  b.reader = short(b.reader + (b.reader - a.reader));
  b.gradient = next_copy(a.gradient, b.gradient);
  return b;
}

/// The ops that read a parameter transposed, as bits.
struct transposed_by {
  enum : unsigned char { products = 1, convolutions = 2 };
};

/// The backward ops of a graph, as the passes read them.
///
/// law: input_ops and weight_ops are in an executable order, units descending; weight op w may run
///      once the input ops of all forward ops after w's origin have run. `values` continues the
///      numbering of the forward graph's values.
struct gradient_view {
  view<op> input_ops, weight_ops;
  view<value> values;
  view<crossing> crossings;                   // readers descending
  unsigned char const* transposed = nullptr;  // by parameter, see transposed_by
  int inputs = 0;  // of the graph, if inputs have gradients too; otherwise 0

  /// The gradient of a value of an earlier unit, from all its readers in units >= `unit`; an absent
  /// operand if these give none.
  ///
  /// cost: linear in the crossings with readers >= `unit`
  constexpr operand entering(int unit, int value) const { return last_of(unit, value, false); }
  /// The value itself as units >= `unit` have remade it; an absent operand if they have not.
  constexpr operand remade(int unit, int value) const { return last_of(unit, value, true); }
  constexpr operand last_of(int unit, int value, bool is_remade) const {
    operand last{};
    for (int i = 0; i < crossings.count && crossings.items[i].reader >= unit; ++i)
      if (crossings.items[i].value == value && crossings.items[i].is_remade == is_remade)
        last = crossings.items[i].gradient;
    return last;
  }
};

/// The output of differentiation. Sinks without memory only count.
struct gradient_sinks {
  sink<op> input_ops, weight_ops;
  sink<value> values;
  sink<crossing> crossings;
  unsigned char* transposed = nullptr;

  /// Whether there is memory: false in the counting run.
  constexpr bool keeps() const { return transposed != nullptr; }
  /// Notes that some ops, bits of transposed_by, read a parameter transposed.
  constexpr void note_transposed(int parameter, int by) {
    if (keeps()) transposed[parameter] = static_cast<unsigned char>(transposed[parameter] | by);
  }
  /// Adds `times` copies of the last `added` items of each list; the `added` items before those are
  /// a copy too.
  constexpr void add_copies(gradient_size const& added, int times) {
    detail::add_copies(input_ops, added.input_ops, times);
    detail::add_copies(weight_ops, added.weight_ops, times);
    detail::add_copies(values, added.values, times);
    detail::add_copies(crossings, added.crossings, times);
  }
  /// The items added so far: after the counting run, the room that the keeping run needs.
  constexpr gradient_size sizes() const {
    return gradient_size{input_ops.count, weight_ops.count, values.count, crossings.count};
  }
};

/// The memory of a graph's backward ops.
/// Each list has one extra item, as arrays may not be empty.
template <gradient_size Size, int Parameters>
struct gradient_graph {
  static constexpr gradient_size size = Size;
  op input_ops[Size.input_ops + 1];
  op weight_ops[Size.weight_ops + 1];
  value values[Size.values + 1];
  crossing crossings[Size.crossings + 1];
  unsigned char transposed[Parameters + 1]{};
  int inputs = 0;

  constexpr gradient_sinks sinks() {
    return gradient_sinks{{input_ops}, {weight_ops}, {values}, {crossings}, transposed};
  }
  constexpr operator gradient_view() const {
    return gradient_view{{input_ops, Size.input_ops},
                         {weight_ops, Size.weight_ops},
                         {values, Size.values},
                         {crossings, Size.crossings},
                         transposed,
                         inputs};
  }
};

}  // namespace pp::detail
