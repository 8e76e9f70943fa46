// SPDX-License-Identifier: BSL-1.0
//
// A reversible block that is like any other layer: what those that are remade are compared with.
#pragma once

#include <pipe/pipe.hpp>

namespace laws {

/// The same block, whose values are stored: inside another layer.
template <class Block>
struct Stored {
  using parts = pp::detail::layers<Block>;
  template <class Builder>
  static constexpr void describe(Builder& b) {
    b.all(parts{}, true);
  }
};

}  // namespace laws
