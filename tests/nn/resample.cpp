// SPDX-License-Identifier: BSL-1.0
//
// Pools, upsampling and padding: the numbers of PyTorch for small images, and the laws of the
// kernels: the gradient is the adjoint, its bits do not depend on the division of its rows, and an
// input cell finds the results that read it.
#include "catch.hpp"

#include <cmath>
#include <limits>
#include <vector>

#include "backend/lone_kernel.hpp"

using namespace pp;
using detail::axis_cells, detail::axis_map, detail::axis_rule, detail::cell_reduction,
    detail::resample_attributes;

namespace {

using numbers = std::vector<double>;

template <class L, int... Extents>
struct Only : Model<Input<Extents...>, L, Tanh, MSE> {};
/// The attributes of layer L on an image or a sequence.
template <class L, int... Extents>
constexpr resample_attributes attributes_of() {
  return Only<L, Extents...>::graph.ops[0].attributes.resample();
}

int cells_in(resample_attributes const& by) { return by.axis[0].in * by.axis[1].in; }
int cells_out(resample_attributes const& by) { return by.axis[0].out * by.axis[1].out; }

/// y of one image with n channels.
template <class T>
std::vector<T> forward(resample_attributes const& by, int n, std::vector<T> const& x) {
  REQUIRE(int(x.size()) == cells_in(by) * n);
  std::vector<T> y(std::size_t(cells_out(by) * n));
  for (int row = 0; row < by.axis[0].out; ++row)
    host::portable::resample_row<T>(by, n, row, x.data(),
                                    y.data() + long(row) * by.axis[1].out * n);
  return y;
}
/// dx of one image, `at_once` rows at a time.
template <class T>
std::vector<T> backward(resample_attributes const& by, int n, std::vector<T> const& x,
                        std::vector<T> const& dy, int at_once = 1 << 20) {
  std::vector<T> dx(x.size());
  bool const reads_x = by.reduction == cell_reduction::largest;
  for (int row = 0; row < by.axis[0].in; row += at_once) {
    int const end = row + at_once < by.axis[0].in ? row + at_once : by.axis[0].in;
    host::portable::resample_gradient_rows<T>(by, n, host::part_range{row, end}, dy.data(),
                                              reads_x ? x.data() : nullptr,
                                              dx.data() + row * by.axis[1].in * n);
  }
  return dx;
}

/// Of a sequence with one channel.
template <class L, int Length>
numbers line(numbers const& x) {
  return forward(attributes_of<L, Length, 1>(), 1, x);
}
void agree(numbers const& found, numbers const& expected) {
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    INFO("element " << i);
    CHECK(found[i] == Approx(expected[i]).margin(1e-12));
  }
}

/// Numbers that are exact in binary, with ties: element i of a tensor (S, C, H, W), as (S, H, W,
/// C), is ((a i + 3) mod 11 - 5) / 8.
numbers filled(int a, int samples, int channels, int cells) {
  numbers x(std::size_t(samples * channels * cells));
  for (int s = 0; s < samples; ++s)
    for (int c = 0; c < channels; ++c)
      for (int i = 0; i < cells; ++i)
        x[std::size_t((s * cells + i) * channels + c)] =
            ((a * ((s * channels + c) * cells + i) + 3) % 11 - 5) / 8.0;
  return x;
}
/// First and last element in the order (S, C, H, W), sum and sum of squares.
struct digest {
  double first, last, sum, squares;
};
void agrees(numbers const& x, digest const& expected) {
  double sum = 0, squares = 0;
  for (double const v : x) sum += v, squares += v * v;
  CHECK(x.front() == Approx(expected.first).margin(1e-9));
  CHECK(x.back() == Approx(expected.last).margin(1e-9));
  CHECK(sum == Approx(expected.sum).margin(1e-7));
  CHECK(squares == Approx(expected.squares).margin(1e-7));
}
/// y and dx of two images (7, 6, 3).
template <class L>
void check(digest const& y, digest const& dx) {
  constexpr resample_attributes by = attributes_of<L, 7, 6, 3>();
  numbers const x = filled(7, 2, 3, 42), dy = filled(9, 2, 3, cells_out(by));
  numbers all_y, all_dx;
  for (int s = 0; s < 2; ++s) {
    auto const part = [s](numbers const& v) {
      long const half = long(v.size() / 2);
      return numbers(v.begin() + s * half, v.begin() + (s + 1) * half);
    };
    numbers const one_y = forward(by, 3, part(x)), one_dx = backward(by, 3, part(x), part(dy));
    all_y.insert(all_y.end(), one_y.begin(), one_y.end());
    all_dx.insert(all_dx.end(), one_dx.begin(), one_dx.end());
  }
  agrees(all_y, y);
  agrees(all_dx, dx);
}

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

}  // namespace

