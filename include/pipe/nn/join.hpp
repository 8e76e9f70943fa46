// SPDX-License-Identifier: BSL-1.0
//
// The ways in which two values become one: side by side, element by element, or as one number for
// each pair of rows. They are options of Pop, and each has a layer of branches.
#pragma once

#include <type_traits>

#include <pipe/base/config.hpp>
#include <pipe/base/libm.hpp>
#include <pipe/graph/builder.hpp>
#include <pipe/graph/layer_option.hpp>
#include <pipe/graph/layers.hpp>

namespace pp {

/// An option of Pop: concatenation along the last extent, the current value first. Without an
/// option the values are added.
struct Concat {
  static constexpr auto option = detail::option_kind::join;
};
/// An option of Pop: the current value less the stashed one.
struct Subtract {
  static constexpr auto option = detail::option_kind::join;
};
/// An option of Pop: the product of the values, element by element.
struct Multiply {
  static constexpr auto option = detail::option_kind::join;
};
/// An option of Pop: the dot products of the rows, one number for each row.
struct Dot {
  static constexpr auto option = detail::option_kind::join;
};
/// An option of Pop: the cosines of the angles between the rows, one number for each row. The
/// length of a row counts as 1e-8 at least.
struct CosineSimilarity {
  static constexpr auto option = detail::option_kind::join;
};
/// An option of Pop: the lengths of x - z + 1e-6 along the rows, one number for each row; x is the
/// current value, z the stashed one.
struct PairwiseDistance {
  static constexpr auto option = detail::option_kind::join;
};

namespace detail {

/// The sum of two values, which needs no option.
struct add_both {};

/// y = -x
struct negative {
  static constexpr bool derivative_reads_output = false;
  template <class T>
  PIPE_HD static PIPE_INLINE T forward(T x) {
    return -x;
  }
  template <class T>
  PIPE_HD static PIPE_INLINE T derivative(T) {
    return T(-1);
  }
};
/// y = x + 1e-6, so that equal rows have a distance with a gradient.
struct apart {
  static constexpr bool derivative_reads_output = true;
  template <class T>
  PIPE_HD static PIPE_INLINE T forward(T x) {
    return x + T(1e-6);
  }
  template <class T>
  PIPE_HD static PIPE_INLINE T derivative(T) {
    return T(1);
  }
};
/// The length of a row from the sum of its squares; its derivative at 0 is 0.
struct length {
  static constexpr bool derivative_reads_output = true;
  template <class T>
  PIPE_HD static PIPE_INLINE T forward(T x) {
    return libm::sqrt(x);
  }
  template <class T>
  PIPE_HD static PIPE_INLINE T derivative(T y) {
    return y == T(0) ? T(0) : T(0.5) / y;
  }
};
/// 1 / max(length, 10^-Digits) of a row, from the sum of its squares.
template <int Digits>
struct inverse_length {
  static constexpr bool derivative_reads_output = true;
  template <class T>
  PIPE_HD static constexpr T least() {
    return Digits == 8 ? T(1e-8) : T(1e-12);
  }
  template <class T>
  PIPE_HD static PIPE_INLINE T forward(T x) {
    T const y = libm::sqrt(x);
    return T(1) / (y < least<T>() ? least<T>() : y);
  }
  template <class T>
  PIPE_HD static PIPE_INLINE T derivative(T y) {
    return y < T(1) / least<T>() ? T(-0.5) * y * y * y : T(0);
  }
};

/// Base of a layer that joins values: the formulas that join_values needs.
template <class How>
struct joining {
  using formulas = layers<>;
};
template <>
struct joining<Subtract> {
  using formulas = layers<negative>;
};
template <>
struct joining<CosineSimilarity> {
  using formulas = layers<inverse_length<8>>;
};
template <>
struct joining<PairwiseDistance> {
  using formulas = layers<negative, apart, length>;
};

/// Whether values of these shapes can be joined: they are equal or, side by side, equal but for the
/// last extent.
template <class How>
constexpr bool can_join(sample_shape const& y, sample_shape const& z) {
  return std::is_same_v<How, Concat> ? z.with_columns(1) == y.with_columns(1) : z == y;
}
/// y and z as one value: y + z, y - z, y z, z behind y, or a number for each row.
///
/// z_is_newer: whether z, not y, has just been computed, so that the op fuses with its kernel
/// needs:      can_join; the layer that is described is a joining<How>
template <class How, class Builder>
constexpr handle join_values(Builder& b, handle const& y, handle const& z, bool z_is_newer) {
  if constexpr (std::is_same_v<How, Concat>) {
    return b.concat(y, z);
  } else if constexpr (std::is_same_v<How, Subtract>) {
    return b.add(b.template map<negative>(z), y);
  } else if constexpr (std::is_same_v<How, Multiply>) {
    return z_is_newer ? b.multiply(z, y) : b.multiply(y, z);
  } else if constexpr (std::is_same_v<How, Dot>) {
    return b.row_dot(y, z);
  } else if constexpr (std::is_same_v<How, CosineSimilarity>) {
    handle const of_y = b.template map<inverse_length<8>>(b.row_dot(y, y)),
                 of_z = b.template map<inverse_length<8>>(b.row_dot(z, z));
    return b.multiply(b.multiply(b.row_dot(y, z), of_y), of_z);
  } else if constexpr (std::is_same_v<How, PairwiseDistance>) {
    handle const d = b.template map<apart>(join_values<Subtract>(b, y, z, z_is_newer));
    return b.template map<length>(b.row_dot(d, d));
  } else {
    return z_is_newer ? b.add(z, y) : b.add(y, z);
  }
}

}  // namespace detail

}  // namespace pp
