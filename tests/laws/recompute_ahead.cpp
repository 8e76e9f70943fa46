// SPDX-License-Identifier: BSL-1.0
//
// Recomputation ahead of the gradient: the bits of a stage that stores everything, and the memory
// of the table.
#include "catch.hpp"

#include "laws/bit_law.hpp"
#include "laws/schedules.hpp"

#include <pipe/schedule/catalog/families.hpp>

using namespace pp;

namespace {

struct Net : Model<Input<6>, Linear<8>, GELUTanh, Dropout<1, 5>, Linear<8>, GELUTanh, Linear<8>,
                   GELUTanh, Linear<4>, MSE> {};
struct Words
    : Model<Tokens<11, 4>, Named<"table", Embedding<6>>, Positions, Stash<"begin">,
            Residual<LayerNorm, Attention<2>>, Residual<LayerNorm, Linear<9>, GELUTanh, Linear<6>>,
            SiLU, Pop<"begin">, LayerNorm, Tied<"table">, CrossEntropy> {};

using laws::Small;

template <class M, int MicroBatchCount, class... More>
void check() {
  laws::options_keep_the_bits<M, MicroBatchCount, More...>(2);
}

/// All forwards, all recomputations, all backwards: in the program that uses it, not in a constant.
struct AllAgain {
  static constexpr char const* name = "all again";
  static constexpr schedules::placement where = schedules::placement::straight;
  static constexpr int chunks_per_rank = 1;
  static constexpr bool splits_backward = true, trains = true, recomputes_ahead = true;
  static constexpr bool fits_a_constant(int, int) { return false; }
  static constexpr void fill(auto const& problem, auto& table) {
    using enum schedules::action_kind;
    for (int rank = 0; rank < problem.ranks; ++rank)
      for (schedules::action_kind const kind :
           {forward, recompute, backward_input, backward_weight})
        for (int mb = 0; mb < problem.micro_batches; ++mb) table.push(rank, {kind, rank, mb});
  }
};

}  // namespace

TEST_CASE("recomputation ahead has the bits of keeping", "[laws]") {
  check<Net, 4, RecomputeAll, RecomputeAhead<OneFOneB>, Stages<4>>();
  check<Net, 4, RecomputeAll, RecomputeAhead<ZeroBubbleH1>, Stages<4>>();
  check<Net, 4, RecomputeAll, RecomputeAhead<Interleaved<2>>, Stages<4>, HostThreads<2>>();
  check<Words, 4, RecomputeAll, RecomputeAhead<ZeroBubbleV>, Stages<4>>();
  check<Words, 5, RecomputeAllButLast, RecomputeAhead<GPipe>, Stages<3>>();
  check<Words, 4, Recompute<op_kind::attention, op_kind::norm>, RecomputeAhead<OneFOneB>,
        Stages<4>>();
  check<Words, 4, Recompute<op_kind::map, op_kind::matmul>, RecomputeAhead<ZeroBubbleH2>,
        Stages<4>>();
}
TEST_CASE("two ranks that hold a stage recompute ahead, each its micro-batches", "[laws]") {
  check<Net, 8, RecomputeAll, RecomputeAhead<DualPipe>, Stages<4>>();
  check<Net, 8, RecomputeAll, RecomputeAhead<Paired<DualPipe>>, Stages<4>>();
  check<Net, 4, RecomputeAll, RecomputeAhead<Paired<EagerOneFOneB>>, Stages<4>>();
}
TEST_CASE("a user-defined order recomputes as far ahead as it says", "[laws]") {
  check<Words, 5, RecomputeAll, AllAgain, Stages<3>>();
  using T = Small<Words, MicroBatches<5>, RecomputeAll, AllAgain, Stages<3>>;
  for (int s = 0; s < 3; ++s) CHECK(T::compiled::memory().chunks[s].rings.pending.slots == 5);
}
TEST_CASE("R is in the plan: its time, and the memory of what it brings back", "[laws]") {
  using Keeping = Small<Net, MicroBatches<4>, OneFOneB, Stages<4>, ByCount>;
  using Inside = Small<Net, MicroBatches<4>, RecomputeAll, OneFOneB, Stages<4>, ByCount>;
  using Ahead =
      Small<Net, MicroBatches<4>, RecomputeAll, RecomputeAhead<OneFOneB>, Stages<4>, ByCount>;
  auto const &keeping = Keeping::plan(), &inside = Inside::plan(), &ahead = Ahead::plan();
  for (int s = 0; s < 4; ++s) {
    schedules::chunk_cost const &a = Ahead::compiled::times().cost(s),
                                &b = Inside::compiled::times().cost(s);
    CHECK(a.recompute > 0);
    CHECK(a.backward_input + a.recompute == b.backward_input);
    CHECK(a.backward_weight == b.backward_weight);
    // The last stage stores what it reads next; the others have one micro-batch of it.
    detail::chunk_description const& c = Ahead::compiled::memory().chunks[s];
    CHECK((ahead.stages[s].recompute_flops == 0) == (s == 3));
    CHECK(c.rings.pending.slots == 1);
    CHECK(c.rings.pending.stride == a.memory.recompute * (s < 3));
    CHECK((ahead.stages[s].saved_bytes > inside.stages[s].saved_bytes));
    CHECK(ahead.stages[s].saved_bytes <= keeping.stages[s].saved_bytes);
  }
  CHECK(Ahead::compiled::timeline().makespan < Inside::compiled::timeline().makespan);
}
TEST_CASE("one stage recomputes nothing that it reads next", "[laws]") {
  using T = Small<Net, MicroBatches<4>, RecomputeAll, RecomputeAhead<OneFOneB>>;
  static_assert(T::plan().stages[0].recompute_flops == 0);
  check<Net, 4, RecomputeAll, RecomputeAhead<OneFOneB>>();
  check<Net, 4, RecomputeAll, RecomputeAhead<GPipe>>();
}