TEST_CASE("averages divide by the cells that PyTorch counts", "[nn]") {
  using Strided = AvgPool1d<3, Stride<2>, Padding<1>>;
  numbers const five{1, 2, 3, 4, 5}, four{1, 2, 3, 4};
  agree(line<Strided, 5>(five), {1, 3, 3});
  agree(line<AvgPool1d<3, Stride<2>, Padding<1>, ExcludePadding>, 5>(five), {1.5, 3, 4.5});
  agree(line<AvgPool1d<2, CeilMode>, 5>(five), {1.5, 3.5, 5});
  agree(line<AvgPool1d<4, Padding<2>>, 5>(five), {0.75, 3});
  agree(line<AvgPool1d<4, Padding<2>, ExcludePadding>, 5>(five), {1.5, 4});
  agree(line<AvgPool1d<3, Stride<2>, Padding<1>, CeilMode>, 4>(four), {1, 3, 2});
  agree(line<AvgPool1d<3, Stride<2>, Padding<1>, CeilMode, ExcludePadding>, 4>(four), {1.5, 3, 4});
}
TEST_CASE("a window of ceil mode that begins behind the input is left out", "[nn]") {
  agree(line<MaxPool1d<2, Stride<3>, Padding<1>, CeilMode>, 5>({1, 2, 3, 4, 5}), {1, 4});
}
TEST_CASE("padding and numbers lose against NaN, padding against all numbers", "[nn]") {
  agree(line<MaxPool1d<3, Stride<1>, Padding<1>>, 3>({-3, -2, -4}), {-2, -2, -2});
  numbers const y = line<MaxPool1d<2, Stride<1>>, 5>({1, not_a_number, 7, 3, 2});
  CHECK(std::isnan(y[0]));
  CHECK(std::isnan(y[1]));
  CHECK(y[2] == 7);
  CHECK(line<MaxPool1d<2, Padding<1>, Dilation<3>>, 2>({1, 2}) ==
        numbers{-std::numeric_limits<double>::infinity()});
}
TEST_CASE("the first of equal cells has the gradient of a maximum", "[nn]") {
  constexpr resample_attributes by = attributes_of<MaxPool1d<3, Stride<1>>, 5, 1>();
  agree(backward(by, 1, numbers(5, 2.0), numbers(3, 1.0)), {1, 1, 1, 0, 0});
}
TEST_CASE("adaptive pools have PyTorch's parts", "[nn]") {
  agree(line<AdaptiveAvgPool1d<3>, 7>({1, 2, 3, 4, 5, 6, 7}), {2, 4, 6});
  agree(line<AdaptiveAvgPool1d<4>, 5>({1, 2, 3, 4, 5}), {1.5, 2.5, 3.5, 4.5});
  agree(line<AdaptiveAvgPool1d<5>, 2>({1, 2}), {1, 1, 1.5, 2, 2});
  agree(line<AdaptiveMaxPool1d<3>, 5>({1, 2, 3, 4, 5}), {2, 4, 5});
}
TEST_CASE("upsampling has PyTorch's positions", "[nn]") {
  agree(line<UpsampleNearest1d<2>, 2>({1, 2}), {1, 1, 2, 2});
  agree(line<UpsampleLinear1d<2>, 2>({1, 2}), {1, 1.25, 1.75, 2});
  agree(line<UpsampleLinear1d<2, AlignCorners>, 2>({1, 2}), {1, 4 / 3.0, 5 / 3.0, 2});
  agree(forward(attributes_of<UpsampleNearestTo<1, 2>, 1, 5, 1>(), 1, numbers{1, 2, 3, 4, 5}),
        {1, 3});
}
TEST_CASE("padding is zeros, a mirror image or the border", "[nn]") {
  numbers const x{1, 2, 3, 4};
  agree(line<Pad1d<1, 2>, 4>(x), {0, 1, 2, 3, 4, 0, 0});
  agree(line<Pad1d<-1>, 4>(x), {2, 3});
  agree(line<ReflectionPad1d<2, 1>, 4>(x), {3, 2, 1, 2, 3, 4, 3});
  agree(line<ReplicationPad1d<2>, 4>(x), {1, 1, 1, 2, 3, 4, 4, 4});
  agree(forward(attributes_of<Pad<1, 0, 0, 2>, 2, 1, 1>(), 1, numbers{5, 6}),
        {0, 0, 0, 5, 0, 0, 6, 0, 0});
  agree(forward(attributes_of<Pad<1, 0>, 1, 2, 1>(), 1, numbers{5, 6}), {0, 0, 5, 6, 0, 0});
}
TEST_CASE("pools of images give PyTorch's numbers", "[nn]") {
  check<MaxPool2d<3, Stride<2>, Padding<1>, CeilMode>>({.625, -.375, 46.125, 27.078125},
                                                       {0, 0, -.75, 16.65625});
  check<AvgPool2d<3, Stride<2>, Padding<1>, CeilMode>>(
      {.0277777778, -.166666667, -.131944444, .541521991},
      {-.0277777778, -.145833333, .583333333, 1.14853395});
  check<AvgPool2d<3, Stride<2>, Padding<1>, CeilMode, ExcludePadding>>(
      {.0625, -.5, -.53125, 2.27634307}, {-.0625, -.375, -.75, 3.38589892});
  check<AdaptiveAvgPool2d<3, 4>>({.166666667, -.125, .125, .863715278},
                                 {-.0416666667, -.0208333333, .25, 1.89236111});
}

