// SPDX-License-Identifier: BSL-1.0
//
// What is allocated is what was planned, once; after that nothing is.
#include <catch2/catch.hpp>

#include <memory>

#include "runtime/allocation.hpp"
#include "runtime/trainers.hpp"

namespace {

template <class Trainer>
void allocates_as_planned() {
  Trainer const trainer;
  long sum = 0;
  for (int r = 0; r < Trainer::plan.rank_count; ++r) {
    CHECK(trainer.allocated_bytes(r) == Trainer::plan.rank_bytes[r]);
    sum += trainer.allocated_bytes(r);
  }
  CHECK(sum == Trainer::plan.bytes);
}

#if PIPE_TESTS_COUNT_ALLOCATIONS
template <class Trainer>
void nothing_is_allocated_by() {
  Trainer t;
  laws::sample_batch<Trainer> const data(1);
  std::vector<float> outputs(std::size_t(Trainer::samples * Trainer::outputs_per_sample));
  auto const work = [&] {
    t.step(data.view());
    t.evaluate(data.view());
    t.gradients(data.view());
    t.forward(data.inputs, outputs);
    t.parameters_changed();
    t.step(data.view(), 0.5);
  };
  // The very first run may make the C library set something up for a thread.
  for (int i = 0; i < 3; ++i) {
    long const start = allocations();
    work();
    CHECK(allocations() - start == 0);
  }
}
#endif

}  // namespace

TEST_CASE("every rank allocates exactly what was planned", "[runtime]") {
  allocates_as_planned<tiny::OneRank>();
  allocates_as_planned<tiny::SevenRanks>();
  allocates_as_planned<tiny::LateWeights>();
  allocates_as_planned<tiny::TwoChunks>();
  allocates_as_planned<tiny::DownAndUp>();
  allocates_as_planned<tiny::Regression>();
  allocates_as_planned<tiny::ThreeThreads>();
  allocates_as_planned<tiny::FrozenStages>();
  allocates_as_planned<tiny::WithOptimizer<pp::Muon>>();
  allocates_as_planned<tiny::WithOptimizer<pp::Adafactor>>();
}

TEST_CASE("what is not trained has neither gradients nor optimizer state", "[runtime]") {
  constexpr auto const& plan = tiny::FrozenStages::plan;
  for (int s : {0, 1, 4}) {
    CHECK(plan.stages[s].parameters > 0);
    CHECK(plan.stages[s].trained == 0);
    CHECK(plan.stages[s].gradient_bytes + plan.stages[s].optimizer_bytes == 0);
  }
  CHECK(plan.stages[3].trained == 8);  // the norm, not the Linear beside it
  CHECK(plan.stages[3].gradient_bytes == 2 * pp::alignment);
  CHECK(plan.stages[3].optimizer_bytes == 4 * pp::alignment);
}

#if PIPE_TESTS_COUNT_ALLOCATIONS
TEST_CASE("after construction nothing is allocated", "[runtime]") {
  long const before = allocations();
  auto const one = std::make_unique<int>(1);
  REQUIRE(allocations() == before + 1);

  nothing_is_allocated_by<tiny::SevenRanks>();
  nothing_is_allocated_by<tiny::ThreeThreads>();
  nothing_is_allocated_by<tiny::WithOptimizer<pp::Muon>>();
  nothing_is_allocated_by<tiny::WithOptimizer<pp::LAMB>>();
  nothing_is_allocated_by<tiny::WithOptimizer<pp::Adafactor>>();
}
#endif
