// SPDX-License-Identifier: BSL-1.0
//
// Augmentation: every crop, flip and square is drawn, each image by its place alone; mixtures have
// the shares that they say.
#include "catch.hpp"

#include <set>
#include <span>
#include <vector>

#include <pipe/data.hpp>
#include <pipe/pipe.hpp>
#include <pipe/train/batches.hpp>
#include <pipe/train/batches_ahead.hpp>

#include "../../message_of.hpp"

using namespace pp;

namespace {

/// Images whose pixels say their places, from 1 on.
std::vector<float> counted_images(int images, int pixels) {
  std::vector<float> all;
  for (int i = 0; i < images; ++i)
    for (int k = 0; k < pixels; ++k) all.push_back(float(k + 1));
  return all;
}

}  // namespace

TEST_CASE("crops and flips are those of a padded image, each as often as others") {
  augmentation const a{
      .height = 3, .width = 4, .channels = 2, .padding = 1, .flip = true, .seed = 5};
  int const images = 1800, pixels = 3 * 4;
  auto all = counted_images(images, 2 * pixels);
  augment(std::span(all), a, 0);
  std::vector<int> drawn(18);
  for (int i = 0; i < images; ++i) {
    int is = -1;
    for (int choice = 0; choice < 18; ++choice) {
      int const down = choice % 3 - 1, right = choice / 3 % 3 - 1;
      bool same = true;
      for (int y = 0; y < 3; ++y)
        for (int x = 0; x < 4; ++x)
          for (int c = 0; c < 2; ++c) {
            int const row = y + down, column = (choice >= 9 ? 3 - x : x) + right;
            bool const is_in = row >= 0 && row < 3 && column >= 0 && column < 4;
            float const expected = is_in ? float((row * 4 + column) * 2 + c + 1) : 0;
            same = same && all[std::size_t((i * pixels + y * 4 + x) * 2 + c)] == expected;
          }
      if (same) is = choice;
    }
    REQUIRE(is >= 0);
    ++drawn[std::size_t(is)];
  }
  for (int const n : drawn) CHECK((n > 60 && n < 140));  // 100 expected, deviation 10
}

TEST_CASE("squares are cut out anywhere, also over the border") {
  augmentation const a{.height = 5, .width = 5, .channels = 1, .cutout = 3, .seed = 1};
  auto all = counted_images(200, 25);
  augment(std::span(all), a, 7);
  std::set<int> zeros;
  for (int i = 0; i < 200; ++i) {
    int count = 0;
    for (int k = 0; k < 25; ++k) {
      float const x = all[std::size_t(i * 25 + k)];
      REQUIRE((x == 0 || x == float(k + 1)));
      count += x == 0;
    }
    zeros.insert(count);
  }
  CHECK(zeros == std::set{4, 6, 9});
}