namespace {

/// Attributes of all rules, drawn from a seed.
resample_attributes drawn(unsigned seed) {
  unsigned state = seed * 2654435761u + 1u;
  auto const below = [&state](unsigned n) {
    state = state * 1664525u + 1013904223u;
    return int((state >> 8) % n);
  };
  resample_attributes by{};
  by.rule = axis_rule(below(7));
  by.reduction = cell_reduction::sum;
  if (by.rule == axis_rule::window) by.reduction = cell_reduction(below(4));
  if (by.rule == axis_rule::adaptive) by.reduction = cell_reduction(below(2));
  for (axis_map& m : by.axis) {
    m.in = 1 + below(9);
    m.out = 1 + below(12);
    if (by.rule == axis_rule::reflect || by.rule == axis_rule::replicate) {
      m.before = below(unsigned(m.in));
      m.out = m.in + m.before + below(unsigned(m.in));
    }
    if (by.rule != axis_rule::window) continue;
    m.stride = 1 + below(3);
    m.dilation = by.reduction == cell_reduction::largest ? 1 + below(2) : 1;
    m.size = 1 + below(4);
    m.before = by.reduction == cell_reduction::sum ? below(5) - 2 : below(unsigned(m.size / 2 + 1));
    int const spare = m.in + 2 * m.before - (m.size - 1) * m.dilation - 1;
    m.out = spare < 0 ? 1 : spare / m.stride + 1;
  }
  return by;
}

}  // namespace

