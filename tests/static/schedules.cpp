// SPDX-License-Identifier: BSL-1.0
//
// How a pipeline is given each schedule: what the pages in docs/schedules show. Compiling is
// passing.
#include <pipe/pipe.hpp>

using namespace pp;
using namespace pp::schedules;
using namespace pp::detail;

struct Mlp : Model<Input<64>, Repeat<8, Linear<64>, GELUTanh>, Linear<8>, MSE> {};

namespace gpipe {
// [gpipe]
using Trainer = Pipeline<Mlp, Stages<4>, MicroBatches<8>, GPipe,
                         RecomputeAll>;  // RecomputeAll: as the paper does
// [/gpipe]
static_assert(Trainer::plan.rank_count == 4 &&
              Trainer::plan.peak_in_flight == 8);  // all micro-batches
}  // namespace gpipe

namespace one_f_one_b {
// [1f1b]
using Trainer =
    Pipeline<Mlp, Stages<4>, MicroBatches<8>, OneFOneB>;  // or without it: 1F1B is the default
// [/1f1b]
static_assert(Trainer::plan.bubble == Pipeline<Mlp, Stages<4>, MicroBatches<8>>::plan.bubble);
}  // namespace one_f_one_b

namespace eager {
// [eager-1f1b]
using Trainer = Pipeline<Mlp, Stages<4>, MicroBatches<8>, EagerOneFOneB>;
// [/eager-1f1b]
static_assert(Trainer::plan.peak_in_flight == 2 * 4 - 1 &&
              one_f_one_b::Trainer::plan.peak_in_flight == 4);
}  // namespace eager

namespace adapted {
// [adapted-1f1b]
using Trainer = Pipeline<Mlp, Stages<4>, MicroBatches<8>, AdaptedOneFOneB>;
// [/adapted-1f1b]
static_assert(Trainer::plan.bubble <= one_f_one_b::Trainer::plan.bubble);
}  // namespace adapted

namespace interleaved {
// [interleaved]
using Trainer =
    Pipeline<Mlp, Stages<8>, MicroBatches<8>, Interleaved<2>>;  // 8 stages, 2 on each of 4 ranks
static_assert(Trainer::plan.rank_count == 4);
// [/interleaved]
static_assert(Trainer::plan.bubble < gpipe::Trainer::plan.bubble);
}  // namespace interleaved

namespace grouped {
// [grouped-interleaved]
using Trainer = Pipeline<Mlp, Stages<8>, MicroBatches<8>, GroupedInterleaved<2>>;  // 4 ranks
// [/grouped-interleaved]
static_assert(Trainer::plan.rank_count == 4 && Trainer::plan.bubble < gpipe::Trainer::plan.bubble);
}  // namespace grouped

namespace interleaved_zero_bubble {
// [interleaved-zb]
using Trainer = Pipeline<Mlp, Stages<8>, MicroBatches<8>, InterleavedZeroBubble<2>>;  // 4 ranks
// [/interleaved-zb]
static_assert(Trainer::plan.rank_count == 4 &&
              Trainer::plan.bubble < interleaved::Trainer::plan.bubble);
}  // namespace interleaved_zero_bubble

namespace looped {
// [looped-bfs]
using Trainer = Pipeline<Mlp, Stages<8>, MicroBatches<8>, LoopedBFS<2>>;  // 4 ranks
// [/looped-bfs]
static_assert(Trainer::plan.rank_count == 4 && Trainer::plan.bubble < gpipe::Trainer::plan.bubble);
}  // namespace looped

namespace zb_h1 {
// [zb-h1]
using Trainer = Pipeline<Mlp, Stages<4>, MicroBatches<8>, ZeroBubbleH1>;
static_assert(Trainer::plan.bubble <
              Pipeline<Mlp, Stages<4>, MicroBatches<8>, OneFOneB>::plan.bubble);
// [/zb-h1]
static_assert(Trainer::plan.peak_in_flight == one_f_one_b::Trainer::plan.peak_in_flight);
}  // namespace zb_h1

namespace zb_h2 {
// [zb-h2]
using Trainer = Pipeline<Mlp, Stages<4>, MicroBatches<8>, ZeroBubbleH2>;
static_assert(Trainer::plan.bubble_stage_local < Trainer::plan.bubble);
// [/zb-h2]
static_assert(Trainer::plan.peak_in_flight == 2 * 4 - 1);
}  // namespace zb_h2

namespace zb_v {
// [zb-v]
using Trainer =
    Pipeline<Mlp, Stages<8>, MicroBatches<8>, ZeroBubbleV>;  // 4 ranks; rank 0 has stages 0 and 7
static_assert(Trainer::plan.rank_count == 4);
// [/zb-v]
static_assert(Trainer::plan.bubble < zb_h1::Trainer::plan.bubble);
}  // namespace zb_v

