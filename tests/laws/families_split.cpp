// SPDX-License-Identifier: BSL-1.0
//
// The bit law for the schedule families with B and W apart, under each recompute policy.
#include "laws/families.hpp"

using namespace pp;
using laws::gives_the_bits_of_one_stage;
using Selected = Recompute<op_kind::attention, op_kind::norm, op_kind::dropout>;

TEST_CASE("zero-bubble schedules give the bits of one stage", "[laws]") {
  gives_the_bits_of_one_stage<ZeroBubbleH1, 2>();
  gives_the_bits_of_one_stage<ZeroBubbleH1, 4, RecomputeAllButLast>();
  gives_the_bits_of_one_stage<ZeroBubbleH1, 8, RecomputeAll>();
  gives_the_bits_of_one_stage<ZeroBubbleH2, 4, RecomputeAll>();
  gives_the_bits_of_one_stage<ZeroBubbleH2, 4, Selected>();
  gives_the_bits_of_one_stage<ZeroBubbleH2, 8>();
}
TEST_CASE("interleaved zero bubble gives the bits of one stage", "[laws]") {
  gives_the_bits_of_one_stage<InterleavedZeroBubble<2>, 4, RecomputeAll>();
  gives_the_bits_of_one_stage<InterleavedZeroBubble<4, 3>, 8>();
}
TEST_CASE("searched schedules give the bits of one stage", "[laws]") {
  gives_the_bits_of_one_stage<ZeroBubble1P, 4, RecomputeAllButLast>();
  gives_the_bits_of_one_stage<Searched<1, 1, schedules::placement::vee>, 8>();
}
TEST_CASE("zero-bubble schedules on a V give the bits of one stage", "[laws]") {
  gives_the_bits_of_one_stage<ZeroBubbleV, 2>();
  gives_the_bits_of_one_stage<ZeroBubbleV, 4, Selected>();
  gives_the_bits_of_one_stage<ZeroBubbleV, 4, RecomputeAllButLast, HostThreads<2>>();
  gives_the_bits_of_one_stage<ZeroBubbleV, 8, RecomputeAll>();
}
TEST_CASE("building blocks give the bits of one stage", "[laws]") {
  gives_the_bits_of_one_stage<VHalf, 4, RecomputeAllButLast>();
  gives_the_bits_of_one_stage<VHalf, 8, RecomputeAll>();
  gives_the_bits_of_one_stage<VHalf, 8>();
  gives_the_bits_of_one_stage<VMin, 2>();
  gives_the_bits_of_one_stage<VMin, 4, RecomputeAll>();
  gives_the_bits_of_one_stage<VMin, 8, RecomputeAllButLast>();
}
TEST_CASE("both directions on a V give the bits of one stage", "[laws]") {
  gives_the_bits_of_one_stage<DualPipeV, 2>();
  gives_the_bits_of_one_stage<DualPipeV, 4, RecomputeAll>();
}
