// SPDX-License-Identifier: BSL-1.0
//
// Thrust is included here only, where it costs no other file its time.
#include <thrust/device_vector.h>
#include <thrust/gather.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>

#include "device_text.hpp"

struct device_text::vectors {
  thrust::device_vector<unsigned char> bytes;
  thrust::device_vector<int> tokens, labels;
  int context;
};

namespace {

/// The place in the text of element i of a mini-batch.
struct place_in_text {
  std::uint64_t seed, step, windows;
  int context;

  __host__ __device__ long operator()(long i) const {
    std::uint64_t const window = std::uint64_t(i / context);
    return long(pp::text_data::place(seed, step, window, windows)) + i % context;
  }
};

}  // namespace

device_text::device_text(pp::text_data const& text, int context, std::size_t tokens)
    : of_(new vectors{{text.training_text().begin(), text.training_text().end()},
                      thrust::device_vector<int>(tokens),
                      thrust::device_vector<int>(tokens),
                      context}) {}
device_text::~device_text() = default;

void device_text::draw(std::uint64_t seed, std::uint64_t step) {
  vectors& v = *of_;
  place_in_text const place{seed, step, v.bytes.size() - std::uint64_t(v.context), v.context};
  auto const first = thrust::make_transform_iterator(thrust::counting_iterator<long>(0), place);
  auto const end = first + long(v.tokens.size());
  auto const here = thrust::cuda::par_nosync;  // the trainer waits, not the host
  thrust::gather(here, first, end, v.bytes.begin(), v.tokens.begin());
  thrust::gather(here, first, end, v.bytes.begin() + 1, v.labels.begin());
}
pp::device_span<int const> device_text::tokens() const { return of_->tokens; }
pp::device_span<int const> device_text::labels() const { return of_->labels; }
