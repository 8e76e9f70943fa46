// SPDX-License-Identifier: BSL-1.0
//
// Augmentation of images in device memory: the bits of the host's, and a trainer takes them.
// Compiled wherever nvcc is; run wherever a GPU is. With Thrust in the file `using namespace pp`
// would make its `cuda` ambiguous in what nvcc generates.
#include <thrust/copy.h>
#include <thrust/device_vector.h>

#include <span>
#include <vector>

#include <pipe/data/augment_on_device.cuh>

#include "cuda/device_laws.hpp"
#include "message_of.hpp"

namespace {

struct Net : pp::Model<pp::Input<5, 4, 3>, pp::Flatten, pp::Linear<3>, pp::CrossEntropy> {};
using trainer = pp::Pipeline<Net, pp::Cuda, pp::MicroBatches<2>, pp::MicroBatchSize<3>>;
constexpr std::size_t size = trainer::inputs_per_sample, samples = 4 * trainer::samples;

constexpr pp::augmentation changes{
    .height = 5, .width = 4, .channels = 3, .padding = 2, .flip = true, .cutout = 2, .seed = 9};

std::vector<float> some_images() {
  std::vector<float> images;
  for (std::size_t i = 0; i < samples * size; ++i) images.push_back(float(i + 1) / 7);
  return images;
}
std::vector<float> on_host(thrust::device_vector<float> const& v) {
  std::vector<float> copy(v.size());
  thrust::copy(v.begin(), v.end(), copy.begin());
  return copy;
}

/// Steps on a data set in device memory, in its order.
double train(trainer& t, thrust::device_vector<float> const& images,
             thrust::device_vector<int> const& labels) {
  double loss = 0;
  // [augment]
  constexpr std::size_t n = trainer::samples;
  thrust::device_vector<float> changed(n * size);
  for (std::size_t done = 0; done < samples; done += n) {
    pp::device_span<float const> const drawn{images.data() + done * size, n * size};
    pp::augment(drawn, changed, changes, long(done));
    pp::device_span<int const> const classes{labels.data() + done, n};
    loss = t.step({changed, classes}).loss;
  }
  // [/augment]
  return loss;
}

}  // namespace

TEST_CASE("images in device memory are augmented as on the host", "[gpu]") {
  std::vector<float> const images = some_images();
  thrust::device_vector<float> const from(images);
  thrust::device_vector<float> to(images.size());
  auto expected = images;
  pp::augment(std::span(expected), changes, 11);
  pp::augment(from, to, changes, 11);
  CHECK(laws::same_numbers(on_host(to), expected));
  CHECK_FALSE(laws::same_numbers(images, expected));

  expected = images;
  auto const mixed = pp::mix_up(std::span(expected), changes, 11, 0.4);
  thrust::device_vector<pp::mixed_sample> const mixtures(
      pp::mixed_samples(samples, changes.seed, 11, 0.4));
  pp::mix_up(from, to, mixtures);
  CHECK(laws::same_numbers(on_host(to), expected));
  CHECK_FALSE(laws::same_numbers(images, expected));

  CHECK(message_of([&] {
          pp::augment(from, pp::device_span<float>(to).first(size), changes, 0);
        }) == "augment: expected room for 1440 numbers, got 60");
  CHECK(message_of([&] {
          pp::mix_up(pp::device_span<float const>(from).first(30), to, mixtures);
        }) == "mix_up: 30 numbers are no images of 24 samples");
}

TEST_CASE("a trainer takes augmented images in device memory", "[gpu]") {
  std::vector<float> images = some_images();
  std::vector<int> labels(samples);
  for (std::size_t i = 0; i < samples; ++i) labels[i] = int(i % 3);
  trainer found({.seed = 3}), expected({.seed = 3});
  double const loss =
      train(found, thrust::device_vector<float>(images), thrust::device_vector<int>(labels));
  pp::augment(std::span(images), changes, 0);
  for (std::size_t done = 0; done < samples; done += trainer::samples) {
    double const other = expected
                             .step({std::span(images).subspan(done * size, trainer::samples * size),
                                    std::span(labels).subspan(done, trainer::samples)})
                             .loss;
    if (done + trainer::samples == samples) CHECK(laws::same_bits(loss, other));
  }
  CHECK(laws::same_numbers(laws::snapshot(found).values, laws::snapshot(expected).values));
}
