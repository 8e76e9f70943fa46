// SPDX-License-Identifier: BSL-1.0
//
// The gradient law in float: on every instruction set of this machine, gradients are those in
// double but for rounding.
#include "catch.hpp"

#include "laws/gradient_law.hpp"

using namespace pp;

namespace {

struct Numbers
    : Model<Input<3>, Linear<33>, GELUTanh, Linear<17, NoBias>, GELU, RMSNorm, Linear<50>, SiLU,
            Linear<1>, Tanh, Linear<9>, Sigmoid, LayerNorm, Linear<67>, ReLU, Linear<7>, MSE> {};
struct Words : Model<Tokens<19, 21>, Embedding<18>, Positions, Attention<1>,
                     Residual<LayerNorm, Attention<3, NotCausal>>,
                     Residual<RMSNorm, Linear<35, NoBias>, BatchNorm, GELUTanh, Linear<34>,
                              GroupNorm<2>, LocalResponseNorm<5>, Linear<18>>,
                     Attention<2, NoBias>, LayerNorm, Linear<19>, CrossEntropy> {};

template <class M, class... More>
using Trained = Pipeline<M, MicroBatches<2>, MicroBatchSize<3>, More...>;

template <host::isa Set>
void holds() {
  if (host::best_isa() < Set) return;
  using backend = HostKernels<Set>;
  auto const check = [&](laws::float_report const& r) {
    INFO("instruction set " << int(Set) << ", parameter " << r.worst_parameter);
    CHECK(r.worst < 2e-5);
    CHECK(r.smallest > 1e-6);
  };
  CHECK(Trained<Numbers, backend>().runs_on() == host::name_of_kernels(Set));
  check(laws::compare_with_double<Trained<Numbers, backend>, Trained<Numbers, FP64, PortableHost>>(
      1));
  check(laws::compare_with_double<Trained<Words, backend>, Trained<Words, FP64, PortableHost>>(2));
}

}  // namespace

TEST_CASE("gradients in float are those in double: portable", "[laws]") {
  holds<host::isa::portable>();
}
#ifdef __x86_64__
TEST_CASE("gradients in float are those in double: AVX2", "[laws]") { holds<host::isa::avx2>(); }
TEST_CASE("gradients in float are those in double: AVX-512", "[laws]") {
  holds<host::isa::avx512>();
}
#endif
