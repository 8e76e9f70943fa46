// SPDX-License-Identifier: BSL-1.0
//
// The relatives of ReLU against PyTorch: output, loss and all gradients of the model of
// rectifier_cases() in write_golden.py, and their values far from zero.
#include <cmath>
#include <limits>

#include "golden/record.hpp"

using namespace pp;

namespace {

struct Rectifiers
    : Model<Input<5>, Linear<9>, LeakyReLU, Linear<9>, ELU, Linear<9>, Softplus, Linear<9>, Mish,
            Linear<9>, ReLU6, Linear<9>, With<LeakyReLU, NegativeSlope<1, 5>>, Linear<9>,
            With<ELU, Alpha<3, 2>>, Linear<9>, Linear<3>, MSE> {};

/// forward and derivative at x, the derivative as a function of what it reads.
template <class F, class T>
void check(T x, double y, double slope) {
  INFO("at " << x);
  T const found = F::forward(x);
  CHECK(double(found) == Approx(y).epsilon(1e-6).margin(1e-37));
  CHECK(double(F::derivative(F::derivative_reads_output ? found : x)) ==
        Approx(slope).epsilon(1e-5).margin(1e-30));
}
template <class T>
void check_ends() {
  check<Softplus>(T(80), 80, 1);
  check<Softplus>(T(-80), std::exp(-80.0), std::exp(-80.0));
  check<Softplus>(T(1e30), 1e30, 1);
  check<Mish>(T(80), 80, 1);
  check<Mish>(T(-30), -30 * std::exp(-30.0), -29 * std::exp(-30.0));
  check<Mish>(T(-3), -0.14564745, -0.0933931145);
  check<ELU>(T(-80), -1, 0);
  check<ELU>(T(1e30), 1e30, 1);
  check<ReLU6>(T(6), 6, 0);
  check<ReLU6>(T(0), 0, 0);
  check<LeakyReLU>(T(0), 0, 0.01);
  check<With<ELU, Alpha<3, 2>>>(T(0), 0, 1.5);
  T const nan = std::numeric_limits<T>::quiet_NaN();
  for (T const y : {Softplus::forward(nan), Mish::forward(nan), ELU::forward(nan),
                    ReLU6::forward(nan), LeakyReLU::forward(nan)})
    CHECK(std::isnan(y));
}

}  // namespace

TEST_CASE("relatives of ReLU are PyTorch's", "[golden]") {
  golden::check_in_two<Rectifiers>("rectifiers", "rectifiers");
}
TEST_CASE("relatives of ReLU are right far from zero", "[nn]") {
  check_ends<float>();
  check_ends<double>();
}
