// SPDX-License-Identifier: BSL-1.0
//
// Optimizers of whole tensors on a GPU: the host's steps, the bits of one stage in many whose state
// is on the host, with steps as graphs. Compiled wherever nvcc is; run wherever a GPU is.
#include "cuda/device_laws.hpp"
#include "laws/own_optimizer.hpp"

using namespace pp;

namespace {

/// Vectors, matrices that lie and stand, a table that is shared, and what is frozen.
struct Small
    : Model<Tokens<11, 5>, Named<"table", Embedding<9>>, Positions, LayerNorm, Linear<37>, GELUTanh,
            Frozen<Linear<7>>, Linear<70, NoBias>, Tanh, Linear<9>, Tied<"table">, CrossEntropy> {};

template <class Optimizer, class... More>
using trained = Pipeline<Small, Cuda, Optimizer, MicroBatches<2>, MicroBatchSize<2>, More...>;

// [offload]
using OnDevice = Pipeline<Small, Cuda, AdamW>;
using OnHost = Pipeline<Small, Cuda, AdamW, OffloadState>;
static_assert(OnHost::plan.host_bytes[0] > 0 &&
              OnHost::plan.rank_bytes[0] ==
                  OnDevice::plan.rank_bytes[0] - OnHost::plan.host_bytes[0]);
// [/offload]

/// Losses of some steps are the host's; the parameters after them have the bits of one stage,
/// and of state on the device.
template <class Optimizer, class Precision>
void holds(double tolerance) {
  using host = Pipeline<Small, PortableHost, Optimizer, MicroBatches<2>, MicroBatchSize<2>>;
  using one = trained<Optimizer, Precision>;
  using many = trained<Optimizer, Precision, Stages<4>, ZeroBubbleV, RecomputeAll, OffloadState>;
  host expected({.seed = 5, .clip_norm = 0.1});
  one found({.seed = 5, .clip_norm = 0.1});
  many cut({.seed = 5, .clip_norm = 0.1});
  for (int step = 0; step < 4; ++step) {
    laws::sample_batch<host> const data(std::uint64_t(step) + 1);
    double const rate = 0.02 / (1 + step);
    auto const x = expected.step(data.view(), rate);
    auto const y = found.step(data.template view<one>(), rate);
    auto const z = cut.step(data.template view<many>(), rate);
    INFO("step " << step << " on " << found.runs_on());
    CHECK(y.loss == Approx(x.loss).epsilon(tolerance));
    CHECK(laws::same_bits(y.loss, z.loss));
    CHECK(laws::same_numbers(laws::snapshot(found).values, laws::snapshot(cut).values));
  }
}

}  // namespace

TEST_CASE("LAMB on a GPU", "[gpu]") { holds<LAMB, FP32>(1e-4); }
TEST_CASE("Adafactor on a GPU", "[gpu]") { holds<Adafactor, FP16>(3e-2); }
TEST_CASE("Muon on a GPU", "[gpu]") { holds<Muon, FP32>(1e-4); }
TEST_CASE("a user's optimizer of two passes on a GPU", "[gpu]") { holds<laws::Normed, BF16>(3e-2); }
