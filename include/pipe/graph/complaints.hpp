// SPDX-License-Identifier: BSL-1.0
//
// The part of a builder that knows where it is and what was the first thing wrong. A layer asks for what it needs; the answer is
// true, or a fault has been noted and the layer is to return.
#pragma once

#include <pipe/graph/diagnostics.hpp>
#include <pipe/graph/layer_option.hpp>

namespace pp {

class complaints {
 public:
  constexpr bool ok() const { return fault_.ok(); }
  constexpr model_fault const& fault() const { return fault_; }
  /// The top-level layer that comes next, or is being described.
  constexpr int position() const { return position_; }

  /// Records the first fault, at the present layer.
  constexpr void complain(fault_kind what, shape expected, shape found) { complain(what, leaf_, expected, found); }
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

  /// The layer being described cannot have one of its options.
  constexpr void complain_of(refused_option const& refused) {
    fault_kind const what = refused.unknown ? fault_kind::option_not_taken
                            : refused.twice ? fault_kind::option_twice
                                            : fault_kind::ratio_out_of_range;
    shape const number(refused.number.numerator, refused.number.denominator);
    if (ok()) fault_ = model_fault{what, position_, leaf_, shape{}, number, refused.at};
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
  constexpr bool needs_ratio(bool in_range, int numerator, int denominator) {
    if (ok() && !in_range) complain(fault_kind::ratio_out_of_range, shape{}, shape(numerator, denominator));
    return ok();
  }

 protected:
  model_fault fault_{};
  int leaf_ = 0, position_ = 0;
};

}  // namespace pp
