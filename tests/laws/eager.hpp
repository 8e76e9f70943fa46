// SPDX-License-Identifier: BSL-1.0
//
// A backend that shares every kernel out among the threads of a rank, however small it is, so that
// small models show whether parts make a whole.
#pragma once

#include <pipe/backend/host/backend.hpp>

namespace laws {

template <class Backend>
struct Eager : Backend {
  static constexpr int parts_for(pp::detail::group const& g, int, int threads) {
    if (pp::detail::attributes_of(g.anchor) != pp::detail::attribute_kind::custom) return threads;
    bool const makes_samples =
        g.anchor == pp::op_kind::custom || g.anchor == pp::op_kind::custom_input_gradient;
    return makes_samples && g.attributes.custom().samples_are_independent ? threads : 1;
  }
};

}  // namespace laws
