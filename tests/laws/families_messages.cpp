// SPDX-License-Identifier: BSL-1.0
//
// The bit law for a schedule of every family over a transport that copies: with skips, a shared
// weight, micro-batches that are partly filled or empty, and every recompute policy. Where a rank
// has several chunks, some edges copy and others do not.
#include "transport/messages.hpp"

#include "laws/families.hpp"

using namespace pp;
using laws::gives_the_bits_of_one_stage;
using Selected = Recompute<op_kind::attention, op_kind::norm, op_kind::dropout>;

TEST_CASE("one chunk per rank over messages gives the bits of one stage", "[laws]") {
  gives_the_bits_of_one_stage<GPipe, 4, Messages, RecomputeAllButLast>();
  gives_the_bits_of_one_stage<OneFOneB, 8, Messages, RecomputeAll>();
  gives_the_bits_of_one_stage<EagerOneFOneB, 4, Messages, HostThreads<2>>();
}
TEST_CASE("several chunks per rank over messages give the bits of one stage", "[laws]") {
  gives_the_bits_of_one_stage<Interleaved<2>, 8, Messages, RecomputeAll>();
  gives_the_bits_of_one_stage<GroupedInterleaved<4>, 8, Messages>();
  gives_the_bits_of_one_stage<LoopedBFS<2>, 4, Messages, RecomputeAllButLast>();
  gives_the_bits_of_one_stage<Hanayo<2>, 8, Messages>();
}
TEST_CASE("a split backward over messages gives the bits of one stage", "[laws]") {
  gives_the_bits_of_one_stage<ZeroBubbleH1, 4, Messages, RecomputeAllButLast>();
  gives_the_bits_of_one_stage<ZeroBubbleH2, 4, Messages, RecomputeAll>();
  gives_the_bits_of_one_stage<ZeroBubble1P, 4, Messages>();
  gives_the_bits_of_one_stage<ZeroBubbleV, 4, Messages, Selected>();
  gives_the_bits_of_one_stage<VHalf, 8, Messages>();
  gives_the_bits_of_one_stage<VMin, 4, Messages>();
  gives_the_bits_of_one_stage<DualPipeV, 4, Messages, RecomputeAll>();
  gives_the_bits_of_one_stage<Paired<DualPipeV>, 4, Messages>();
}
