// SPDX-License-Identifier: BSL-1.0
//
// Models of images over the engine for a GPU: convolutions, norms of a micro-batch and of samples,
// and pools; a vision Transformer with several losses. The numbers are the host's, and cuts and
// schedules change no bit.
#include "cuda/agreement.hpp"
#include "device/device.hpp"
#include "laws/bit_law.hpp"
#include "laws/buffers_of.hpp"
#include "laws/images.hpp"

using namespace pp;

namespace {

using laws::Images;
template <class Backend, class... More>
using Of = Pipeline<Images, Backend, MicroBatches<3>, MicroBatchSize<2>, SGD, More...>;
using device = Of<on_host::Device>;

/// No kernel has a matrix of columns in memory, of K x K x C numbers for each pixel. What grows
/// with K beside the parameters are partial sums of a weight's gradient, a few for each weight.
template <int K>
struct Windows
    : Model<Input<64, 64, 16>, Conv2d<16, K, Padding<K / 2>>, Tanh,
            Conv2d<16, K, Padding<K / 2>, Groups<2>>, ConvTranspose2d<16, K, Padding<K / 2>>, MSE> {
};
template <int K>
using Convolved = Pipeline<Windows<K>, SGD, on_host::Device, MicroBatchSize<2>>;
template <int K>
constexpr long columns_bytes = 2L * 64 * 64 * K * K * 16 * 4;
static_assert(Convolved<3>::plan.bytes < columns_bytes<3>);
static_assert(Convolved<7>::plan.bytes - Convolved<3>::plan.bytes <
              8 * (Convolved<7>::plan.stages[0].parameter_bytes -
                   Convolved<3>::plan.stages[0].parameter_bytes));
static_assert(Convolved<7>::plan.bytes < columns_bytes<7> / 4);

}  // namespace

TEST_CASE("a model of images on a device has the numbers of the host", "[cuda]") {
  on_host::agrees_with_the_host_on<on_host::Device, Images, MicroBatches<3>, MicroBatchSize<2>,
                                   SGD>(5e-5);
}
TEST_CASE("a model of images on a device has the bits of one stage", "[cuda]") {
  laws::train_alike_from_the_start<device,
                                   Of<on_host::Device, Stages<4>, ZeroBubbleH1, RecomputeAll>>(7, 2,
                                                                                               3);
}
TEST_CASE("a vision Transformer with several losses on a device has the numbers of the host",
          "[cuda]") {
  on_host::agrees_with_the_host_on<on_host::Device, laws::Vision, MicroBatches<3>,
                                   MicroBatchSize<2>, AdamW>(2e-5);
  using one = Pipeline<laws::Vision, on_host::Device, MicroBatches<3>, MicroBatchSize<2>, AdamW>;
  laws::train_alike_from_the_start<
      one, Pipeline<laws::Vision, on_host::Device, MicroBatches<3>, MicroBatchSize<2>, AdamW,
                    Stages<3>, GPipe, RecomputeAll>>(7, 2, 3);
}
TEST_CASE("running statistics on a device are those of the host", "[cuda]") {
  using host = Of<PortableHost>;
  host expected({.seed = 3});
  device found({.seed = 3});
  laws::copy_parameters(expected, found);
  laws::sample_batch<device> const data(5);
  expected.step(data.view<host>(5));  // the last micro-batch has one sample
  found.step(data.view(5));
  auto const a = laws::buffers_of(expected), b = laws::buffers_of(found);
  REQUIRE(a.size() == 2 * (8 + 6));
  for (std::size_t i = 0; i < a.size(); ++i) CHECK(b[i] == Approx(a[i]).epsilon(1e-4).margin(1e-5));
}