TEST_CASE("settings of augmentation that no image has are refused") {
  std::vector<float> images(16);
  for (augmentation const& a :
       {augmentation{.height = 1 << 30, .width = 1 << 30, .channels = 16},
        augmentation{.height = 4, .width = 4, .channels = 0},
        augmentation{.height = 4, .width = 4, .channels = 1, .padding = 2'147'483'647},
        augmentation{.height = 4, .width = 4, .channels = 1, .cutout = 2'147'483'647},
        augmentation{.height = 4, .width = 4, .channels = 1, .padding = -1}})
    CHECK_THROWS_WITH(augment(std::span(images), a, 0),
                      Catch::Contains("augment: expected extents from 1 to 65536, padding and"));
}

TEST_CASE("a number of an image is made by itself as with all others") {
  augmentation const a{
      .height = 6, .width = 5, .channels = 3, .padding = 2, .flip = true, .cutout = 2, .seed = 9};
  int const images = 20, size = 6 * 5 * 3;
  std::vector<float> before(images * size);
  for (std::size_t i = 0; i < before.size(); ++i) before[i] = float(i + 1) / 7;
  auto all = before;
  augment(std::span(all), a, 11);
  detail::augmented_number<float> const augmented{before.data(), a, 11};
  for (long i = 0; i < images * size; ++i) REQUIRE(all[std::size_t(i)] == augmented(i));

  all = before;
  auto const samples = mix_up(std::span(all), a, 11, 0.4);
  detail::mixed_number_at<float> const mixed{before.data(), samples.data(), size};
  for (long i = 0; i < images * size; ++i) REQUIRE(all[std::size_t(i)] == mixed(i));
}

TEST_CASE("mixtures have the shares that they say, from near 0 to near 1") {
  augmentation const a{.height = 1, .width = 1, .channels = 1, .seed = 3};
  std::vector<float> all(4000);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = float(i % 7);
  auto const before = all;
  double sum = 0, squares = 0;
  auto const mixed = mix_up(std::span(all), a, 0, 0.5);
  for (std::size_t i = 0; i < all.size(); ++i) {
    REQUIRE(mixed[i].other == (i + 1) % 4000);
    float const share = mixed[i].share;
    REQUIRE(all[i] ==
            Approx(share * before[i] + (1 - share) * before[mixed[i].other]).margin(1e-5));
    sum += share, squares += share * share;
  }
  CHECK(sum / 4000 == Approx(0.5).margin(0.03));
  CHECK(squares / 4000 - 0.25 == Approx(0.125).margin(0.015));  // Beta(1/2, 1/2)
  CHECK(message_of([&] { mix_up(std::span(all), a, 0, 1.5); }) ==
        "mix_up: alpha: expected a number in (0, 1], got 1.5");
  std::vector<float> half(3);
  CHECK(message_of([&] {
          augment(std::span(half), {.height = 2, .width = 1, .channels = 1}, 0);
        }) == "augment: expected whole images of 2 numbers, got 3");
}

namespace {

struct Net : Model<Input<4, 4, 1>, Flatten, Linear<2>, CrossEntropy> {};
using Trainer = Pipeline<Net, MicroBatches<2>, MicroBatchSize<2>, SGD>;

}  // namespace

TEST_CASE("a run that augments goes on with the same bits") {
  image_set set;
  set.height = set.width = 4, set.channels = 1;
  for (int i = 0; i < 10; ++i) {
    set.labels.push_back(i % 2);
    for (int k = 0; k < 16; ++k) set.pixels.push_back(std::uint8_t(i * 31 + k * 7));
  }
  std::vector<float> const inputs = set.numbers();
  auto const losses = [&](long begin, long end) {
    Trainer trainer({.seed = 1, .optimizer = {.learning_rate = 0}});
    std::vector<double> all;
    long done = begin;
    // [augment]
    augmentation const changes{
        .height = 4, .width = 4, .channels = 1, .padding = 1, .flip = true, .seed = 1};
    std::vector<float> images;
    while (done < end) {
      batches<Trainer> epoch({inputs, set.labels},
                             {.shuffle = true, .seed = 1, .sample_position = done});
      for (Trainer::batch batch : epoch) {
        images.assign(batch.inputs.begin(), batch.inputs.end());
        augment(std::span(images), changes, done);
        batch.inputs = images;
        all.push_back(trainer.step(batch).loss);
        done = epoch.sample_position();
      }
    }
    // [/augment]
    return all;
  };
  auto const losses_by_thread = [&](long begin, long end) {
    Trainer trainer({.seed = 1, .optimizer = {.learning_rate = 0}});
    std::vector<double> all;
    long done = begin;
    // [ahead]
    augmentation const changes{
        .height = 4, .width = 4, .channels = 1, .padding = 1, .flip = true, .seed = 1};
    auto const change = [&](owned_batch<Trainer>& b, long place) {
      augment(std::span(b.inputs), changes, place);
    };
    while (done < end) {
      batches<Trainer> epoch({inputs, set.labels},
                             {.shuffle = true, .seed = 1, .sample_position = done});
      batches_ahead<Trainer> ahead(epoch, change, {.depth = 2});
      for (Trainer::batch const& batch : ahead) {
        all.push_back(trainer.step(batch).loss);
        done = ahead.sample_position();
      }
    }
    // [/ahead]
    return all;
  };
  auto const all = losses(0, 20), rest = losses(4, 20);
  CHECK(losses_by_thread(0, 20) == all);
  CHECK(losses_by_thread(4, 20) == rest);
  REQUIRE((all.size() == 6 && rest.size() == 5));
  CHECK(std::vector(all.begin() + 1, all.end()) == rest);
  CHECK(std::vector(all.begin(), all.begin() + 3) != std::vector(all.begin() + 3, all.end()));
}
