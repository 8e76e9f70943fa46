// SPDX-License-Identifier: BSL-1.0
//
// Values that are compared row by row: kernels against their definitions in double, layers under
// the laws of gradients and of bits, and branches that are further inputs or stashed values.
#include "catch.hpp"

#include <cmath>

#include "backend/lone_kernel.hpp"
#include "laws/worse.hpp"

using namespace pp;

namespace {

/// Rows of whole vectors, and rows that are none.
template <int Width>
struct Towers : Model<Input<3>, Linear<7>, Stash<"x">, Linear<Width>, Stash<"left">, Recall<"x">,
                      Linear<Width>, Pop<"left", Dot>, BCE> {};

double most_off(exact<float> const& found, exact<double> const& wanted) {
  double most = 0;
  for (std::size_t i = 0; i < wanted.count; ++i)
    most = laws::worse(most, std::fabs(double(found.items[i]) - wanted.items[i]));
  return most;
}

template <int Width>
void check_products() {
  using trained = lone::compiled<Towers<Width>, MicroBatchSize<6>>;
  constexpr int rows = 6;
  exact<float> x(rows * Width, 1), z(rows * Width, 2), s(rows, 3), y(rows), dx(rows * Width);
  exact<double> wanted_y(rows), wanted_dx(rows * Width);
  for (int r = 0; r < rows; ++r) {
    wanted_y[r] = 0;
    for (int c = 0; c < Width; ++c) {
      wanted_y[r] += double(x[r * Width + c]) * double(z[r * Width + c]);
      wanted_dx[r * Width + c] = double(x[r * Width + c]) * double(s[r]);
    }
  }
  on_every_isa([&](auto isa) {
    INFO(isa.name << ", " << Width);
    lone::kernel<trained, op_kind::row_dot> forward;
    forward.in(0) = x.data();
    forward.in(1) = z.data();
    forward.out(0) = y.data();
    forward.run(isa);
    CHECK(most_off(y, wanted_y) < 1e-5);
    lone::kernel<trained, op_kind::row_scale> backward;
    backward.in(0) = x.data();
    backward.in(1) = s.data();
    backward.out(0) = dx.data();
    backward.run(isa);
    CHECK(most_off(dx, wanted_dx) < 1e-6);
  });
}

}  // namespace

TEST_CASE("products along rows are their definitions", "[nn]") {
  check_products<1>();
  check_products<37>();
  check_products<64>();
}
