// SPDX-License-Identifier: BSL-1.0
//
// What is allocated is what was planned, once; after that nothing is.
#include "catch.hpp"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "runtime/allocation.hpp"
#include "runtime/trainers.hpp"

using namespace pp;
using namespace pp::detail;

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

#if PIPE_TESTS_COUNT_ALLOCATIONS
namespace {

/// Large enough that a rank's arena is no small request; a second input, which other ranks read
/// than the first.
struct Wide : Model<Input<1, 40>, Linear<64>, Tanh, Stash<"left">, Named<"right", Tokens<30, 1>>,
                    Embedding<64>, Pop<"left">, Linear<48>, GELUTanh, Linear<30>, MSE> {};
template <class... More>
using Large = Pipeline<Wide, PortableHost, AdamW, MicroBatches<3>, More...>;

/// Beside the arenas: a thread's handle and the like, and the board on which ranks see how far
/// others are.
template <class Trainer>
constexpr long handles = 2048L * Trainer::plan.rank_count * Trainer::plan.threads +
                         512L * Trainer::plan.stage_count + 4096;

/// What the system is asked for while a trainer is made and does all it can do, in full
/// mini-batches and in short ones.
template <class Trainer>
void asks_for_what_is_planned() {
  laws::sample_batch<Trainer> const data(1);
  std::vector<float> outputs(std::size_t(Trainer::samples * Trainer::outputs_per_sample));
  count_bytes();
  {
    Trainer t;
    for (long const samples : {Trainer::samples, Trainer::samples / 2 + 1, 1}) {
      t.step(data.view(samples));
      t.accumulate(data.view(samples));
      t.step(data.view(samples), 0.5);
      t.gradients(data.view(samples));
      t.evaluate(data.view(samples));
      t.forward(data.view(samples),
                std::span(outputs).first(std::size_t(samples * Trainer::outputs_per_sample)));
    }
  }
  asked const found = counted_bytes();
  INFO(Trainer::plan.schedule << ", " << Trainer::plan.stage_count << " stages, " << found.bytes
                              << " bytes");
  REQUIRE(found.count == Trainer::plan.rank_count);
  auto const& plan = Trainer::plan;
  std::vector<long> sizes(found.of_size, found.of_size + found.count);
  std::vector<long> planned(plan.rank_bytes.begin(), plan.rank_bytes.end());
  std::sort(sizes.begin(), sizes.end());
  std::sort(planned.begin(), planned.end());
  CHECK(sizes == planned);
  CHECK(planned[0] > asked::large);
  CHECK(found.bytes - Trainer::plan.bytes < handles<Trainer>);
}

}  // namespace

TEST_CASE(
    "the system is asked for one arena per rank, as large as planned, and next to nothing else",
    "[runtime]") {
  count_bytes();
  auto const some = std::make_unique<char[]>(10000);
  some[0] = 1;
  REQUIRE(counted_bytes().count == 1);
  REQUIRE(counted_bytes().of_size[0] == 10000);

  asks_for_what_is_planned<Large<MicroBatchSize<1500>>>();
  asks_for_what_is_planned<
      Large<MicroBatchSize<16>, Stages<6>, ZeroBubbleV, RecomputeAllButLast, HostThreads<2>>>();
}

namespace {
/// More than an address space has: 2^36 numbers in a value, 1024 times.
struct Huge : Model<Input<8>, Linear<(1 << 28)>, Tanh, Linear<2>, MSE> {};
using TooLarge = Pipeline<Huge, PortableHost, SGD, GPipe, MicroBatches<1024>, MicroBatchSize<256>>;
}  // namespace

TEST_CASE("a trainer that finds no memory says how much it needs", "[runtime]") {
  CHECK(TooLarge::plan.bytes > 1L << 47);
  CHECK_THROWS_WITH(TooLarge(), "rank 0: no memory for an arena of " +
                                    std::to_string(TooLarge::plan.rank_bytes[0]) + " bytes, of " +
                                    std::to_string(TooLarge::plan.bytes) +
                                    " that the plan needs in all");
}
#endif

TEST_CASE("inputs are staged where they are read, one micro-batch of them", "[runtime]") {
  using four =
      Pipeline<tiny::Numbers, PortableHost, MicroBatches<50>, MicroBatchSize<16>, Stages<4>>;
  CHECK(four::plan.staging_bytes[0] == 16 * 3 * sizeof(float));
  CHECK(four::plan.staging_bytes[1] + four::plan.staging_bytes[2] == 0);
  CHECK(four::plan.staging_bytes[3] == 16 * 2 * sizeof(float));
  using alone = Pipeline<tiny::Numbers, PortableHost, MicroBatches<50>, MicroBatchSize<1>>;
  CHECK(alone::plan.staging_bytes[0] == 0);
}

TEST_CASE("every rank allocates exactly what was planned", "[runtime]") {
  allocates_as_planned<tiny::OneRank>();
  allocates_as_planned<tiny::SevenRanks>();
  allocates_as_planned<tiny::LateWeights>();
  allocates_as_planned<tiny::TwoChunks>();
  allocates_as_planned<tiny::DownAndUp>();
  allocates_as_planned<tiny::Regression>();
  allocates_as_planned<tiny::ThreeThreads>();
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
  CHECK(plan.stages[3].gradient_bytes == 2 * pp::detail::alignment);
  CHECK(plan.stages[3].optimizer_bytes == 4 * pp::detail::alignment);
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
