// SPDX-License-Identifier: BSL-1.0
//
// The checks of a builder: its position in the model, and the first fault. A check returns true, or
// records a fault and returns false; then the layer returns at once.
#pragma once

#include <string_view>
#include <utility>

#include <pipe/base/utf8.hpp>
#include <pipe/graph/diagnostics.hpp>
#include <pipe/graph/graph.hpp>
#include <pipe/graph/handle.hpp>
#include <pipe/graph/layer_option.hpp>

namespace pp::detail {

/// The fault that layer type L has at every place in a model.
template <class L>
constexpr wrong::diagnosis fault_of_type() {
  if constexpr (refuses_an_option<L>)
    return wrong::layer_does_not_take_this_option;  // or another fault of the option: see
                                                    // report_option
  else if constexpr (is_base_alone<L>)
    return wrong::layer_is_derived_from_this_and_named_itself;
  else if constexpr (has_no_parts<L>)
    return wrong::layer_has_no_layers_inside;
  else
    return wrong::nothing;
}
/// Whether layer type L is refused wherever it stands.
template <class L>
inline constexpr bool is_refused = fault_of_type<L>() != wrong::nothing;

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

  /// Records a fault, if it is the first.
  constexpr void report(model_fault const& fault) {
    if (ok()) fault_ = fault;
  }
  /// The same for a fault at the current layer. The diagnosis says what expected and found mean.
  constexpr void report(wrong::diagnosis what, sample_shape found = sample_shape{}) {
    report(what, sample_shape{}, found);
  }
  constexpr void report(wrong::diagnosis what, sample_shape expected, sample_shape found) {
    report(model_fault{
        .what = what, .layer = position_, .leaf = leaf_, .expected = expected, .found = found});
  }
  /// The same for a number that is too large: expected is the largest.
  constexpr void report_most(wrong::diagnosis what, int most) {
    report(what, sample_shape(most), sample_shape{});
  }
  /// The same for a layer type at a top-level position.
  constexpr void report_at(wrong::diagnosis what, int position, int leaf) {
    report(model_fault{.what = what, .layer = position, .leaf = leaf});
  }
  /// The same for a fault at the current layer whose message has the name in the layer's type.
  constexpr void report_name(wrong::diagnosis what, sample_shape expected = sample_shape{},
                             sample_shape found = sample_shape{}) {
    report(model_fault{.what = what,
                       .layer = position_,
                       .leaf = leaf_,
                       .expected = expected,
                       .found = found,
                       .says_name = true});
  }
  /// Records that a value of shape `form`, stashed at `position`, is not popped.
  constexpr void report_unread(int position, int leaf, sample_shape form) {
    report(model_fault{.what = wrong::value_is_stashed_but_never_popped,
                       .layer = position,
                       .leaf = leaf,
                       .found = form,
                       .says_name = true});
  }
  /// Records that the layer's type lacks a member; report_value: that a static value is not
  /// constexpr.
  constexpr void report_missing(wrong::diagnosis what, wrong::member missing) {
    report(model_fault{.what = what, .layer = position_, .leaf = leaf_, .missing = missing});
  }
  constexpr void report_value(wrong::member value) {
    report(model_fault{
        .what = wrong::value_must_be_constexpr, .layer = position_, .leaf = leaf_, .value = value});
  }

  /// Records the fault of the layer type L that is being described.
  template <class L>
  constexpr void refuse() {
    if constexpr (fault_of_type<L>() == wrong::layer_does_not_take_this_option)
      report_option(refused_by<L>());
    else
      report(fault_of_type<L>());
  }
  /// Records that the layer cannot have one of its options.
  constexpr void report_option(refused_option const& refused) {
    model_fault f{.layer = position_, .leaf = leaf_, .option = refused.at};
    f.says_type = refused.unknown || refused.twice;
    if (refused.unknown) {
      f.what = wrong::layer_does_not_take_this_option;
    } else if (refused.twice) {
      f.what = wrong::layer_option_is_given_twice;
    } else if (refused.varying) {
      f.what = wrong::function_must_be_constexpr;
      f.function = wrong::member::of;
    } else {
      set_ratio(f, refused.number);
    }
    report(f);
  }

