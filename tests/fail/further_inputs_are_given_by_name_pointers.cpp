// error: wrong::further_inputs_are_given_by_name ?>
// SPDX-License-Identifier: BSL-1.0
//
// The same for lists as pointers and lengths.
#include <cstddef>

#include <pipe/pipe.hpp>

using namespace pp;

struct Net
    : Model<Input<3>, Stash<"first">, Named<"second", Input<3>>, Pop<"first">, Linear<2>, MSE> {};
using Trainer = Pipeline<Net, PortableHost>;

double run(Trainer& trainer, float const* first, float const* second, float const* labels,
           std::size_t n) {
#ifdef PIPE_EXPECT_OK
  Trainer::batch batch{{first, n}, {labels, n}};
  return trainer.step(batch.set<"second">({second, n})).loss;
#else
  return trainer.step({{first, n}, {labels, n}, {second, n}}).loss;
#endif
}
