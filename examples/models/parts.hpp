// SPDX-License-Identifier: BSL-1.0
//
// What the models of this folder have in common. A header has a family and, as aliases, the sizes
// of it that were published: one that a program does not name costs it nothing to compile. The
// sources of the list compare their numbers of parameters with the published ones.
#pragma once

#include <type_traits>

#include <pipe/pipe.hpp>

namespace models {

using namespace pp;

/// The trained numbers of a model, each shared parameter once.
template <class M>
constexpr long parameters_of() {
  long sum = 0;
  for (int i = 0; i < M::graph.size.parameters; ++i)
    if (auto const& p = M::graph.parameters[i]; p.trained && p.tied_to < 0)
      sum += p.form.elements();
  return sum;
}

/// N layers, the first of which differs from the further ones. needs: N > 0
template <int N, class First, class Further>
using Stack = std::conditional_t<(N > 1), Seq<First, Repeat<N - 1, Further>>, Seq<First>>;

/// A convolution that keeps the size of its image, divided by its stride, and the norm after it.
template <int Filters, int Kernel, int Steps = 1, int Number = 1>
using ConvNorm = Seq<Conv2d<Filters, Kernel, Stride<Steps>, Padding<Kernel / 2>, Groups<Number>,
                            NoBias, Init<KaimingNormalFanOut>>,
                     BatchNorm>;

}  // namespace models
