// SPDX-License-Identifier: BSL-1.0
//
// Host kernels depend on the model and how it is cut, not on the schedule or the optimizer:
// trainers that differ in those call the same functions.
#include "catch.hpp"

#include <pipe/pipe.hpp>

using namespace pp;

namespace {

struct Net : Model<Input<6>, Linear<5>, GELUTanh, Linear<3>, MSE> {};
template <class... Options>
using compiled =
    typename Pipeline<Net, Stages<2>, MicroBatchSize<2>, PortableHost, Options...>::compiled;

using first = compiled<MicroBatches<4>, OneFOneB, SGD>;
using second = compiled<MicroBatches<6>, GPipe, AdamW>;
using split = compiled<MicroBatches<4>, ZeroBubbleH1, SGD>;
using larger = typename Pipeline<Net, Stages<2>, MicroBatchSize<3>, PortableHost, MicroBatches<4>,
                                 OneFOneB, SGD>::compiled;

}  // namespace

TEST_CASE("a second schedule and optimizer of a model calls the first's kernels") {
  static_assert(first::groups == second::groups && first::groups > 0);
  auto const one = PortableHost::kernels<first>();
  auto const other = PortableHost::kernels<second>();
  auto const apart = PortableHost::kernels<split>();
  auto const changed = PortableHost::kernels<larger>();
  for (int g = 0; g < first::groups; ++g) {
    INFO("group " << g);
    CHECK(one.groups[g] != nullptr);
    CHECK(one.groups[g] == other.groups[g]);
    CHECK(one.groups[g] == apart.groups[g]);
    CHECK(one.groups[g] != changed.groups[g]);
  }
}
