// SPDX-License-Identifier: BSL-1.0
//
// Local response norm, AlexNet's.
#pragma once

#include <pipe/graph/builder.hpp>
#include <pipe/graph/layer_option.hpp>

namespace pp {

namespace detail {

/// An option of LocalResponseNorm that sets one of its numbers to Numerator / Denominator > 0.
template <option_kind Kind, double response_attributes::* Number, long long Numerator,
          long long Denominator>
struct response_option {
  static constexpr auto option = Kind;
  static constexpr option_number number{Numerator > 0 && Denominator > 0, int(Numerator),
                                        int(Denominator)};
  static constexpr void join(response_attributes& a) {
    a.*Number = double(Numerator) / double(Denominator);
  }
};

}  // namespace detail

/// An option of LocalResponseNorm: alpha, the factor of the mean of squares.
template <long long Numerator, long long Denominator = 1>
struct ResponseScale
    : detail::response_option<detail::option_kind::response_scale,
                              &detail::response_attributes::scale, Numerator, Denominator> {};
/// An option of LocalResponseNorm: beta, the power.
template <long long Numerator, long long Denominator = 1>
struct ResponsePower
    : detail::response_option<detail::option_kind::response_power,
                              &detail::response_attributes::power, Numerator, Denominator> {};
/// An option of LocalResponseNorm: k, which is added to the mean.
template <long long Numerator, long long Denominator = 1>
struct ResponseOffset
    : detail::response_option<detail::option_kind::response_offset,
                              &detail::response_attributes::offset, Numerator, Denominator> {};

/// y = x / (k + alpha / Size * sum of x_j^2)^beta, over a window of Size channels around each one,
/// as PyTorch's LocalResponseNorm. Channels beyond the ends count as 0. The paper of AlexNet has no
/// division by Size: its alpha of 1e-4 is `ResponseScale<5, 10'000>` here.
///
/// shape:   (..., C) -> (..., C); window [i - Size / 2, i + (Size - 1) / 2]
/// options: ResponseScale, alpha (default 1e-4); ResponsePower, beta (0.75); ResponseOffset, k (1)
/// source:  Krizhevsky et al., ImageNet Classification with Deep CNNs, 2012, section 3.3
template <int Size, class... Options>
struct LocalResponseNorm {
  using options = detail::layers<Options...>;
  static constexpr auto takes =
      detail::option_kinds(detail::option_kind::response_scale, detail::option_kind::response_power,
                           detail::option_kind::response_offset);
  template <class Builder>
  static constexpr void describe(Builder& b) {
    if (!b.needs_numbers() || !b.needs_positive(Size)) return;
    detail::response_attributes of{Size, 1e-4, 0.75, 1};
    (Options::join(of), ...);
    b.set(b.response_norm(b.current(), of));
  }
};

}  // namespace pp
