// error: wrong::cuts_must_ascend_and_make_as_many_stages, .*AllAtOnce<false>
// SPDX-License-Identifier: BSL-1.0
//
// The cuts of a user-defined policy are looked at: here the second stage would have no layer.
#include <pipe/pipe.hpp>

using namespace pp;

template <bool Right>
struct AllAtOnce {
  static constexpr void cut(auto const&, int layers, int stages, auto& cuts) {
    for (int s = 1; s <= stages; ++s) cuts[s] = Right ? s * layers / stages : layers;
  }
};

struct Net : Model<Input<3>, Linear<4>, Linear<2>, MSE> {};

#ifdef PIPE_EXPECT_OK
using Trainer = Pipeline<Net, PortableHost, AdamW, Stages<2>, AllAtOnce<true>>;
#else
using Trainer = Pipeline<Net, PortableHost, AdamW, Stages<2>, AllAtOnce<false>>;
#endif

#include "program.hpp"
