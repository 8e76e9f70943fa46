// error: wrong::model_has_no_loss_with_that_name, .*Net.*Called<'w', 'o', 'r', 't', 'h'>
// SPDX-License-Identifier: BSL-1.0
//
// Outputs are given by the names of the losses.
#include <pipe/pipe.hpp>

using namespace pp;

struct Net : Model<Input<3>, Linear<4>, Stash<"seen">, Linear<2>,
                   Losses<MSE, FurtherLoss<"value", "seen", Linear<1>, MSE>>> {};
using Trainer = Pipeline<Net, PortableHost>;

void look(Trainer& trainer, Trainer::batch const& batch, std::span<float> policy,
          std::span<float> value) {
#ifdef PIPE_EXPECT_OK
  trainer.forward<"labels", "value">(batch, policy, value);
#else
  trainer.forward<"labels", "worth">(batch, policy, value);
#endif
}
