// SPDX-License-Identifier: BSL-1.0
//
// The checks of a builder: its position in the model and the first fault found. A layer asks for
// what it needs; the answer is true, or a fault has been noted and the layer is to return.
#pragma once

#include <string_view>

#include <pipe/base/utf8.hpp>
#include <pipe/graph/diagnostics.hpp>
#include <pipe/graph/graph.hpp>
#include <pipe/graph/handle.hpp>
#include <pipe/graph/layer_option.hpp>

namespace pp {

/// The fault of layer type L by itself, independent of the layers around it.
template <class L>
constexpr fault_kind fault_of_type() {
  if constexpr (requires { typename L::use_instead; })
    return fault_kind::no_such_layer;
  else if constexpr (refuses_an_option<L>)
    return fault_kind::option_not_taken;  // or another fault of an option: see complaints::refuse
  else if constexpr (is_base_alone<L>)
    return fault_kind::base_is_no_layer;
  else if constexpr (has_no_parts<L>)
    return fault_kind::no_layers_inside;
  else
    return fault_kind::none;
}
template <class L>
inline constexpr bool is_refused = fault_of_type<L>() != fault_kind::none;

class complaints {
 public:
  constexpr bool ok() const { return fault_.ok(); }
  constexpr model_fault const& fault() const { return fault_; }
  /// The top-level layer that comes next, or is being described.
  constexpr int position() const { return position_; }

  /// Records the first fault, at the present layer.
  constexpr void complain(fault_kind what, shape expected, shape found) {
    complain(what, leaf_, expected, found);
  }
  constexpr void complain(fault_kind what, int leaf, shape expected, shape found) {
    complain_at(what, position_, leaf, expected, found);
  }
  constexpr void complain_at(fault_kind what, int position, int leaf, shape expected, shape found) {
    if (ok()) fault_ = model_fault{what, position, leaf, expected, found};
  }

  /// The layer's own type lacks something.
  constexpr void complain_of_missing(fault_kind what, member missing) {
    if (ok()) fault_ = model_fault{what, position_, leaf_, shape{}, shape{}, -1, missing};
  }

  /// The layer being described, L, cannot be in a model.
  template <class L>
  constexpr void refuse() {
    if constexpr (fault_of_type<L>() == fault_kind::option_not_taken)
      complain_of(refused_by<L>());
    else
      complain(fault_of_type<L>(), shape{}, shape{});
  }
  /// It cannot have one of its options.
  constexpr void complain_of(refused_option const& refused) {
    fault_kind const what = refused.unknown               ? fault_kind::option_not_taken
                            : refused.twice               ? fault_kind::option_twice
                            : refused.varying             ? fault_kind::function_not_constexpr
                            : !refused.number.of_integers ? fault_kind::ratio_of_real_numbers
                                                          : fault_kind::ratio_out_of_range;
    shape const number(refused.number.numerator, refused.number.denominator);
    if (ok())
      fault_ = model_fault{what,
                           position_,
                           leaf_,
                           shape{},
                           number,
                           refused.at,
                           refused.varying ? member::of : member::none};
  }

  constexpr bool needs_positive(int n) { return needs_positive(shape(n)); }
  constexpr bool needs_positive(shape form) {
    for (int i = 0; i < form.rank; ++i)
      if (form.extent[i] < 1) complain(fault_kind::size_not_positive, shape{}, form);
    return ok();
  }
  /// True, or a fault: a tensor of that shape has not more numbers than that.
  constexpr bool needs_room(shape form, long most) {
    double numbers = 1;  // no product of four ints is too large for a double
    for (int i = 0; i < form.rank; ++i) numbers *= form.extent[i];
    if (numbers > double(most)) complain(fault_kind::size_too_large, shape{}, form);
    return ok();
  }
  /// True, or a fault: weight files can hold that name.
  constexpr bool needs_name(std::string_view name) {
    if (name.empty()) complain(fault_kind::name_is_empty, shape{}, shape{});
    if (valid_utf8_bytes(name) < name.size())
      complain(fault_kind::name_is_no_text, shape{}, shape{});
    return ok();
  }
  /// True, or a fault: a buffer can follow its statistic by that rule.
  constexpr bool needs_rule(commit_rule const& rule) {
    if (!(rule.momentum > 0 && rule.momentum <= 1 && rule.terms > 0))
      complain(fault_kind::commit_out_of_range, shape{}, shape{});
    return ok();
  }
  /// True, or a fault: a row of one number has nothing to compare it with.
  constexpr bool needs_two_channels(handle const& x) {
    if (x.form.columns() < 2) complain(fault_kind::one_channel, shape{}, x.form);
    return ok();
  }
  /// True, or a fault: attention to one position has nothing to choose from.
  constexpr bool needs_two_positions(handle const& x) {
    if (x.form.rows() < 2) complain(fault_kind::one_position, shape{}, x.form);
    return ok();
  }
  /// True, or a fault: x must be real numbers, or token ids.
  constexpr bool needs_numbers(handle const& x) {
    if (ok() && x.is_ids) complain(fault_kind::needs_real_numbers, shape{}, x.form);
    return ok();
  }
  constexpr bool needs_ids(handle const& x) {
    if (ok() && !x.is_ids) complain(fault_kind::needs_token_ids, shape{}, x.form);
    return ok();
  }
  /// True, or a fault: the loss L gets what it is a loss of.
  template <class L>
  constexpr bool needs_input_of_loss(handle const& x) {
    if constexpr (L::labels_are_ids || requires { L::reads_logits; })
      if (probabilities_.where != space::none && x.at == probabilities_)
        complain(fault_kind::probabilities_to_a_loss_of_logits, shape{}, shape{});
    if constexpr (L::labels_are_ids)
      if (!x.is_ids && x.form.columns() < 2)
        complain(fault_kind::one_class, shape{}, shape(x.form.columns()));
    return ok();
  }
  constexpr bool needs_fewer_ops(int ops) {
    if (ops >= most_ops) complain(fault_kind::too_many_layers, shape(most_ops), shape{});
    return ok();
  }
  /// True, or a fault: the ratio of the layer being described is one.
  constexpr bool needs_ratio(option_number const& n) {
    if (!n.in_range)
      complain(n.of_integers ? fault_kind::ratio_out_of_range : fault_kind::ratio_of_real_numbers,
               shape{}, shape(n.numerator, n.denominator));
    return ok();
  }

  /// Returns y, which is a probability where x is one: numbers of x, some of them left out, or
  /// their mean.
  constexpr handle as_probable(handle const& x, handle const& y) {
    if (x.at == probabilities_) probabilities_ = y.at;
    return y;
  }

 protected:
  model_fault fault_{};
  int leaf_ = 0, position_ = 0;
  operand probabilities_{};  // the latest
};

}  // namespace pp
