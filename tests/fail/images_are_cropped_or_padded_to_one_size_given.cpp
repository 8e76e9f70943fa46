// error: wrong::images_are_cropped_or_padded_to_one_size, .*Input<8, 8, 3>
// SPDX-License-Identifier: BSL-1.0
//
// Extents of images are not lengths of samples.
#include <vector>

#include <pipe/pipe.hpp>

using namespace pp;

struct Net : Model<Input<8, 8, 3>, Conv2d<4, 3>, ReLU, MeanPool, Linear<2>, MSE> {};
using Trainer = Pipeline<Net, PortableHost>;

double first(Trainer& trainer, std::vector<float> const& images, std::vector<float> const& labels,
             [[maybe_unused]] std::vector<int> const& extents) {
#ifdef PIPE_EXPECT_OK
  return trainer.step(Trainer::batch{images, labels}).loss;
#else
  return trainer.step(Trainer::batch{images, labels}.set_lengths(extents)).loss;
#endif
}