namespace zb_1p {
// [zb-1p]
using Trainer = Pipeline<Mlp, Stages<4>, MicroBatches<8>, ZeroBubble1P>;
static_assert(Trainer::plan.bubble_stage_local <= zb_h1::Trainer::plan.bubble_stage_local);
// [/zb-1p]
}  // namespace zb_1p

namespace zb_2p {
// [zb-2p]
using Trainer = Pipeline<Mlp, Stages<4>, MicroBatches<8>, ZeroBubble2P>;
static_assert(Trainer::plan.bubble_stage_local <= zb_h2::Trainer::plan.bubble_stage_local);
// [/zb-2p]
}  // namespace zb_2p

namespace searched {
// [searched]
using Trainer = Pipeline<Mlp, Stages<8>, MicroBatches<8>,
                         Searched<1, 1, placement::vee>>;  // in the memory of 1F1B
static_assert(Trainer::plan.bubble_stage_local <= zb_v::Trainer::plan.bubble_stage_local);
// [/searched]
// [longer]
struct Longer : Searched<3, 2> {  // the whole search, when a trainer is constructed
  static constexpr bool fits_a_constant(int, int) { return false; }
};
// [/longer]
static_assert(!Pipeline<Mlp, Stages<4>, MicroBatches<8>, Longer>::compiled::by_compiler);
}  // namespace searched

namespace floors {
// [floors]
constexpr auto problem = equal_times(4, 8);
constexpr auto table = make_table<ZeroBubbleH1, 4, 8>(problem);
static_assert(certify(problem, table).proved());  // none is faster in the memory of 1F1B

using Trainer = Pipeline<Mlp, Stages<4>, MicroBatches<8>, ZeroBubbleH1>;
static_assert(Trainer::plan.gap < .05);  // of a step
// [/floors]
static_assert(Trainer::plan.proved && Trainer::plan.bubble > .1);
static_assert(!one_f_one_b::Trainer::plan.proved && one_f_one_b::Trainer::plan.gap > .1);
static_assert(Pipeline<Mlp, MicroBatches<8>>::plan.proved);  // one rank has nothing to gain
}  // namespace floors

namespace v_half {
// [v-half]
using Trainer = Pipeline<Mlp, Stages<8>, MicroBatches<8>, VHalf>;  // 4 ranks
// [/v-half]
static_assert(Trainer::plan.rank_count == 4 &&
              Trainer::plan.peak_in_flight < zb_v::Trainer::plan.peak_in_flight);
}  // namespace v_half

namespace v_min {
// [v-min]
using Trainer = Pipeline<Mlp, Stages<8>, MicroBatches<8>, VMin>;  // 4 ranks
// [/v-min]
static_assert(Trainer::plan.rank_count == 4 &&
              Trainer::plan.peak_in_flight < v_half::Trainer::plan.peak_in_flight);
}  // namespace v_min

namespace hanayo {
// [hanayo]
using Trainer =
    Pipeline<Mlp, Stages<8>, MicroBatches<8>, Hanayo<1>>;  // 1 wave: 2 stages on each of 4 ranks
// [/hanayo]
static_assert(Trainer::plan.rank_count == 4 && Trainer::plan.bubble < gpipe::Trainer::plan.bubble);
}  // namespace hanayo

namespace dualpipe_v {
// [dualpipe-v]
using Trainer = Pipeline<Mlp, Stages<8>, MicroBatches<8>, DualPipeV>;  // 4 ranks
// [/dualpipe-v]
static_assert(Trainer::plan.rank_count == 4 && Trainer::plan.bubble < gpipe::Trainer::plan.bubble);
}  // namespace dualpipe_v

namespace steady {
// [steady]
using Trainer = Pipeline<Mlp, Stages<4>, MicroBatches<8>, Steady<ZeroBubbleH2>>;
static_assert(Trainer::plan.bubble_steady < Trainer::plan.bubble);
static_assert(Trainer::plan.period.value() < double(Trainer::compiled::timeline().makespan));
// [/steady]
static_assert(zb_h2::Trainer::plan.period == step_period{});
}  // namespace steady

// [period]
constexpr auto even = equal_times(4, 8);  // F, B and W take one unit each
constexpr step_period flushed = period_of(even, make_table<ZeroBubbleH2, 4, 8>());
static_assert(flushed == step_period{24, 1});  // in units and steps: no rank is ever idle
// Without a flush, with an update after each 8 micro-batches:
static_assert(period_of<PACI<>>(even, 8) == flushed);
// [/period]

