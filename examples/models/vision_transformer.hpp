// SPDX-License-Identifier: BSL-1.0
//
// Vision Transformers: Dosovitskiy et al., An image is worth 16x16 words, 2021.
#pragma once

#include "parts.hpp"

namespace models {

/// A vision Transformer of L layers, width C and H heads on patches of P x P.
template <int L, int C, int H, int P = 16, int Classes = 1000, class Image = Input<224, 224, 3>>
struct VisionTransformer
    : Model<
          Image, Named<"conv_proj", Conv2d<C, P, Stride<P>>>, Reshape<Rest, C>,
          Named<"class_token", ClassToken>, Named<"pos_embedding", Positions>,
          Named<"layers",
                Repeat<L, Residual<With<LayerNorm, Epsilon<1, 1'000'000>>, Attention<H, NotCausal>>,
                       Residual<With<LayerNorm, Epsilon<1, 1'000'000>>, Linear<4 * C>, GELU,
                                Linear<C>>>>,
          Named<"norm", With<LayerNorm, Epsilon<1, 1'000'000>>>, FirstPosition,
          Named<"head", Linear<Classes>>, CrossEntropy> {
  static constexpr int depth = L;
};

using VitBase = VisionTransformer<12, 768, 12>;
using VitLarge = VisionTransformer<24, 1024, 16>;

}  // namespace models
