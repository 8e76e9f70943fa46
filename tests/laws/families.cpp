// SPDX-License-Identifier: BSL-1.0
//
// The bit law for the schedule families with a backward in one piece: each family, each number of
// chunks of a rank, and each recompute policy, but not their product, which a trainer for each
// would have to be compiled for.
#include "laws/families.hpp"

using namespace pp;
using laws::gives_the_bits_of_one_stage;
using Selected = Recompute<op_kind::attention, op_kind::norm, op_kind::dropout>;

TEST_CASE("GPipe and 1F1B with everything give the bits of one stage", "[laws]") {
  gives_the_bits_of_one_stage<GPipe, 2, RecomputeAllButLast>();
  gives_the_bits_of_one_stage<OneFOneB, 8, RecomputeAll>();
}
TEST_CASE("eager 1F1B gives the bits of one stage", "[laws]") {
  gives_the_bits_of_one_stage<EagerOneFOneB, 4, Selected>();
}
TEST_CASE("1F1B with an adapted warm-up gives the bits of one stage", "[laws]") {
  gives_the_bits_of_one_stage<AdaptedOneFOneB, 4, RecomputeAll>();
}
TEST_CASE("interleaved schedules give the bits of one stage", "[laws]") {
  gives_the_bits_of_one_stage<Interleaved<2>, 8>();
  gives_the_bits_of_one_stage<Interleaved<4, 3>, 8, RecomputeAll>();
  gives_the_bits_of_one_stage<Interleaved<4>, 4>();
  gives_the_bits_of_one_stage<GroupedInterleaved<2>, 4, HostThreads<2>>();
}
TEST_CASE("looped schedules give the bits of one stage", "[laws]") {
  gives_the_bits_of_one_stage<LoopedBFS<2>, 4, RecomputeAll>();
  gives_the_bits_of_one_stage<LoopedBFS<4>, 8>();
}
TEST_CASE("waves give the bits of one stage", "[laws]") {
  gives_the_bits_of_one_stage<Hanayo<1>, 4, Selected>();
  gives_the_bits_of_one_stage<Hanayo<2>, 8>();
}
