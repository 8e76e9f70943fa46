// SPDX-License-Identifier: BSL-1.0
//
// The checks of a builder: its position in the model, and the first fault. Each check returns true,
// or records a fault; the layer returns at once in that case.
#pragma once

#include <string_view>

#include <pipe/base/utf8.hpp>
#include <pipe/graph/diagnostics.hpp>
#include <pipe/graph/graph.hpp>
#include <pipe/graph/handle.hpp>
#include <pipe/graph/layer_option.hpp>

namespace pp::detail {

/// The fault of layer type L by itself, independent of its place in a model.
template <class L>
constexpr fault_kind fault_of_type() {
  if constexpr (requires { typename L::use_instead; })
    return fault_kind::no_such_layer;
  else if constexpr (refuses_an_option<L>)
    return fault_kind::option_not_taken;  // or another fault of an option: see layer_checks::refuse
  else if constexpr (is_base_alone<L>)
    return fault_kind::base_is_no_layer;
  else if constexpr (has_no_parts<L>)
    return fault_kind::no_layers_inside;
  else
    return fault_kind::none;
}
/// Whether layer type L is refused wherever it stands.
template <class L>
inline constexpr bool is_refused = fault_of_type<L>() != fault_kind::none;

/// The position of a builder and the first fault found.
///
/// law: later faults do not replace the first, so one mistake gives one message
class layer_checks {
 public:
  constexpr bool ok() const { return fault_.ok(); }
  /// The first fault, or none.
  constexpr model_fault const& fault() const { return fault_; }
  /// The index of the top-level layer that is being described, or comes next.
  constexpr int position() const { return position_; }

  /// Records a fault at the current layer, if it is the first.
  constexpr void report(fault_kind what, shape expected, shape found) {
    report(what, leaf_, expected, found);
  }
  /// The same for a given layer type, and for a given top-level layer.
  constexpr void report(fault_kind what, int leaf, shape expected, shape found) {
    report_at(what, position_, leaf, expected, found);
  }
  constexpr void report_at(fault_kind what, int position, int leaf, shape expected, shape found) {
    if (ok()) fault_ = model_fault{what, position, leaf, expected, found};
  }

  /// Records that the layer's type lacks a member.
  constexpr void report_missing(fault_kind what, member missing) {
    if (ok()) fault_ = model_fault{what, position_, leaf_, shape{}, shape{}, -1, missing};
  }

  /// Records the fault of the layer type L that is being described.
  template <class L>
  constexpr void refuse() {
    if constexpr (fault_of_type<L>() == fault_kind::option_not_taken)
      report_option(refused_by<L>());
    else
      report(fault_of_type<L>(), shape{}, shape{});
  }
  /// Records that the layer cannot have one of its options.
  constexpr void report_option(refused_option const& refused) {
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

  /// True, or a fault: all extents are at least 1.
  constexpr bool needs_positive(int n) { return needs_positive(shape(n)); }
  constexpr bool needs_positive(shape form) {
    for (int i = 0; i < form.rank; ++i)
      if (form.extent[i] < 1) report(fault_kind::size_not_positive, shape{}, form);
    return ok();
  }
  /// True, or a fault: no extent is below 0.
  constexpr bool needs_not_negative(shape form) {
    for (int i = 0; i < form.rank; ++i)
      if (form.extent[i] < 0) report(fault_kind::size_is_negative, shape{}, form);
    return ok();
  }
  /// True, or a fault: a tensor of that shape has at most `most` numbers.
  constexpr bool needs_room(shape form, long most) {
    double numbers = 1;  // holds the product of four ints without overflow
    for (int i = 0; i < form.rank; ++i) numbers *= form.extent[i];
    if (numbers > double(most)) report(fault_kind::size_too_large, shape{}, form);
    return ok();
  }
  /// True, or a fault: the name is not empty and valid UTF-8, so that weight files can hold it.
  constexpr bool needs_name(std::string_view name) {
    if (name.empty()) report(fault_kind::name_is_empty, shape{}, shape{});
    if (valid_utf8_bytes(name) < name.size()) report(fault_kind::name_is_no_text, shape{}, shape{});
    return ok();
  }
  /// True, or a fault: momentum is in (0, 1], terms above 0, and it is a mean.
  constexpr bool needs_rule(commit_rule const& rule) {
    if (!(rule.momentum > 0 && rule.momentum <= 1 && rule.terms > 0) ||
        rule.of != commit_rule::statistic::mean)
      report(fault_kind::commit_out_of_range, shape{}, shape{});
    return ok();
  }
  /// True, or a fault: x has at least two columns; normalisation of a single number is constant.
  constexpr bool needs_two_channels(handle const& x) {
    if (x.form.columns() < 2) report(fault_kind::one_channel, shape{}, x.form);
    return ok();
  }
  /// True, or a fault: x has at least two rows; attention to a single position is constant.
  constexpr bool needs_two_positions(handle const& x) {
    if (x.form.rows() < 2) report(fault_kind::one_position, shape{}, x.form);
    return ok();
  }
  /// True, or a fault: x is real numbers; needs_ids: token ids.
  constexpr bool needs_numbers(handle const& x) {
    if (ok() && x.is_ids) report(fault_kind::needs_real_numbers, shape{}, x.form);
    return ok();
  }
  constexpr bool needs_ids(handle const& x) {
    if (ok() && !x.is_ids) report(fault_kind::needs_token_ids, shape{}, x.form);
    return ok();
  }
  /// True, or a fault: x is an input that the loss L accepts: logits, not probabilities, of at
  /// least two classes.
  template <class L>
  constexpr bool needs_input_of_loss(handle const& x) {
    if constexpr (L::labels_are_ids || requires { L::reads_logits; })
      if (probabilities_.where != space::none && x.at == probabilities_)
        report(fault_kind::probabilities_to_a_loss_of_logits, shape{}, shape{});
    if constexpr (L::labels_are_ids)
      if (!x.is_ids && x.form.columns() < 2)
        report(fault_kind::one_class, shape{}, shape(x.form.columns()));
    return ok();
  }
  /// True, or a fault: there is room for one more op.
  constexpr bool needs_fewer_ops(int ops) {
    if (ops >= most_ops) report(fault_kind::too_many_layers, shape(most_ops), shape{});
    return ok();
  }
  /// True, or a fault: the ratio of the layer being described is in range and of integers.
  constexpr bool needs_ratio(option_number const& n) {
    if (!n.in_range)
      report(n.of_integers ? fault_kind::ratio_out_of_range : fault_kind::ratio_of_real_numbers,
             shape{}, shape(n.numerator, n.denominator));
    return ok();
  }

  /// Returns y, and marks it as probabilities if x is: y is x with elements dropped, or a mean of
  /// its rows.
  constexpr handle as_probable(handle const& x, handle const& y) {
    if (x.at == probabilities_) probabilities_ = y.at;
    return y;
  }

 protected:
  model_fault fault_{};
  int leaf_ = 0, position_ = 0;
  operand probabilities_{};  // the latest value that is probabilities
};

}  // namespace pp::detail