namespace recompute_ahead {
// [recompute-ahead]
template <class S>
using Trainer = Pipeline<Mlp, Stages<4>, MicroBatches<8>, RecomputeAll, S>;
using Ahead = Trainer<RecomputeAhead<OneFOneB>>;
static_assert(Ahead::compiled::timeline().makespan <
              Trainer<OneFOneB>::compiled::timeline().makespan);
// The last stage reads at once what it stores.
static_assert(Ahead::plan.stages[0].recompute_flops > 0 &&
              Ahead::plan.stages[3].recompute_flops == 0);
// [/recompute-ahead]
}  // namespace recompute_ahead

// [forward-only]
constexpr auto forward = make_table<ForwardOnly, 4, 8>();  // ranks and micro-batches
static_assert(simulate(equal_times(4, 8), forward).makespan == 8 + 4 - 1);
// [/forward-only]

// [chimera]
constexpr auto chimera_problem =
    problem<>{.ranks = 4, .chunks = 4, .micro_batches = 8, .costs = {{2, 1, 1}}};
constexpr auto chimera_table = make_table<Chimera, 4, 8>(chimera_problem);
static_assert(validate(chimera_problem, chimera_table).ok());
static_assert(simulate(chimera_problem, chimera_table).idle(0) ==
              (4 - 2) * 2);  // P-2 forwards of 2 units
// [/chimera]

// [dualpipe]
constexpr auto dual_problem = equal_times(4, 8);
constexpr auto dual_table = make_table<DualPipe, 4, 8>(dual_problem);
static_assert(validate(dual_problem, dual_table).ok());
static_assert(simulate(dual_problem, dual_table).idle(0) == (4 / 2 - 1) * 1);
// [/dualpipe]

// [chimera-doubled]
constexpr auto twos_problem =
    equal_times(4, 16);  // B, the whole backward, takes twice as long as F
static_assert(simulate(twos_problem, make_table<Chimera, 4, 16>()).idle(0) == 10);
static_assert(simulate(twos_problem, make_table<ChimeraDoubled, 4, 16>()).idle(0) ==
              3);  // (P-2) (F+B)/2
// [/chimera-doubled]

// [paired-dualpipe]
constexpr auto hiding =
    problem<>{.ranks = 4, .chunks = 4, .micro_batches = 16, .costs = {{.hidden = 1}}};
constexpr auto hidden_table = make_table<Paired<DualPipe>, 4, 16>(hiding);
static_assert(validate(hiding, hidden_table).ok());
constexpr long one = 1, both_at_once = one + 2 * one - 1;  // F&B: F + BW, less what is hidden
static_assert(simulate(hiding, hidden_table).idle(1) ==
              (4 / 2 - 1) * (both_at_once + 2 * one - 3 * one));
// [/paired-dualpipe]

namespace paired {
// [paired]
constexpr auto apart = equal_times(4, 16, {.forward = 2, .backward_input = 2, .hidden = 1});
constexpr auto together = make_table<Paired<EagerOneFOneB>, 4, 16>(apart);
static_assert(validate(apart, together).ok());
static_assert(together.at(0, 7).with_next &&
              apart.time_of_pair(together.at(0, 7), together.at(0, 8)) == 2 + 3 - 1);
static_assert(simulate(apart, together).makespan <
              simulate(apart, make_table<EagerOneFOneB, 4, 16>()).makespan);
// [/paired]
// [paired-trainer]
using Trainer = Pipeline<Mlp, Stages<4>, MicroBatches<8>, Paired<EagerOneFOneB, 40>>;
// [/paired-trainer]
using Alone = Pipeline<Mlp, Stages<4>, MicroBatches<8>, Paired<EagerOneFOneB>>;
static_assert(Trainer::compiled::timeline().makespan < Alone::compiled::timeline().makespan);
}  // namespace paired

// [pipedream]
constexpr auto dream_table =
    make_table<PipeDream<>, 4, 8>();  // PipeDream<true>: with vertical sync
static_assert(validate(equal_times(4, 8), dream_table).ok());
static_assert(peak_versions(dream_table, 0) == 4 && peak_versions(dream_table, 3) == 1);
// [/pipedream]

// [pipedream-2bw]
constexpr auto buffered_table =
    make_table<PipeDream2BW<4>, 4, 16>();  // an update every 4 micro-batches
static_assert(validate(equal_times(4, 16), buffered_table).ok());
static_assert(peak_versions(buffered_table, 0) == 2);
// [/pipedream-2bw]

// [paci]
constexpr auto one_copy_table = make_table<PACI<2>, 4, 16>();  // an update every 2 micro-batches
static_assert(validate(equal_times(4, 16), one_copy_table).ok());
static_assert(one_copy_table.drift == 2);  // updates between a forward and its backward
// [/paci]
