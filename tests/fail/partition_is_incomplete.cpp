// error: wrong::partition_is_incomplete, .*Halves<false>.*Missing<.*cut>
// SPDX-License-Identifier: BSL-1.0
//
// A partition policy cuts by the costs of the layers, the numbers of layers and of stages.
#include <pipe/pipe.hpp>

using namespace pp;

template <bool Complete>
struct Halves {
  template <class Costs, class Cuts>
  static constexpr void cut(Costs const&, int layers, int stages, Cuts& cuts) {
    for (int s = 0; s <= stages; ++s) cuts[s] = s * layers / stages;
  }
};
template <>
struct Halves<false> {
  template <class Costs, class Cuts>
  static constexpr void cut(Costs const&, Cuts& cuts) {
    cuts[1] = 1;
  }
};

struct Net : Model<Input<3>, Linear<4>, Linear<2>, MSE> {};

#ifdef PIPE_EXPECT_OK
using Trainer = Pipeline<Net, PortableHost, AdamW, Stages<2>, Halves<true>>;
#else
using Trainer = Pipeline<Net, PortableHost, AdamW, Stages<2>, Halves<false>>;
#endif

#include "program.hpp"
