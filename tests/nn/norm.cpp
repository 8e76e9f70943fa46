// SPDX-License-Identifier: BSL-1.0
//
// The norms' epsilon: PyTorch's by default, another as an option, down to BERT's 1e-12.
#include "catch.hpp"

#include <cmath>
#include <limits>

#include "backend/lone_kernel.hpp"

using namespace pp;

namespace {

template <class Norm>
struct Rows : Model<Input<4, 3>, Linear<21>, Norm, Linear<2>, MSE> {};
template <class Norm>
inline constexpr double epsilon_of = Rows<Norm>::graph.ops[2].attributes.norm().epsilon;

static_assert(epsilon_of<LayerNorm> == 1e-5 && epsilon_of<With<LayerNorm>> == 1e-5);
static_assert(epsilon_of<RMSNorm> == std::numeric_limits<float>::epsilon());
static_assert(epsilon_of<With<LayerNorm, Epsilon<1, 1'000'000'000'000>>> == 1e-12);
static_assert(epsilon_of<With<RMSNorm, Epsilon<1, 1'000'000>>> == 1e-6);
static_assert(epsilon_of<With<RMSNorm, Epsilon<3>>> == 3);

/// Rows whose variance is near epsilon: there it matters.
template <class Norm>
void check(bool has_mean, double epsilon) {
  using trained = lone::compiled<Rows<Norm>, MicroBatchSize<2>>;
  constexpr int rows = 8, width = 21;
  exact<float> x(rows * width, 1), gamma(width, 2), beta(width, 3), statistics(2 * rows),
      y(rows * width);
  on_every_isa([&](auto isa) {
    INFO(isa.name);
    lone::kernel<trained, op_kind::norm> k;
    k.in(0) = x.data();
    k.in(1) = gamma.data();
    if (has_mean) k.in(2) = beta.data();
    k.out(0) = y.data();
    k.out(1) = statistics.data();
    k.run(isa);
    for (int r = 0; r < rows; ++r) {
      double mean = 0, variance = 0;
      for (int c = 0; has_mean && c < width; ++c) mean += double(x[r * width + c]) / width;
      for (int c = 0; c < width; ++c)
        variance += std::pow(double(x[r * width + c]) - mean, 2) / width;
      for (int c = 0; c < width; ++c) {
        double const scaled =
            (double(x[r * width + c]) - mean) / std::sqrt(variance + epsilon) * double(gamma[c]);
        CHECK(double(y[r * width + c]) ==
              Approx(scaled + (has_mean ? double(beta[c]) : 0.0)).margin(2e-6));
      }
    }
  });
}

}  // namespace

TEST_CASE("a norm adds the epsilon of its option", "[nn]") {
  check<With<LayerNorm, Epsilon<1, 2>>>(true, 0.5);
  check<With<RMSNorm, Epsilon<3, 4>>>(false, 0.75);
}
