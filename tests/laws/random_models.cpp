// SPDX-License-Identifier: BSL-1.0
//
// The gradient law and the bit law for models that a seed chose.
#include "catch.hpp"

#include "laws/bit_law.hpp"
#include "laws/gradient_law.hpp"
#include "laws/random_model.hpp"
#include "laws/schedules.hpp"

using namespace pp;

namespace {

template <unsigned Seed>
void check() {
  constexpr int layers = 3 + int(Seed) % 6;
  using model = laws::RandomModel<Seed, layers>;
  constexpr int stages = 2 + int(Seed) % (model::graph.size.units - 1);
  INFO("seed " << Seed << ", " << layers << " layers");

  using exact = Pipeline<model, FP64, PortableHost, MicroBatches<2>, MicroBatchSize<2>>;
  pp::detail::gradient_report const r = laws::compare_with_differences<exact>(Seed);
  INFO("parameter " << r.worst_parameter);
  CHECK(r.worst < 1e-7);

  using schedule = std::conditional_t<Seed % 3 == 0, OneFOneB,
                                      std::conditional_t<Seed % 3 == 1, laws::MixedWeights, GPipe>>;
  using one = Pipeline<model, PortableHost, AdamW, MicroBatches<5>>;
  laws::same_as_one_stage<
      one, Pipeline<model, PortableHost, AdamW, MicroBatches<5>, Stages<stages>, schedule>>(Seed,
                                                                                            2);
}

}  // namespace

TEST_CASE("random models obey the laws", "[laws]") {
  check<1>(), check<2>(), check<3>(), check<4>(), check<5>(), check<6>();
  check<7>(), check<11>();
}
