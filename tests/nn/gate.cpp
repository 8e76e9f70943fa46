// SPDX-License-Identifier: BSL-1.0
//
// Gated units and their gradients against their definitions in double.
#include "catch.hpp"

#include <algorithm>
#include <cmath>

#include "backend/lone_kernel.hpp"
#include "laws/worse.hpp"

using namespace pp;
using namespace pp::detail;

namespace {

inline constexpr int rows = 6, width = 37;

template <class Gate>
struct Gated : Model<Input<3, 3>, Linear<2 * width>, Gate, Linear<2>, MSE> {};
static_assert(Gated<SwiGLU>::graph.units[1].out == sample_shape(3, width));

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double silu(double x) { return x * sigmoid(x); }
double gelu(double x) {
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / std::acos(-1.0)) * (x + 0.044715 * x * x * x)));
}

/// `y` of halves a, b; slopes by small differences of it.
template <class Gate, class F>
void check(F y) {
  using trained = lone::compiled<Gated<Gate>, MicroBatchSize<2>>;
  exact<float> x(rows * 2 * width, 1), dy(rows * width, 2);
  for (int i = 0; i < rows * 2 * width; ++i) x[i] *= 8;
  on_every_isa([&](auto isa) {
    INFO(isa.name);
    exact<float> found(rows * width), dx(rows * 2 * width);
    lone::kernel<trained, op_kind::gate> forward;
    forward.in(0) = x.data();
    forward.out(0) = found.data();
    forward.run(isa);
    lone::kernel<trained, op_kind::gate_gradient> backward;
    backward.in(0) = dy.data();
    backward.in(1) = x.data();
    backward.out(0) = dx.data();
    backward.run(isa);
    double most = 0, most_slope = 0;
    for (int r = 0; r < rows; ++r)
      for (int c = 0; c < width; ++c) {
        double const a = double(x[r * 2 * width + c]), b = double(x[r * 2 * width + width + c]),
                     eps = 1e-5;
        double const up = double(dy[r * width + c]);
        most = laws::worse(most, std::fabs(double(found[r * width + c]) - y(a, b)));
        double const da = up * (y(a + eps, b) - y(a - eps, b)) / (2 * eps);
        double const db = up * (y(a, b + eps) - y(a, b - eps)) / (2 * eps);
        most_slope = laws::worse(most_slope, std::fabs(double(dx[r * 2 * width + c]) - da));
        most_slope = laws::worse(most_slope, std::fabs(double(dx[r * 2 * width + width + c]) - db));
      }
    CHECK(most < 4e-6);
    CHECK(most_slope < 4e-6);
  });
}

}  // namespace

TEST_CASE("gated units are their definitions", "[nn]") {
  check<SwiGLU>([](double a, double b) { return silu(a) * b; });
  check<GEGLU>([](double a, double b) { return gelu(a) * b; });
  check<GLU>([](double a, double b) { return a * sigmoid(b); });
}

TEST_CASE("what follows a gated unit runs in its kernel", "[nn]") {
  struct Followed : Model<Input<3>, Linear<8>, SwiGLU, Tanh, Linear<2>, MSE> {};
  using passes = lone::compiled<Followed>::passes;
  constexpr detail::group forward = passes::kernels.describe(detail::op_list::forward, 1).shape;
  static_assert(forward.anchor == op_kind::gate && forward.columns == 4 &&
                forward.epilogue.size() == 1);
  CHECK(group_text(forward, leaf_names(Followed::leaves{})) == "SwiGLU 1 x 4 + Tanh");
}
