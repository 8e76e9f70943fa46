// SPDX-License-Identifier: BSL-1.0
//
// Values that are compared row by row: kernels against their definitions in double, layers under
// the laws of gradients and of bits, and branches that are further inputs or stashed values.
#include "catch.hpp"

#include <cmath>

#include "backend/lone_kernel.hpp"
#include "laws/bit_law.hpp"
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

/// A comparison of two inputs, beside something to train.
template <class How>
struct Near : Model<Input<1>, Linear<1>, Stash<"trained">, Named<"z", Input<4>>, Stash<"z">,
                    Named<"x", Input<4>>, Pop<"z", How>, Pop<"trained", Concat>, MSE> {};

}  // namespace

TEST_CASE("the smallest length of a cosine and the offset of a distance are PyTorch's", "[nn]") {
  auto const of = []<class How>(std::type_identity<How>, std::vector<float> const& x,
                                std::vector<float> const& z) {
    using trainer = Pipeline<Near<How>, PortableHost, MicroBatches<1>, MicroBatchSize<1>>;
    trainer t;
    float const other[1]{};
    float y[2]{};
    typename trainer::batch b{other, std::span<float const>{}};
    b.template set<"x">(x);
    b.template set<"z">(z);
    t.forward(b, y);
    return double(y[0]);
  };
  std::vector<float> const zeros(4), tiny{3e-9f, 0, 4e-9f, 0}, ones(4, 1), large(4, 100);
  std::type_identity<CosineSimilarity> const cosine;
  CHECK(of(cosine, zeros, ones) == 0);
  CHECK(of(cosine, ones, large) == Approx(1));
  CHECK(of(cosine, tiny, ones) == Approx(7e-9 / (1e-8 * 2)));
  std::type_identity<PairwiseDistance> const distance;
  CHECK(of(distance, ones, ones) == Approx(2e-6));
  CHECK(of(distance, large, large) == Approx(2e-6));
}
TEST_CASE("rows are shared among threads without a change of bits", "[nn]") {
  struct Wide : Model<Input<24, 16>, Linear<64>, Stash<"x">, Linear<64>, Pop<"x", Dot>, MSE> {};
  using one = Pipeline<Wide, PortableHost, MicroBatches<2>, MicroBatchSize<48>>;
  using many = Pipeline<Wide, PortableHost, MicroBatches<2>, MicroBatchSize<48>, HostThreads<3>>;
  using compiled = lone::compiled<Wide, MicroBatchSize<48>>;
  static_assert(host::dot_facts::parts(lone::kernel<compiled, op_kind::row_dot>::g, 48, 3) == 3);
  laws::same_as_one_stage<one, many>(7);
}
TEST_CASE("products along rows are their definitions", "[nn]") {
  check_products<1>();
  check_products<37>();
  check_products<64>();
}
