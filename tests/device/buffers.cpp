// SPDX-License-Identifier: BSL-1.0
//
// Buffers on a device: committed once per mini-batch, the same bits under every cut, recomputation
// and order of streams, the host's numbers, and none of it in a step that is skipped.
#include <vector>

#include "device/centered.hpp"
#include "device/device.hpp"
#include "laws/bit_law.hpp"
#include "laws/buffers_of.hpp"

using namespace pp;

namespace {

using on_host::Centered;
struct Net : Model<Input<2, 3>, Custom<Centered>, Linear<4>, Custom<Centered>, Linear<2>, MSE> {};

template <class... More>
using Of = Pipeline<Net, MicroBatches<4>, MicroBatchSize<2>, AdamW, More...>;
using device = Of<on_host::Device>;

}  // namespace

TEST_CASE("buffers on a device have the bits of one stage", "[cuda]") {
  using many = Of<on_host::Device, Stages<3>, ZeroBubbleH1, RecomputeAll>;
  using fake_gpu::preference;
  for (preference p : {preference::awaited, preference::last, preference::first}) {
    fake_gpu::gpu.prefers = p;
    laws::train_alike_from_the_start<device, many>(7, 3, 3);
  }
  fake_gpu::gpu.prefers = preference::awaited;
}

TEST_CASE("buffers on a device have the numbers of the host", "[cuda]") {
  Of<PortableHost> expected({.seed = 3, .clip_value = 1e-3});
  device found({.seed = 3, .clip_value = 1e-3});  // of gradients, not of sums
  laws::disturb(expected, 3, 0.3);
  for (int step = 0; step < 3; ++step) {
    laws::copy_parameters(expected, found);  // buffers too: they are uploaded
    laws::sample_batch<device> const data(std::uint64_t(step) + 5);
    expected.accumulate(data.view<Of<PortableHost>>(5));
    found.accumulate(data.view(5));
    CHECK(found.step(data.view()).loss ==
          Approx(expected.step(data.view<Of<PortableHost>>()).loss).epsilon(1e-5));
    auto const a = laws::buffers_of(expected), b = laws::buffers_of(found);
    REQUIRE(a.size() == 3 + 4);
    for (std::size_t i = 0; i < a.size(); ++i) {
      CHECK(a[i] != 0);
      CHECK(b[i] == Approx(a[i]).epsilon(1e-5));
    }
  }
}

TEST_CASE("a step that is skipped on a device commits no buffer", "[cuda]") {
  Of<on_host::Device, FP16> t({.seed = 3});
  laws::sample_batch<device> data(9);
  for (float& y : data.labels) y *= 20000;  // overflows with the first loss scales
  auto before = laws::buffers_of(t);
  int skipped = 0, done = 0;
  for (int step = 0; step < 40 && done == 0; ++step) {
    bool const was_skipped = t.step(data.view()).skipped;
    (was_skipped ? skipped : done) += 1;
    CHECK((laws::buffers_of(t) == before) == was_skipped);
  }
  CHECK(skipped > 0);
  CHECK(done == 1);
}
