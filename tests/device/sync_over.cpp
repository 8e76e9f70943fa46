// SPDX-License-Identifier: BSL-1.0
//
// Batch norms by the statistics of groups of samples over the engine for a GPU: the numbers of the
// host, and the bits of micro-batches of the size of the groups.
#include "cuda/agreement.hpp"
#include "device/device.hpp"
#include "laws/sync_over.hpp"

using namespace pp;

namespace {

/// Groups of two sizes, a frozen norm among them.
struct Mixed : Model<Input<2, 3>, With<BatchNorm, SyncOver<2>>, Tanh, Linear<5, NoBias>,
                     With<BatchNorm, Momentum<1, 2>, BiasedVariance, NoAffine, SyncOver<4>>, ReLU,
                     Frozen<With<BatchNorm, SyncOver<2>>>,
                     Residual<With<BatchNorm, SyncOver<2>>, GELUTanh, Linear<5>>, Linear<2>, MSE> {
};
template <int Count, int Size, class... Over>
using Of = Pipeline<laws::Normed<Over...>, on_host::Device, AdamW, MicroBatches<Count>,
                    MicroBatchSize<Size>>;

}  // namespace

TEST_CASE("SyncOver on a device has the numbers of the host", "[cuda]") {
  on_host::agrees_with_the_host_on<on_host::Device, Mixed, MicroBatches<2>, MicroBatchSize<8>, SGD>(
      5e-5);
}
TEST_CASE("SyncOver on a device has the bits of micro-batches of its size", "[cuda]") {
  laws::same_as_groups<Of<8, 2>, Of<2, 8, SyncOver<2>>>(4);
}
