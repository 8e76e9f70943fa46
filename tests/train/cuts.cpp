// SPDX-License-Identifier: BSL-1.0
//
// The cuts of pipelines see memory: of cuts that are equally fast those with the least bytes on the
// fullest rank, and under a limit the fastest that are within it.
#include "catch.hpp"

#include <algorithm>

#include <pipe/pipe.hpp>
#include <pipe/plan/compiled/planned.hpp>

using namespace pp;

namespace {

template <class Plan>
long fullest_rank(Plan const& p) {
  return *std::max_element(p.rank_bytes.begin(), p.rank_bytes.end());
}
template <class Plan>
bool is_cut_at(Plan const& p, std::initializer_list<int> cuts) {
  int s = 0;
  for (int cut : cuts)
    if (p.stages[s++].end_layer != cut) return false;
  return true;
}
constexpr long mib(long n) { return n << 20; }

// ---- a GPT whose head bounds the time ----

template <int W, int H>
using Layer =
    Seq<Residual<LayerNorm, Attention<H>>, Residual<LayerNorm, Linear<4 * W>, GELU, Linear<W>>>;
struct LargeVocabulary : Model<Tokens<50257, 256>, Embedding<512>, Positions,
                               Repeat<12, Layer<512, 8>>, LayerNorm, Linear<50257>, CrossEntropy> {
};
template <class... Options>
using planned =
    Planned<LargeVocabulary, Stages<4>, MicroBatches<8>, MicroBatchSize<4>, Adam, Options...>;

// ---- equal layers of which each rank keeps one micro-batch less than the rank before ----

using Equal = Repeat<6, Seq<Linear<64>, Tanh>>;
struct Deep : Model<Input<64>, Equal, Linear<64>, MSE> {};
template <class... Options>
using deep =
    Pipeline<Deep, Stages<2>, MicroBatches<4>, MicroBatchSize<256>, SGD, PortableHost, Options...>;
constexpr auto const& fast = deep<>::plan;
constexpr long needed = fast.rank_bytes[0];
constexpr auto const& limited = deep<MemoryLimit<needed - 1>>::plan;

}  // namespace

TEST_CASE("cuts that the slowest stage leaves free take memory from the fullest rank") {
  auto const &by_time = planned<Cut<12, 22, 27>>::plan(), &by_memory = planned<>::plan();
  CHECK(fullest_rank(by_time) > mib(1360));
  CHECK(fullest_rank(by_memory) < mib(771));
  CHECK(by_memory.bubble == by_time.bubble);
  CHECK(planned<>::compiled::timeline().makespan ==
        planned<Cut<12, 22, 27>>::compiled::timeline().makespan);
  CHECK(is_cut_at(by_memory, {5, 14, 27}));
  // The head bounds the time, and no cut divides it.
  CHECK(by_memory.limiting_layer == 27);
  CHECK_THAT(explain<planned<>>(),
             Catch::Contains("layer 27 (Linear<50257>, CrossEntropy) alone takes as long as the"));
}
TEST_CASE("a plan under a limit has cuts that are within it, if there are any") {
  constexpr long limit = 805'000'000;  // less than any cuts that are as fast need
  CHECK(fullest_rank(planned<>::plan()) > limit);
  auto const& p = planned<MemoryLimit<limit>>::plan();
  CHECK(fullest_rank(p) <= limit);
  CHECK(p.imbalance < 1.002 * planned<>::plan().imbalance);
  CHECK_THROWS_WITH((planned<MemoryLimit<mib(700)>>::plan()),
                    Catch::Contains("more than the limit of 734003200"));
}
TEST_CASE("a pipeline under a limit has cuts that are within it, if there are any") {
  CHECK(fast.limiting_layer == -1);
  CHECK(fast.imbalance < limited.imbalance);
  CHECK(fullest_rank(fast) == needed);
  CHECK(fullest_rank(limited) < needed);
  CHECK(limited.stages[0].end_layer < fast.stages[0].end_layer);
}
