// SPDX-License-Identifier: BSL-1.0
//
// The laws for pools, upsampling, padding and reshaping: gradients are central differences, and the
// bits do not depend on stages, threads, recomputation or the size of the last micro-batch.
#include "catch.hpp"

#include "laws/eager.hpp"
#include "laws/every_layer.hpp"
#include "laws/layer_laws.hpp"

using namespace pp;

TEST_CASE("gradients of pools, upsampling and padding are differences", "[laws]") {
  laws::gradients_are_differences<laws::EveryResampling>(1);
}
TEST_CASE("stages, threads and recomputation keep the bits of images", "[laws]") {
  using one = Pipeline<laws::EveryResampling, PortableHost, MicroBatches<3>, MicroBatchSize<2>>;
  using many = Pipeline<laws::EveryResampling, laws::Eager<PortableHost>, HostThreads<3>,
                        MicroBatches<3>, MicroBatchSize<2>, Stages<4>, OneFOneB, RecomputeAll>;
  laws::same_as_one_stage<one, many>(2, 3, 1);
}
