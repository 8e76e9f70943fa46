// error: wrong::name_is_given_twice, .*Net.*Called<'v', 'a', 'l', 'u', 'e'>
// SPDX-License-Identifier: BSL-1.0
//
// A run gives each output once.
#include <pipe/pipe.hpp>

using namespace pp;

struct Net : Model<Input<3>, Linear<4>, Stash<"seen">, Linear<2>,
                   Losses<MSE, FurtherLoss<"value", "seen", Linear<1>, MSE>>> {};
using Trainer = Pipeline<Net, PortableHost>;

void look(Trainer& trainer, std::span<float const> inputs, std::span<float> first,
          std::span<float> second) {
#ifdef PIPE_EXPECT_OK
  trainer.forward<"value", "labels">(inputs, first, second);
#else
  trainer.forward<"value", "value">(inputs, first, second);
#endif
}