TEST_CASE("a cell is read by those that it finds as its readers", "[nn]") {
  for (unsigned seed = 0; seed < 4000; ++seed) {
    resample_attributes const by = drawn(seed);
    for (axis_map const& m : by.axis)
      for (int i = 0; i < m.in; ++i) {
        axis_cells const readers = m.readers_of(by.rule, i);
        bool all =
            readers.first >= 0 && (readers.count == 0 || readers.first + readers.count <= m.out);
        for (int o = 0; o < m.out; ++o) {
          axis_cells const cells = m.cells_of(by.rule, o);
          bool reads = false;
          for (int k = 0; k < cells.count; ++k) {
            int const cell = cells.first + k * cells.stride;
            all = all && cell >= 0 && cell < m.in && cells.number_of(cell) == k;
            reads = reads || cell == i;
          }
          all = all && reads == (cells.number_of(i) >= 0);
          if (reads) all = all && readers.number_of(o) >= 0;
        }
        INFO("seed " << seed << ", cell " << i);
        CHECK(all);
      }
  }
}
TEST_CASE("the gradient of a resampling is its adjoint, in the same bits by any rows", "[nn]") {
  for (unsigned seed = 0; seed < 300; ++seed) {
    INFO("seed " << seed);
    resample_attributes const by = drawn(seed);
    int const n = 1 + int(seed % 19);
    exact<double> const drawn_x(cells_in(by) * n, seed), drawn_dy(cells_out(by) * n, seed + 1);
    numbers const x(drawn_x.data(), drawn_x.data() + drawn_x.count),
        dy(drawn_dy.data(), drawn_dy.data() + drawn_dy.count), y = forward(by, n, x),
                                                               dx = backward(by, n, x, dy);
    double left = 0, right = 0, sum_dx = 0, sum_dy = 0;
    bool all_finite = true;
    for (std::size_t i = 0; i < y.size(); ++i) {
      all_finite = all_finite && std::isfinite(y[i]);
      if (std::isfinite(y[i])) left += y[i] * dy[i], sum_dy += dy[i];
    }
    for (std::size_t i = 0; i < x.size(); ++i) right += x[i] * dx[i], sum_dx += dx[i];
    CHECK(left == Approx(right).margin(1e-10));  // also of a maximum, which is linear around x
    if (by.reduction == cell_reduction::largest) CHECK(sum_dx == Approx(sum_dy).margin(1e-10));
    for (int const rows : {1, 2, 3}) CHECK(backward(by, n, x, dy, rows) == dx);
    if (by.reduction == cell_reduction::mean)
      for (double const one : forward(by, n, numbers(x.size(), 1.0))) CHECK(one == 1);
  }
}
TEST_CASE("an adaptive pool of one part is the mean of all", "[nn]") {
  constexpr resample_attributes by = attributes_of<AdaptiveAvgPool2d<1>, 5, 3, 7>();
  exact<float> const x(5 * 3 * 7, 1);
  std::vector<float> const y = forward(by, 7, std::vector<float>(x.data(), x.data() + x.count));
  std::vector<float> mean(7);
  host::portable::pool_sample<float>(detail::pool_kind::mean, 15, 7, nullptr, x.data(),
                                     mean.data());
  CHECK(y == mean);
}

