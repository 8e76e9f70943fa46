// SPDX-License-Identifier: BSL-1.0
//
// Where products are rounded: in a formula as it is written, whatever compiler and level, and once
// where it says so and the instruction set has fused multiply-adds.
#include <cmath>
#include <vector>

#include "catch.hpp"

#include <pipe/pipe.hpp>

using namespace pp;

namespace {

/// x^2 - 1 - 2^-11 of x = 1 + 2^-12 is 2^-24, less than the rounding of x^2.
constexpr float at = 1 + 0x1p-12f;
constexpr double below = 1 + 0x1p-11;

struct Plain {
  static constexpr bool derivative_reads_output = false;
  template <class T>
  PIPE_HD static PIPE_INLINE T forward(T x) {
    return x * x - T(below);
  }
  template <class T>
  PIPE_HD static PIPE_INLINE T derivative(T) {
    return T(1);
  }
};
struct Fused : Plain {
  template <math::product P = math::product::exact, class T>
  PIPE_HD static PIPE_INLINE T forward(T x) {
    return math::multiply_add<P>(x, x, -T(below));
  }
};

/// Whether f(x) is 2^-24 in all of 37 elements, of which some are in vectors and some are not; else
/// it must be 0 in all.
template <class F, class Kernels>
bool rounds_once() {
  struct Net : Model<Input<37>, Map<F>, Linear<37>, MSE> {};
  Pipeline<Net, Kernels, SGD, MicroBatches<1>, MicroBatchSize<1>> trainer({.seed = 1});
  std::vector<float> const x(37, at);
  std::vector<float> y(37);
  trainer.forward(x, y);
  auto const parameters = trainer.parameters();
  auto const weight = parameters[0].values, bias = parameters[1].values;
  std::size_t zeros = 0, products = 0;
  for (std::size_t c = 0; c < 37; ++c) {
    float exact = 0;
    for (std::size_t k = 0; k < 37; ++k) exact = std::fma(0x1p-24f, weight[k * 37 + c], exact);
    zeros += y[c] == bias[c];
    products += y[c] == exact + bias[c];
  }
  CHECK((zeros == 37 || products == 37));
  return zeros < 37;
}

}  // namespace

TEST_CASE("a product and a sum in a formula are rounded twice") {
  CHECK_FALSE(rounds_once<Plain, PortableHost>());
  CHECK_FALSE(rounds_once<Plain, HostKernels<host::isa::avx2>>());
}

TEST_CASE("a multiply-add in a formula is rounded once by kernels that have it") {
  CHECK(rounds_once<Fused, PortableHost>() == host::isa_traits<host::isa::portable>::fuses);
  if (host::best_isa() >= host::isa::avx2)
    CHECK(rounds_once<Fused, HostKernels<host::isa::avx2>>());
}
