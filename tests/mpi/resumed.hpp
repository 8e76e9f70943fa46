// SPDX-License-Identifier: BSL-1.0
//
// What tests of files that runs in several processes go on from share: a model whose states
// replicas divide, steps with one process beside them, and names of files.
#pragma once

#include <cstdint>
#include <string>

#include "mpi/alike.hpp"
#include "mpi/folder.hpp"

namespace processes {

/// One parameter that replicas divide, of 80,000 numbers, and others that they do not.
struct DividedNet
    : pp::Model<pp::Input<200>, pp::Linear<400>, pp::Tanh, pp::LayerNorm, pp::Linear<3>, pp::MSE> {
};
template <class Optimizer, class... More>
using Divided = pp::Pipeline<DividedNet, pp::PortableHost, Optimizer, pp::MicroBatches<1>,
                             pp::MicroBatchSize<1>, pp::GradientAccumulation<8>, More...>;

/// A file of this process alone.
inline std::string own(char const* name) {
  return in_folder(name) + "-" + std::to_string(Between::process());
}
template <class One, class Many>
void step_alike(One& one, Many& many, std::uint64_t seed) {
  laws::sample_batch<One> const data(seed);
  CHECK(laws::same_bits(one.step(data.view()).loss, many.step(data.template view<Many>()).loss));
}

}  // namespace processes