namespace {

struct Net : Model<Input<6, 5, 3>, Linear<19>, MaxPool2d<3, Stride<2>, Padding<1>>, Linear<19>,
                   FlattenChannelsFirst, Linear<2>, MSE> {};

// [pools]
/// A classifier of images, each cell of which sees more of the image from pool to pool.
struct Photos : Model<Input<32, 32, 3>, Linear<16>, ReLU,   // (32, 32, 16)
                      MaxPool2d<3, Stride<2>, Padding<1>>,  // (16, 16, 16)
                      Linear<32>, ReLU, AvgPool2d<2>,       // (8, 8, 32)
                      Linear<64>, ReLU, MeanPool,           // (64)
                      Linear<10>, CrossEntropy> {};
// [/pools]
static_assert(Photos::graph.output == sample_shape(10));

// [upsampling]
/// An image with half as many cells on the way, and all of them at its end.
struct Smoother : Model<Input<24, 24, 3>, Linear<8>, Stash<"fine">,           // (24, 24, 8)
                        MaxPool2d<2>, Linear<16>, ReLU,                       // (12, 12, 16)
                        UpsampleBilinear<2>, Pop<"fine", Concat>, Linear<3>,  // (24, 24, 3)
                        MSE> {};
// [/upsampling]
static_assert(Smoother::graph.output == sample_shape(24, 24, 3));

// [padding]
/// The middle of a 24 x 24 image in a frame, whose corners are again those of the image.
struct Framed : Model<Input<24, 24, 3>, Linear<4>,
                      Pad<-4>,              // (16, 16, 4): 4 cells cut off on every side
                      ReflectionPad<2, 1>,  // (20, 18, 4): 2 above and below, 1 left and right
                      Pad<0, 1, 0, 3>,      // (21, 21, 4): zeros, 1 below and 3 right
                      MeanPool, Linear<2>, CrossEntropy> {};
// [/padding]
static_assert(Framed::graph.units[3].out == sample_shape(21, 21, 4));

// [reshaping]
/// The head of a network of PyTorch whose first weight is for channels of 6 x 6 cells.
struct Head : Model<Input<13, 13, 256>, MaxPool2d<3, Stride<2>>,  // (6, 6, 256)
                    FlattenChannelsFirst,                         // (256 * 6 * 6)
                    Linear<32>, ReLU, Reshape<4, Rest>,           // (4, 8)
                    Linear<2>, MSE> {};
// [/reshaping]
static_assert(Head::graph.output == sample_shape(4, 2));

static_assert(Only<MaxPool2d<3, Stride<2>, Padding<1>>, 112, 112, 64>::graph.output ==
              sample_shape(56, 56, 64));
static_assert(Only<MaxPool2d<3, Stride<2>>, 55, 55, 96>::graph.output == sample_shape(27, 27, 96));
static_assert(Only<Reshape<4, Rest>, 3, 2, 8>::graph.output == sample_shape(4, 12));
static_assert(Only<Reshape<Rest, 2, 1, 4>, 48>::graph.output == sample_shape(6, 2, 1, 4));
static_assert(Only<Flatten, 3, 2, 8>::graph.output == sample_shape(48));

}  // namespace

TEST_CASE("every instruction set finds the same maxima and their gradient", "[nn]") {
  using trained = lone::compiled<Net, MicroBatchSize<2>>;
  constexpr resample_attributes by = Net::graph.ops[2].attributes.resample();
  constexpr int ins = 6 * 5 * 19, outs = 3 * 3 * 19;
  exact<float> x(2 * ins, 1), dy(2 * outs, 2), y(2 * outs), dx(2 * ins);
  std::vector<float> wanted_y, wanted_dx;
  for (int s = 0; s < 2; ++s) {
    std::vector<float> const one(x.data() + s * ins, x.data() + (s + 1) * ins),
        slope(dy.data() + s * outs, dy.data() + (s + 1) * outs), a = forward(by, 19, one),
                                                                 b = backward(by, 19, one, slope);
    wanted_y.insert(wanted_y.end(), a.begin(), a.end());
    wanted_dx.insert(wanted_dx.end(), b.begin(), b.end());
  }
  on_every_isa([&](auto isa) {
    INFO(isa.name);
    lone::kernel<trained, op_kind::resample> forward_kernel;
    forward_kernel.in(0) = x.data();
    forward_kernel.out(0) = y.data();
    forward_kernel.run(isa);
    CHECK(std::vector<float>(y.data(), y.data() + y.count) == wanted_y);
    lone::kernel<trained, op_kind::resample_gradient> backward_kernel;
    backward_kernel.in(0) = dy.data();
    backward_kernel.in(1) = x.data();
    backward_kernel.out(0) = dx.data();
    backward_kernel.run(isa);
    CHECK(std::vector<float>(dx.data(), dx.data() + dx.count) == wanted_dx);
  });
}
TEST_CASE("a transpose has channels before cells, on every instruction set", "[nn]") {
  using trained = lone::compiled<Net, MicroBatchSize<2>>;
  constexpr int cells = 9, channels = 19;
  exact<float> x(2 * cells * channels, 1), y(2 * cells * channels);
  on_every_isa([&](auto isa) {
    INFO(isa.name);
    lone::kernel<trained, op_kind::transpose> forward_kernel;
    forward_kernel.in(0) = x.data();
    forward_kernel.out(0) = y.data();
    forward_kernel.run(isa);
    for (int s = 0; s < 2; ++s)
      for (int i = 0; i < cells; ++i)
        for (int c = 0; c < channels; ++c)
          CHECK(y[(s * channels + c) * cells + i] == x[(s * cells + i) * channels + c]);
  });
}
