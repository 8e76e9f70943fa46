// SPDX-License-Identifier: BSL-1.0
//
// InfoNCE under the laws: gradients of central differences, the bits of one stage, partial
// micro-batches, threads.
#include "catch.hpp"

#include "laws/bit_law.hpp"
#include "laws/every_layer.hpp"
#include "laws/gradient_law.hpp"
#include "laws/schedules.hpp"

using namespace pp;

namespace {

template <class M, class... More>
using Small = Pipeline<M, PortableHost, AdamW, MicroBatchSize<3>, More...>;
template <class M, class... More>
using Exact = Pipeline<M, FP64, PortableHost, MicroBatches<2>, MicroBatchSize<3>, More...>;

template <class M, class... More>
void check(long fewer = 0) {
  laws::same_as_one_stage<Small<M, MicroBatches<3>>, Small<M, MicroBatches<3>, More...>>(5, 3,
                                                                                         fewer);
}

}  // namespace

TEST_CASE("InfoNCE has the gradients of central differences", "[laws]") {
  laws::gradients_hold<Exact<laws::EveryContrast<>>>(1);
  laws::gradients_hold<Exact<laws::EveryContrast<Symmetric>, Stages<2>, RecomputeAll>>(2);
  laws::gradients_hold<Exact<laws::FurtherContrast>>(3);
}
TEST_CASE("InfoNCE gives the bits of one stage, with fewer samples too", "[laws]") {
  check<laws::EveryContrast<Symmetric>, Stages<3>, GPipe, RecomputeAll>(1);
  check<laws::FurtherContrast, Stages<3>>();
}
TEST_CASE("threads that share a micro-batch give the bits of one", "[laws]") {
  struct Pairs
      : Model<Input<2, 5>, ConcatOf<Linear<12>, Tanh, Linear<7>>, InfoNCE<1, 4, Symmetric>> {};
  using one = Pipeline<Pairs, PortableHost, MicroBatches<2>, MicroBatchSize<96>>;
  using many = Pipeline<Pairs, PortableHost, MicroBatches<2>, MicroBatchSize<96>, HostThreads<3>>;
  constexpr auto g = [] {
    detail::group all;
    all.rows = 2;
    all.columns = 24;
    return all;
  }();
  static_assert(host::contrast_facts::parts(g, 96, 3) == 3);
  laws::same_as_one_stage<one, many>(7, 2, 3);
}
