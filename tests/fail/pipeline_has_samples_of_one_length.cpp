// error: wrong::pipeline_has_samples_of_one_length, .*NoLengths
// SPDX-License-Identifier: BSL-1.0
//
// Without Lengths all samples are padded to the context.
#include <vector>

#include <pipe/pipe.hpp>

using namespace pp;

struct Net : Model<Tokens<7, 8>, Embedding<4>, Linear<7>, CrossEntropy> {};

#ifdef PIPE_EXPECT_OK
using Trainer = Pipeline<Net, PortableHost, Lengths<>>;
#else
using Trainer = Pipeline<Net, PortableHost>;
#endif

double first(Trainer& trainer, std::vector<int> const& ids, std::vector<int> const& labels,
             std::vector<int> const& lengths) {
  return trainer.step(Trainer::batch{ids, labels}.set_lengths(lengths)).loss;
}
