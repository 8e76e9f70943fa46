// SPDX-License-Identifier: BSL-1.0
//
// Images of other extents than the model's: refused by one sentence that says what to do.
#include <string>
#include <vector>

#include "catch.hpp"
#include "message_of.hpp"

#include <pipe/data/image_set.hpp>
#include <pipe/pipe.hpp>

using namespace pp;

namespace {

struct Net : Model<Input<4, 6, 3>, Conv2d<2, 3>, ReLU, MeanPool, Linear<2>, CrossEntropy> {};
using Trainer = Pipeline<Net, PortableHost, MicroBatches<2>, MicroBatchSize<2>>;

constexpr std::size_t of_image = 4 * 6 * 3;

}  // namespace

TEST_CASE("images of other extents are refused by batches, step, evaluate and forward") {
  // Two images of 4 x 6, and one of 5 x 6.
  std::vector<float> const images(2 * of_image + 5 * 6 * 3), whole(3 * of_image);
  std::vector<int> const labels(3, 1);
  std::vector<float> outputs(6);
  Trainer trainer;
  std::string const said =
      "inputs: expected images of 4 x 6 x 3, 72 numbers each, got 234 numbers: crop or pad images "
      "of other extents";
  CHECK(message_of<data_error>([&] { batches<Trainer> epoch({images, labels}); }) == said);
  CHECK(message_of<data_error>([&] { predict(trainer, images); }) == said);
  CHECK(message_of<data_error>([&] { trainer.step({images, labels}); }) == said);
  CHECK(message_of<data_error>([&] { trainer.evaluate({images, labels}); }) == said);
  CHECK(message_of<data_error>([&] { trainer.forward(images, outputs); }) == said);
  CHECK(trainer.steps() == 0);
  trainer.step({whole, labels});
  CHECK(trainer.steps() == 1);
}

TEST_CASE("a set of images of several extents gives no numbers") {
  image_set set;
  set.height = 4, set.width = 6, set.channels = 3;
  set.labels = {0, 1};
  set.pixels.resize(of_image + 90);
  CHECK(message_of<data_error>([&] { set.numbers(); }) ==
        "image_set: 2 images of 4 x 6 x 3 have 144 numbers, got 162: crop or pad images of other "
        "extents");
  set.pixels.resize(2 * of_image);
  CHECK(set.numbers().size() == 2 * of_image);
}
