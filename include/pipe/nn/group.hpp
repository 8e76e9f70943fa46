// SPDX-License-Identifier: BSL-1.0
//
// How parameters are trained, said around layers: some not at all, some with another learning rate or weight decay. Both
// wrappers are opened, so the model may be cut between the layers inside as if nothing were around them.
#pragma once

#include <pipe/graph/builder.hpp>
#include <pipe/graph/layers.hpp>

namespace pp {

/// The layers' parameters stay as they are: they have neither gradients nor optimizer state, and no work is done for them.
/// Gradients still pass through to trained parameters before them.
template <class... L>
struct Frozen {
  using parts = layers<L...>;
  static constexpr int times = 1;
  template <class Builder>
  static constexpr void enter(Builder& b) {
    b.scope().trained = false;
  }
};

/// Numerator/Denominator times the learning rate that the optimizer is given.
template <int Numerator, int Denominator = 1>
  requires(Numerator >= 0 && Denominator > 0)
struct LearningRate {
  static constexpr void set(parameter_scope& s) { s.rate_scale *= double(Numerator) / Denominator; }
};
/// Numerator/Denominator times the optimizer's weight decay. Biases and norms do not decay, whatever is said here.
template <int Numerator, int Denominator = 1>
  requires(Numerator >= 0 && Denominator > 0)
struct WeightDecay {
  static constexpr void set(parameter_scope& s) { s.decay_scale *= double(Numerator) / Denominator; }
};

template <class O>
concept group_option = requires(parameter_scope& s) { O::set(s); };

/// Layers with settings of their own: `Group<LearningRate<1, 10>, WeightDecay<0>, Linear<64>, Tanh>`. In a group inside a group
/// the ratios multiply. An `Init` is a setting as well: the innermost one holds.
template <class... Items>
struct Group {
  using parts = decltype((layers<>{} + ... + std::conditional_t<group_option<Items>, layers<>, layers<Items>>{}));
  static constexpr int times = 1;
  template <class Builder>
  static constexpr void enter(Builder& b) {
    (apply<Items>(b.scope()), ...);
  }

 private:
  template <class Item>
  static constexpr void apply(parameter_scope& s) {
    if constexpr (group_option<Item>) Item::set(s);
  }
};

}  // namespace pp
