// SPDX-License-Identifier: BSL-1.0
//
// Recomputation ahead of the gradient on devices: the bits of recomputation in the backward,
// whatever stream the device prefers.
#include "device/device.hpp"
#include "laws/bit_law.hpp"

using namespace pp;

namespace {

struct Net : Model<Input<24>, Linear<40>, ReLU, Linear<40>, GELUTanh, Dropout<1, 5>, Linear<40>,
                   GELUTanh, Linear<10>, MSE> {};

/// Compares S with recomputation ahead and in the backward.
template <class S, class... Options>
void has_the_bits_of_backward() {
  using in_backward =
      Pipeline<Net, on_host::Device, AdamW, RecomputeAll, MicroBatchSize<2>, S, Options...>;
  using ahead = Pipeline<Net, on_host::Device, AdamW, RecomputeAll, MicroBatchSize<2>,
                         RecomputeAhead<S>, Options...>;
  using fake_gpu::preference;
  for (preference p : {preference::last, preference::first}) {
    fake_gpu::gpu.prefers = p;
    laws::train_alike_from_the_start<in_backward, ahead>(7, 2, 1);
  }
  fake_gpu::gpu.prefers = preference::awaited;
}

}  // namespace

TEST_CASE("recomputation ahead has the bits of that in the backward on a device", "[cuda]") {
  has_the_bits_of_backward<ZeroBubbleV, Stages<4>, MicroBatches<4>, BF16>();
}
