// error: wrong::input_has_no_gradient, .*Tokens<5, 3>
// SPDX-License-Identifier: BSL-1.0
//
// Token ids have no gradient.
#include <pipe/pipe.hpp>

using namespace pp;

struct Net : Model<Named<"at", Input<3, 4>>, Linear<4>, Stash<"x">, Named<"ids", Tokens<5, 3>>,
                   Embedding<4>, Pop<"x">, Linear<2>, MSE> {};
using Trainer = Pipeline<Net, PortableHost, InputGradients>;

float first(Trainer& trainer, Trainer::batch const& batch) {
#ifdef PIPE_EXPECT_OK
  return trainer.input_gradients<"at">(batch)[0];
#else
  return trainer.input_gradients<"ids">(batch)[0];
#endif
}
