// SPDX-License-Identifier: BSL-1.0
//
// Softmax and its gradient against their definitions in double, alone and with what is fused around
// it.
#include "catch.hpp"

#include <algorithm>
#include <cmath>

#include "backend/lone_kernel.hpp"
#include "laws/worse.hpp"

using namespace pp;

namespace {

struct Alone : Model<Input<4, 3>, Linear<37>, Flatten, Linear<37>, Softmax, Linear<2>, MSE> {};
/// Cut before and after: Tanh is the softmax's prologue, Sigmoid its epilogue.
struct Between : Model<Input<3>, Linear<19>, Tanh, Softmax, Sigmoid, Linear<2>, MSE> {};
static_assert(Alone::graph.units[2].out == sample_shape(37));

double most_off(exact<float> const& found, exact<double> const& wanted) {
  double most = 0;
  for (std::size_t i = 0; i < wanted.count; ++i)
    most = laws::worse(most, std::fabs(double(found.items[i]) - wanted.items[i]));
  return most;
}

}  // namespace

TEST_CASE("Softmax is its definition", "[nn]") {
  using trained = lone::compiled<Alone, MicroBatchSize<6>>;
  constexpr int rows = 6, width = 37;
  exact<float> x(rows * width, 1), dy(rows * width, 2), y(rows * width), dx(rows * width);
  for (int i = 0; i < rows * width; ++i) x[i] *= 40;
  x[5] = 500;  // alone takes all of its row
  exact<double> wanted_y(rows * width), wanted_dx(rows * width);
  for (int r = 0; r < rows; ++r) {
    double sum = 0, mean = 0, top = -1e9;
    for (int c = 0; c < width; ++c) top = std::max(top, double(x[r * width + c]));
    for (int c = 0; c < width; ++c) sum += std::exp(double(x[r * width + c]) - top);
    for (int c = 0; c < width; ++c) {
      wanted_y[r * width + c] = std::exp(double(x[r * width + c]) - top) / sum;
      mean += wanted_y[r * width + c] * double(dy[r * width + c]);
    }
    for (int c = 0; c < width; ++c)
      wanted_dx[r * width + c] = wanted_y[r * width + c] * (double(dy[r * width + c]) - mean);
  }
  on_every_isa([&](auto isa) {
    INFO(isa.name);
    lone::kernel<trained, op_kind::softmax> forward;
    forward.in(0) = x.data();
    forward.out(0) = y.data();
    forward.run(isa);
    CHECK(most_off(y, wanted_y) < 1e-6);
    lone::kernel<trained, op_kind::softmax_gradient> backward;
    backward.in(0) = dy.data();
    backward.in(1) = y.data();
    backward.out(0) = dx.data();
    backward.run(isa);
    CHECK(most_off(dx, wanted_dx) < 1e-6);
    float const saved = x[7];
    x[7] = std::nanf("");
    forward.run(isa);
    for (int i = 0; i < rows * width; ++i) CHECK(std::isnan(y[i]) == (i < width));
    x[7] = saved;
  });
}

TEST_CASE("pointwise layers around a softmax run in its kernel", "[nn]") {
  using cut = lone::compiled<Between, Stages<2>, Cut<1>>::passes;
  constexpr detail::group g = cut::kernels.describe(detail::op_list::forward, 1).shape;
  static_assert(g.anchor == op_kind::softmax && g.prologue.size() == 1 && g.epilogue.size() == 1);
  Pipeline<Between, Stages<2>, Cut<1>, PortableHost> fused({.seed = 2});
  Pipeline<Between, Stages<5>, PortableHost> apart({.seed = 2});
  exact<float> x(3, 5);
  float a[2], b[2];
  fused.forward({.inputs = {x.data(), 3}, .labels = {}}, a);
  apart.forward({.inputs = {x.data(), 3}, .labels = {}}, b);
  CHECK(a[0] == b[0]);
  CHECK(a[1] == b[1]);
}
