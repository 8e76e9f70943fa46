// SPDX-License-Identifier: BSL-1.0
//
// Which elements a Dropout keeps: by its definition, element by element, on every instruction set;
// and that they are as many as they should be.
#include "catch.hpp"

#include <cmath>

#include "backend/lone_kernel.hpp"

using namespace pp;

namespace {

inline constexpr int positions = 5;

/// A template that is the first to name a constant of the layer, and one that makes a constant of
/// another one: g++ 14 may leave the second without a value.
template <class T>
T factor_of(std::uint32_t word) {
  return word < Dropout<2, 13>::drops_below ? 0.0f : 2.0f;
}
template <class Layer>
float kept_scale() {
  constexpr float kept = Layer::template scale<float>();
  return kept;
}

/// Cut on both sides, so that the second Dropout of the model is a kernel of its own.
template <int Width, class D>
struct Drops : Model<Input<positions, Width>, Dropout<1, 2>, Tanh, D, Linear<2>, MSE> {};

template <class T, int Width, class D>
using compiled = lone::compiled<Drops<Width, D>, MicroBatchSize<2>, Stages<3>, Cut<2, 3>,
                                std::conditional_t<sizeof(T) == 8, FP64, FP32>>;

template <class T, int Width, int Numerator, int Denominator,
          class D = Dropout<Numerator, Denominator>>
void check() {
  using C = compiled<T, Width, D>;
  constexpr int number = [] {  // the group of stage 1
    for (detail::segment const& s : C::passes::kernels.fused[detail::op_list::forward].segments)
      if (C::passes::forward.ops[s.begin].unit == 2) return s.group;
    return -1;
  }();
  constexpr detail::group g = C::group_at(number);
  static_assert(g.anchor == op_kind::pointwise && g.epilogue.size() == 1);
  exact<T> x(2 * positions * Width, 7), y(2 * positions * Width);
  int const stream = 9;
  on_every_isa([&](auto isa) {
    INFO(isa.name << ", width " << Width);
    host::arguments<T> a;
    a.operand[g.in[0]] = x.data();
    a.operand[g.epilogue[0].operand] = const_cast<int*>(&stream);
    a.operand[g.epilogue[0].store] = y.data();
    a.seed = 0x123456789abcdefu;
    a.step = 77;
    a.first_sample = 40;
    a.training = true;
    isa.template run<C, number>(a);
    bool right = true;
    for (int s = 0; s < 2; ++s)
      for (int t = 0; t < positions; ++t)
        for (int c = 0; c < Width; ++c) {
          int const at = (s * positions + t) * Width + c, from = D::all_rows ? 0 : t,
                    unit = D::all_columns ? 0 : c, block = from * ((Width + 3) / 4) + unit / 4;
          std::uint32_t const bits =
              detail::philox({{std::uint32_t(block), std::uint32_t(40 + s), 9, 77}}, 0x89abcdefu,
                             0x1234567u)
                  .word[unit % 4];
          bool const dropped = bits < double(Numerator) / Denominator * 4294967296.0;
          T const wanted = dropped ? T(0) : x[at] * (T(Denominator) / T(Denominator - Numerator));
          right = right && y[at] == wanted;
        }
    CHECK(right);
    a.training = false;
    isa.template run<C, number>(a);
    CHECK(y == x);
  });
}

}  // namespace

TEMPLATE_TEST_CASE("Dropout keeps what its bits say", "[nn]", float, double) {
  check<TestType, 1, 1, 2>();
  check<TestType, 7, 1, 10>();
  check<TestType, 64, 3, 4>();
  check<TestType, 150, 1, 3>();
  check<TestType, 5, 0, 1>();
  check<TestType, 70, 1, 3, Dropout2d<1, 3>>();
  check<TestType, 70, 1, 2, DropPath<1, 2>>();
}

TEST_CASE("Dropout drops as often as it says, and keeps the mean", "[nn]") {
  double dropped = 0;
  int const many = 100000;
  for (int i = 0; i < many; ++i)
    for (std::uint32_t word : detail::philox({{std::uint32_t(i), 0, 0, 1}}, 5, 0).word)
      dropped += word < Dropout<3, 10>::drops_below;
  CHECK(dropped / (4.0 * many) == Approx(0.3).margin(0.004));
  CHECK(Dropout<3, 10>::scale<double>() * 0.7 == Approx(1));
  CHECK(Dropout<0, 1>::drops_below == 0);
}

TEST_CASE("the factor of Dropout is there whoever names its numbers first", "[nn]") {
  CHECK(kept_scale<Dropout<2, 13>>() == 13.0f / 11);
  CHECK(factor_of<float>(0) == 0);
}
