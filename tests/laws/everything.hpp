// SPDX-License-Identifier: BSL-1.0
//
// A small model with whatever a schedule or a backend could get wrong.
#pragma once

#include <pipe/pipe.hpp>

namespace laws {

/// As GPT-2: dropout in every place, a table that is also the head, two skips over any number of
/// stages, the one within the other; a layer whose result backward reads (Tanh) and layers that
/// only pass gradients on.
struct Everything
    : pp::Model<pp::Tokens<11, 4>, pp::Named<"table", pp::Embedding<6>>, pp::Positions,
                pp::Dropout<1, 10>, pp::Stash<"begin">,
                pp::Repeat<2, pp::Residual<pp::LayerNorm, pp::Attention<2>, pp::Dropout<1, 5>>,
                           pp::Residual<pp::LayerNorm, pp::Linear<9>, pp::GELUTanh, pp::Linear<6>,
                                        pp::Dropout<1, 4>>>,
                pp::Stash<"late">, pp::Tanh, pp::Linear<6>, pp::Pop<"late">, pp::Pop<"begin">,
                pp::LayerNorm, pp::Tied<"table">, pp::CrossEntropy> {};

}  // namespace laws
