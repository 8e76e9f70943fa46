// SPDX-License-Identifier: BSL-1.0
//
// InfoNCE under the laws: gradients of central differences, the bits of one stage, partial
// micro-batches, threads; and two towers that learn which of many rows belongs to each.
#include "catch.hpp"

#include <cmath>
#include <random>

#include "laws/bit_law.hpp"
#include "laws/gradient_law.hpp"
#include "laws/schedules.hpp"

using namespace pp;

namespace {

template <class... Options>
struct Contrasted
    : Model<Input<2, 4>, Linear<6>, Tanh,
            ConcatOf<Seq<Linear<5>, Normalize>, Seq<Named<"other", Input<2, 3>>, Linear<5>, Tanh>>,
            InfoNCE<1, 4, Options...>> {};
/// As a further loss, with a value behind it that another loss reads.
struct Beside : Model<Input<4>, Linear<6>, ConcatOf<Tanh, Linear<6>>, Stash<"pairs">, Linear<3>,
                      Losses<CrossEntropy, FurtherLoss<"contrast", "pairs", LossWeight<1, 3>,
                                                       InfoNCE<1, 2, Symmetric, Reduction<Sum>>>>> {
};

template <class M, class... More>
using Small = Pipeline<M, PortableHost, AdamW, MicroBatchSize<3>, More...>;
template <class M, class... More>
using Exact = Pipeline<M, FP64, PortableHost, MicroBatches<2>, MicroBatchSize<3>, More...>;

template <class Trainer>
void holds(std::uint64_t seed) {
  pp::detail::gradient_report const r = laws::compare_with_differences<Trainer>(seed);
  INFO("parameter " << r.worst_parameter);
  CHECK(r.worst < 1e-7);
  CHECK(r.smallest > 1e-6);
}
template <class M, class... More>
void check(long fewer = 0) {
  laws::same_as_one_stage<Small<M, MicroBatches<3>>, Small<M, MicroBatches<3>, More...>>(5, 3,
                                                                                         fewer);
}

}  // namespace

TEST_CASE("InfoNCE has the gradients of central differences", "[laws]") {
  holds<Exact<Contrasted<>>>(1);
  holds<Exact<Contrasted<Symmetric>, Stages<2>, RecomputeAll>>(2);
  holds<Exact<Beside>>(3);
}
TEST_CASE("InfoNCE gives the bits of one stage, with fewer samples too", "[laws]") {
  check<Contrasted<Symmetric>, Stages<3>>();
  check<Contrasted<>, Stages<2>, GPipe, RecomputeAll>(1);
  check<Beside, Stages<3>>(1);
}
