// error: wrong::further_inputs_are_given_by_name, .*FoundElement<const float>
// SPDX-License-Identifier: BSL-1.0
//
// In its braces a batch has two lists: inputs and labels.
#include <vector>

#include <pipe/pipe.hpp>

using namespace pp;

struct Net
    : Model<Input<3>, Stash<"first">, Named<"second", Input<3>>, Pop<"first">, Linear<2>, MSE> {};
using Trainer = Pipeline<Net, PortableHost>;

double run(Trainer& trainer, std::vector<float>& first, std::vector<float>& second,
           std::vector<float>& labels) {
#ifdef PIPE_EXPECT_OK
  Trainer::batch batch{first, labels};
  return trainer.step(batch.set<"second">(second)).loss;
#else
  return trainer.step({first, labels, second}).loss;
#endif
}
