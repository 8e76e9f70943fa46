// SPDX-License-Identifier: BSL-1.0
//
// Models that have, together, every layer and every loss of the library, but layers of a user's own
// with kernels (Custom) and those that run on the host alone.
#pragma once

#include <pipe/pipe.hpp>

namespace laws {

/// A formula of a user's own.
struct Softsign {
  template <class T>
  PIPE_HD static PIPE_INLINE T forward(T x) {
    return x / (T(1) + (x < T(0) ? -x : x));
  }
  template <class T>
  PIPE_HD static PIPE_INLINE T derivative(T x) {
    T const s = T(1) + (x < T(0) ? -x : x);
    return T(1) / (s * s);
  }
};

/// And a loss.
struct LogCosh : pp::ElementLoss<LogCosh> {
  template <class T>
  PIPE_HD static PIPE_INLINE T value(T x, T target) {
    T const d = x - target, size = d < T(0) ? -d : d;
    return size + pp::math::log1p(pp::math::exp(T(-2) * size)) - T(0.6931471805599453);
  }
  template <class T>
  PIPE_HD static PIPE_INLINE T slope(T x, T target) {
    return pp::math::tanh(x - target);
  }
};

/// A loss that reads all that a row can have: its log-probability, two further targets and a
/// weight.
struct Surprise : pp::LabelLoss<Surprise, pp::Target<"old">, pp::Target<"gain">,
                                pp::Weights<"weight">, pp::Reduction<pp::Sum>> {
  template <class T>
  PIPE_HD static PIPE_INLINE T value(T l, T old, T gain) {
    return (l - old) * (l - old) * gain - l;
  }
  template <class T>
  PIPE_HD static PIPE_INLINE T slope(T l, T old, T gain) {
    return T(2) * (l - old) * gain - T(1);
  }
};
/// The same of elements.
struct Spread : pp::ElementLoss<Spread, pp::Weights<"weight">, pp::Target<"variance">> {
  template <class T>
  PIPE_HD static PIPE_INLINE T value(T x, T target, T variance) {
    return (x - target) * (x - target) * variance;
  }
  template <class T>
  PIPE_HD static PIPE_INLINE T slope(T x, T target, T variance) {
    return T(2) * (x - target) * variance;
  }
};
struct UnequalClasses : pp::With<pp::CrossEntropy, pp::ClassWeights<1, 2, 0, 4, 1, 2, 3>,
                                 pp::LabelSmoothing<1, 10>, pp::Weights<"weight">> {};

/// An encoder and a decoder, with one layer of each kind along the way.
struct EveryLayer
    : pp::Model<pp::Tokens<11, 6>, pp::Embedding<12, pp::Init<pp::Normal<1, 10>>>,
                pp::SinusoidalPositions,
                pp::Residual<pp::RMSNorm, pp::Attention<2, pp::KeyValueHeads<1>, pp::RoPE<>,
                                                        pp::NotCausal, pp::NoBias>>,
                pp::Group<pp::LearningRate<1, 2>, pp::Linear<24>, pp::SwiGLU>,
                pp::Frozen<pp::Linear<24>>, pp::GEGLU,
                pp::Stash<"memory">,  //
                pp::Named<"target", pp::Tokens<13, 5>>, pp::Named<"table", pp::Embedding<12>>,
                pp::Positions, pp::Dropout<1, 10>, pp::Stash<"skip">,
                pp::Residual<pp::LayerNorm, pp::Attention<3>>,
                pp::Residual<pp::LayerNorm, pp::CrossAttention<2, "memory", pp::HeadSize<5>>>,
                pp::Repeat<2, pp::Residual<pp::Linear<8>, pp::ReLU, pp::Linear<12>>>, pp::Tanh,
                pp::Linear<16>, pp::GLU, pp::Sigmoid, pp::Linear<9>, pp::SiLU, pp::GELUTanh,
                pp::LoRA<pp::Linear<12>, 3, pp::Alpha<2>>,
                pp::Reversible<pp::Seq<pp::LayerNorm, pp::Linear<6>>, pp::SiLU>, pp::GELU,
                pp::Map<Softsign>, pp::Pop<"skip", pp::Concat>, pp::Softmax, pp::Linear<12>,
                pp::LayerNorm, pp::Tied<"table">,
                pp::With<pp::CrossEntropy, pp::LabelSmoothing<1, 10>, pp::ZLoss<1, 100>>> {
  static constexpr bool pads = true;
};

/// A classifier of padded texts, with each pool.
template <class Pool>
struct EveryPool
    : pp::Model<pp::Tokens<11, 5>, pp::Embedding<12>, pp::Residual<pp::LayerNorm, pp::Attention<3>>,
                pp::GELUTanh, Pool, pp::Linear<7>, pp::CrossEntropy> {
  static constexpr bool pads = true;
};

/// A classifier of padded bags of ids, with options of the bag, and slopes that are trained: one
/// for a layer or one for each channel, behind a product, behind a norm, and on their own.
template <class... Bag>
struct EveryBag
    : pp::Model<pp::Tokens<11, 5>, pp::EmbeddingBag<12, pp::Init<pp::Normal<1>>, Bag...>, pp::PReLU,
                pp::LayerNorm, pp::With<pp::PReLU, pp::PerChannel>, pp::Linear<9>,
                pp::With<pp::PReLU, pp::PerChannel, pp::NegativeSlope<1, 10>>,
                pp::Residual<pp::Linear<9>, pp::PReLU>,
                pp::Repeat<2, pp::Residual<pp::With<pp::PReLU, pp::PerChannel>, pp::Linear<9>>>,
                pp::Linear<7>, pp::CrossEntropy> {
  static constexpr bool pads = true;
};

/// Every layer of images and sequences without parameters.
struct EveryResampling
    : pp::Model<pp::Input<7, 6, 4>, pp::Linear<5>,
                pp::MaxPool2d<3, pp::Stride<2>, pp::Padding<1>, pp::CeilMode>, pp::Tanh,
                pp::UpsampleBilinear<2>, pp::Linear<4>,
                pp::AvgPool2d<pp::Axes<3, 2>, pp::Stride<2>, pp::Padding<1>, pp::ExcludePadding>,
                pp::ReflectionPad<1, 2, 2, 1>, pp::AdaptiveMaxPool2d<5, 4>, pp::UpsampleNearest<2>,
                pp::Pad<1, -1, 0, 2>, pp::ReplicationPad<1>, pp::AdaptiveAvgPool2d<6, 7>,
                pp::Dropout2d<1, 4>, pp::Residual<pp::Linear<4>, pp::DropPath<1, 3>>,
                pp::Reshape<pp::Rest, 4>, pp::Linear<6>,
                pp::MaxPool1d<3, pp::Stride<2>, pp::Padding<1>, pp::Dilation<2>>,
                pp::UpsampleLinear1d<2, pp::AlignCorners>, pp::Linear<3>, pp::ReflectionPad1d<3, 1>,
                pp::AvgPool1d<4, pp::Stride<3>, pp::Padding<2>>, pp::UpsampleNearest1d<2>,
                pp::ReplicationPad1d<1>, pp::AdaptiveMaxPool1d<20>, pp::Pad1d<2, 0>,
                pp::AdaptiveAvgPool1d<5>, pp::FlattenChannelsFirst, pp::Linear<3>,
                pp::CrossEntropy> {};

/// Each way to compare values row by row, of branches and of stashed values, with layers before and
/// behind that fuse with it.
struct EveryComparison
    : pp::Model<pp::Input<3, 4>, pp::Linear<6>, pp::Stash<"x">,
                pp::DotOf<pp::Seq<pp::Linear<9>, pp::Tanh>, pp::Linear<9>>, pp::Sigmoid,
                pp::Stash<"dot">, pp::Recall<"x">, pp::Linear<6>, pp::Tanh,
                pp::Pop<"x", pp::CosineSimilarity>, pp::Pop<"dot", pp::Concat>, pp::Stash<"two">,
                pp::Recall<"x">, pp::PairwiseDistanceOf<pp::Tanh, pp::Seq<pp::Linear<6>, pp::SiLU>>,
                pp::Pop<"two", pp::Concat>, pp::Linear<16>, pp::Stash<"y">, pp::LayerNorm,
                pp::Stash<"z">, pp::Linear<16>, pp::Pop<"y", pp::Dot>, pp::Stash<"dot">,
                pp::Recall<"z">, pp::Tanh, pp::Pop<"y", pp::PairwiseDistance>,
                pp::Pop<"dot", pp::Multiply>, pp::Stash<"dot">, pp::Recall<"z">,
                pp::CosineSimilarityOf<pp::Identity, pp::Linear<16>>, pp::Pop<"dot">, pp::MSE> {};

/// Losses of all rows of a micro-batch.
template <class... Options>
struct EveryContrast
    : pp::Model<pp::Input<2, 4>, pp::Linear<6>, pp::Tanh,
                pp::ConcatOf<pp::Seq<pp::Linear<5>, pp::Normalize>,
                             pp::Seq<pp::Named<"other", pp::Input<2, 3>>, pp::Linear<5>, pp::Tanh>>,
                pp::InfoNCE<1, 4, Options...>> {};
/// The same beside another loss, of a value that other layers read, too.
struct FurtherContrast
    : pp::Model<
          pp::Input<4>, pp::Linear<6>, pp::ConcatOf<pp::Tanh, pp::Linear<6>>, pp::Stash<"pairs">,
          pp::Linear<3>,
          pp::Losses<pp::CrossEntropy,
                     pp::FurtherLoss<"contrast", "pairs", pp::LossWeight<1, 3>,
                                     pp::InfoNCE<1, 2, pp::Symmetric, pp::Reduction<pp::Sum>>>>> {};

/// One net for each of the other losses.
template <class Loss>
struct EveryLoss
    : pp::Model<pp::Input<3, 5>, pp::Linear<12>, pp::Tanh, pp::Flatten, pp::Linear<7>, Loss> {};

}  // namespace laws
