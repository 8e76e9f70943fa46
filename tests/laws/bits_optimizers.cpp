// SPDX-License-Identifier: BSL-1.0
//
// The bit law for every optimizer. Where a parameter lies depends on the cut, and so does what is
// updated with it in one run; sums over a whole tensor must not.
#include "catch.hpp"

#include "laws/bit_law.hpp"

using namespace pp;

namespace {

struct Mixed
    : Model<Tokens<11, 5>, Embedding<9>, Group<LearningRate<1, 2>, Positions, LayerNorm>,
            Residual<RMSNorm, Attention<3>>, Linear<37>, GELUTanh, Frozen<Linear<7>>,
            Linear<21, NoBias>, Group<WeightDecay<0>, Linear<21>>, Linear<11>, CrossEntropy> {};

template <class Optimizer, class Backend, class... More>
void check() {
  laws::same_as_one_stage<Pipeline<Mixed, Optimizer, Backend, MicroBatches<3>>,
                          Pipeline<Mixed, Optimizer, Backend, MicroBatches<3>, More...>>(5);
}
template <class Optimizer>
void holds() {
  check<Optimizer, PortableHost, Stages<2>>();
  check<Optimizer, PortableHost, Stages<Mixed::graph.size.units>>();
  check<Optimizer, HostKernels<host::isa::avx512>, Stages<4>, Cut<2, 5, 8>>();
}

}  // namespace

TEST_CASE("SGD gives the bits of one stage", "[laws]") { holds<SGD>(); }
TEST_CASE("Lion gives the bits of one stage", "[laws]") { holds<Lion>(); }
TEST_CASE("CenteredRMSprop gives the bits of one stage", "[laws]") { holds<CenteredRMSprop>(); }
TEST_CASE("Adagrad gives the bits of one stage", "[laws]") { holds<Adagrad>(); }
TEST_CASE("LAMB gives the bits of one stage", "[laws]") { holds<LAMB>(); }
TEST_CASE("Adafactor gives the bits of one stage", "[laws]") { holds<Adafactor>(); }
TEST_CASE("Muon gives the bits of one stage, and with error feedback", "[laws]") {
  holds<Muon>();
  holds<ErrorFeedback<Muon>>();
}
