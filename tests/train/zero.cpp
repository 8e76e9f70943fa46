// SPDX-License-Identifier: BSL-1.0
//
// The memory of replicas that divide a model's states, as it is planned, and as it was published.
#include "catch.hpp"

#include <pipe/pipe.hpp>
#include <pipe/plan/compiled/planned.hpp>

#include <cmath>

#include "transport/silent.hpp"

using namespace pp;

namespace {

struct Replicas {
  using transport = silent::replicas;
};

/// 2.2 billion parameters, 9 layers of 4,096 columns.
struct Large : Model<Tokens<50257, 1024>, Embedding<4096>, Positions,
                     Repeat<9, Residual<LayerNorm, Attention<32>>,
                            Residual<LayerNorm, Linear<16384>, GELUTanh, Linear<4096>>>,
                     LayerNorm, Linear<50257>, CrossEntropy> {};
template <int Level>
using Divided = Planned<Large, AdamW, MicroBatches<1>, RecomputeAll, Replicas, ZeRO<Level>>;

/// What a level of ZeRO takes of a rank's memory for the model's states.
template <int Level>
double planned_states(int replicas, int replica) {
  auto const& plan = Divided<Level>::plan();
  auto const e = detail::end_of_arena(plan.arenas, plan.rank_memory[0], 0, replicas, replica);
  double const p = double(plan.parameters), parts = double(e.gradient_ring - e.state);
  return parts + (Level < 1 ? 16 * p : Level < 2 ? 8 * p : Level < 3 ? 4 * p : 0);
}

}  // namespace

TEST_CASE("model states take what was published") {
  auto const gigabytes = [](int level) { return model_states(7.5e9, level, 64, adam_mixed) / 1e9; };
  CHECK(gigabytes(0) == Approx(120));
  CHECK(gigabytes(1) == Approx(31.4).margin(.05));
  CHECK(gigabytes(2) == Approx(16.6).margin(.05));
  CHECK(gigabytes(3) == Approx(1.9).margin(.05));
}
TEST_CASE("the plan of a large model divides its states evenly") {
  double const p = double(Divided<0>::plan().parameters);
  for (int replica : {0, 31, 63}) {
    CHECK(planned_states<1>(64, replica) == Approx(model_states(p, 1, 64)).epsilon(.01));
    CHECK(planned_states<2>(64, replica) == Approx(model_states(p, 2, 64)).epsilon(.01));
    CHECK(planned_states<3>(64, replica) == Approx(model_states(p, 3, 64)).epsilon(.02));
  }
  CHECK(planned_states<1>(1, 0) == Approx(model_states(p, 1, 1)).epsilon(1e-6));
}
TEST_CASE("the uses of a rank's memory add up when states are divided") {
  auto const check = [](auto const& plan) {
    long sum = 0;
    for (auto const& share : plan.memory_of(0)) {
      CHECK(share.bytes >= 0);
      sum += share.bytes;
    }
    CHECK(sum == plan.rank_bytes[0]);
    CHECK(plan.rank_bytes_of(0, 1) == plan.rank_bytes[0]);
    CHECK(plan.rank_bytes_of(0, 8) < plan.rank_bytes_of(0, 2));
    CHECK_THROWS_AS(plan.rank_bytes_of(0, 8, 8), error);
  };
  check(Divided<1>::plan());
  check(Divided<2>::plan());
  check(Divided<3>::plan());
  CHECK(explain<Divided<3>>().find("ZeRO<3>, rank 0 of the first of 2, 8, 64 replicas: ") !=
        std::string::npos);
  CHECK(explain<Planned<Large, AdamW, MicroBatches<1>, RecomputeAll, Replicas,
                        GradientAccumulation<16>, ZeRO<1>>>()
            .find("ZeRO<1>, rank 0 of the first of 2, 8 replicas: ") != std::string::npos);
}