  /// True, or a fault: all extents are at least 1.
  constexpr bool needs_positive(int n) { return needs_positive(sample_shape(n)); }
  constexpr bool needs_positive(sample_shape form) {
    for (int i = 0; i < form.rank; ++i)
      if (form.extent[i] < 1) report(wrong::size_must_be_positive, form);
    return ok();
  }
  /// True, or a fault: no extent is below 0.
  constexpr bool needs_not_negative(sample_shape form) {
    for (int i = 0; i < form.rank; ++i)
      if (form.extent[i] < 0) report(wrong::size_must_not_be_negative, form);
    return ok();
  }
  /// True, or a fault: a tensor of that shape has at most `most` numbers.
  constexpr bool needs_room(sample_shape form, long most) {
    double numbers = 1;  // holds the product of four ints without overflow
    for (int i = 0; i < form.rank; ++i) numbers *= form.extent[i];
    if (numbers > double(most)) report(wrong::size_is_too_large, form);
    return ok();
  }
  /// True, or a fault: the name is not empty, and is valid UTF-8, so that weight files can hold it.
  constexpr bool needs_name(std::string_view name) {
    if (name.empty()) report(wrong::name_must_not_be_empty);
    if (valid_utf8_bytes(name) < name.size()) report(wrong::name_must_be_utf8);
    return ok();
  }
  /// True, or a fault: momentum is in (0, 1], terms are above 0, and the statistic is a mean.
  constexpr bool needs_rule(commit_rule const& rule) {
    if (!(rule.momentum > 0 && rule.momentum <= 1 && rule.terms > 0) ||
        rule.of != commit_rule::statistic::mean)
      report(wrong::buffer_rule_is_out_of_range);
    return ok();
  }
  /// True, or a fault: x has at least two columns; normalisation of a single number is constant.
  constexpr bool needs_two_channels(handle const& x) {
    if (x.form.columns() < 2) report(wrong::layer_needs_two_channels, x.form);
    return ok();
  }
  /// True, or a fault: x has at least two rows; attention to a single position is constant.
  constexpr bool needs_two_positions(handle const& x) {
    if (x.form.rows() < 2) report(wrong::attention_needs_two_positions, x.form);
    return ok();
  }
  /// True, or a fault: x is real numbers; needs_ids: token ids.
  constexpr bool needs_numbers(handle const& x) {
    if (ok() && x.is_ids) report(wrong::layer_needs_real_numbers_but_gets_token_ids, x.form);
    return ok();
  }
  constexpr bool needs_ids(handle const& x) {
    if (ok() && !x.is_ids) report(wrong::layer_needs_token_ids_but_gets_real_numbers, x.form);
    return ok();
  }
  /// True, or a fault: x is an input that the loss L accepts: logits, not probabilities, of at
  /// least two classes.
  template <class L>
  constexpr bool needs_input_of_loss(handle const& x) {
    if constexpr (L::labels_are_ids || requires { L::reads_logits; })
      if (probabilities_.where != space::none && x.at == probabilities_)
        report(wrong::loss_takes_logits_but_gets_probabilities);
    if constexpr (L::labels_are_ids)
      if (!x.is_ids && x.form.columns() < 2)
        report(wrong::loss_needs_two_classes, sample_shape(x.form.columns()));
    return ok();
  }
  /// True, or a fault: there is room for one more op.
  constexpr bool needs_fewer_ops(int ops) {
    if (ops >= most_ops) report_most(wrong::model_has_too_many_layers, most_ops);
    return ok();
  }
  /// True, or a fault: there is room for one more input.
  constexpr bool needs_fewer_inputs(int inputs) {
    if (inputs == max_inputs) report_most(wrong::model_has_too_many_inputs, max_inputs);
    return ok();
  }
  /// True, or a fault: the ratio of the layer being described is in range and of integers.
  constexpr bool needs_ratio(option_number const& n) {
    if (n.in_range) return ok();
    model_fault f{.layer = position_, .leaf = leaf_};
    set_ratio(f, n);
    report(f);
    return ok();
  }

  /// Sets the value that a layer around the present one reads later, so that another value may
  /// replace it; returns the one before.
  constexpr operand keep(operand at) { return std::exchange(kept_, at); }

  /// Returns y, and marks y as probabilities if x is marked: y is x with elements dropped, or means
  /// of rows of x.
  constexpr handle as_probable(handle const& x, handle const& y) {
    if (x.at == probabilities_) probabilities_ = y.at;
    return y;
  }

 protected:
  static constexpr void set_ratio(model_fault& f, option_number const& n) {
    f.what = n.of_integers ? wrong::ratio_is_out_of_range : wrong::ratio_is_written_as_two_integers;
    if (n.of_integers) f.found = sample_shape(n.numerator, n.denominator);
  }

  model_fault fault_{};
  int leaf_ = 0, position_ = 0;
  operand probabilities_{};  // the latest value that is probabilities
  operand kept_{};           // see keep()
};

}  // namespace pp::detail
