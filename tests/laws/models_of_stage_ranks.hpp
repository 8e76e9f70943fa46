// SPDX-License-Identifier: BSL-1.0
//
// Models for laws of stages that several ranks run.
#pragma once

#include <pipe/pipe.hpp>

#include "laws/centered.hpp"

namespace laws {

/// A skip over stages, a shared table, random bits.
struct Shared : pp::Model<pp::Tokens<5, 3>, pp::Named<"table", pp::Embedding<4>>, pp::Stash<"a">,
                          pp::LayerNorm, pp::Linear<4>, pp::Dropout<1, 4>, pp::Attention<2>,
                          pp::Pop<"a">, pp::Tied<"table">, pp::CrossEntropy> {};
/// Buffers whose sums forwards add to.
struct Buffered
    : pp::Model<pp::Input<2, 3>, pp::Custom<Centered>, pp::Linear<4>, pp::GELUTanh, pp::BatchNorm,
                pp::Custom<Centered>, pp::Linear<4>, pp::Linear<2>, pp::MSE> {};

}  // namespace laws
