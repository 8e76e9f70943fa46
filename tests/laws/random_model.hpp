// SPDX-License-Identifier: BSL-1.0
//
// Models that nobody thought of: a seed picks layers and widths at compile time. Whatever comes out
// is a correct model.
#pragma once

#include <cstddef>
#include <utility>

#include <pipe/base/philox.hpp>
#include <pipe/pipe.hpp>

namespace laws {

/// One layer: which, its width, and its inner width or number of heads.
struct choice {
  int kind, width, inner;
};

template <choice C>
struct chosen;
template <choice C>
  requires(C.kind == 0)
struct chosen<C> {
  using type = pp::Linear<C.width>;
};
template <choice C>
  requires(C.kind == 1)
struct chosen<C> {
  using type = pp::Linear<C.width, pp::NoBias>;
};
template <choice C>
  requires(C.kind == 2)
struct chosen<C> {
  using type = pp::Attention<C.inner>;
};
template <choice C>
  requires(C.kind == 3)
struct chosen<C> {
  using type = pp::Residual<pp::LayerNorm, pp::Linear<C.inner>, pp::GELUTanh, pp::Linear<C.width>>;
};
template <choice C>
  requires(C.kind == 4)
struct chosen<C> {
  using type = pp::Residual<pp::SiLU, pp::Seq<pp::Linear<C.width>, pp::Sigmoid>>;
};
template <choice C>
  requires(C.kind == 5)
struct chosen<C> {
  using type = pp::Residual<pp::Attention<C.inner, pp::NotCausal, pp::NoBias>, pp::Positions>;
};
template <choice C>
  requires(C.kind >= 6)
struct chosen<C> {
  using plain =
      pp::detail::layers<pp::GELUTanh, pp::GELU, pp::Tanh, pp::SiLU, pp::Sigmoid, pp::LayerNorm,
                         pp::RMSNorm, pp::Positions, pp::SinusoidalPositions, pp::Dropout<1, 3>>;
  using type = pp::detail::leaf_at<C.kind - 6, plain>;
};
inline constexpr int kinds = 16;

/// Whether a layer of that kind needs a width of two or more.
constexpr bool normalises(int kind) { return kind == 3 || kind == 11 || kind == 12; }

/// `Count` layers from a seed, the first of a given width.
template <unsigned Seed, int Count>
constexpr auto choose(int width) {
  constexpr int widths[] = {1, 3, 4, 6, 9, 17};
  pp::detail::list<choice, Count> layers;
  for (int i = 0; i < Count; ++i) {
    pp::detail::philox_block const r = pp::math::random_block(Seed, 7, std::uint64_t(i));
    choice c{int(r.word[0] % kinds), width, 0};
    if (width == 1 && normalises(c.kind)) c.kind = 8;
    if (c.kind <= 1) c.width = width = widths[r.word[1] % 6];
    c.inner = c.kind == 3                       ? widths[r.word[2] % 6]
              : width % 3 == 0 && r.word[2] % 2 ? 3
              : width % 2 == 0                  ? 2
                                                : 1;
    layers[i] = c;
  }
  return layers;
}

template <unsigned Seed, int Count, class = std::make_index_sequence<std::size_t(Count)>>
struct RandomLayers;
template <unsigned Seed, int Count, std::size_t... Is>
struct RandomLayers<Seed, Count, std::index_sequence<Is...>> {
  static constexpr auto choices = choose<Seed, Count>(5);
  using type = pp::Seq<typename chosen<choices[int(Is)]>::type...>;
};

/// Tokens in and classes out, or numbers in and numbers out, as the seed has it.
template <unsigned Seed, int Count, bool Ids = Seed % 2 == 0>
struct RandomModel;
template <unsigned Seed, int Count>
struct RandomModel<Seed, Count, true>
    : pp::Model<pp::Tokens<7, 3>, pp::Embedding<5>, typename RandomLayers<Seed, Count>::type,
                pp::Linear<4>, pp::CrossEntropy> {};
template <unsigned Seed, int Count>
struct RandomModel<Seed, Count, false>
    : pp::Model<pp::Input<2, 4>, pp::Linear<5>, typename RandomLayers<Seed, Count>::type,
                pp::Flatten, pp::Positions, pp::MSE> {};

}  // namespace laws
