// error: wrong::labels_have_the_wrong_type, .*CrossEntropy.*ExpectedElement<int>.*FoundElement<float>
// SPDX-License-Identifier: BSL-1.0
//
// A class is a whole number. The mistake is one, however often the labels are used.
#include <vector>

#include <pipe/pipe.hpp>

using namespace pp;

struct Net : Model<Tokens<11, 4>, Embedding<6>, Linear<11>, CrossEntropy> {};
using Trainer = Pipeline<Net, PortableHost>;

#ifdef PIPE_EXPECT_OK
using numbers = std::vector<int>;
#else
using numbers = std::vector<float>;
#endif

double run(Trainer& trainer, std::vector<int> const& ids, numbers& labels) {
  Trainer::batch const batch{ids, labels};
  return trainer.step({ids, labels}).loss + trainer.step(batch, 0.5).loss +
         trainer.evaluate({ids, labels});
}
