// SPDX-License-Identifier: BSL-1.0
//
// Convolutions and their gradients against their definition in doubles, on every instruction set
// and in parts; the definition against numbers of PyTorch's; and what a convolution is a case of.
#include "catch.hpp"

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include <pipe/checkpoint/checkpoint.hpp>
#include <pipe/weights/copy_weights.hpp>
#include <pipe/weights/weights.hpp>

#include "backend/lone_kernel.hpp"
#include "train/folder.hpp"

using namespace pp;

namespace {

using numbers = std::vector<double>;
using geometry = detail::convolution_attributes;

/// A convolution by its definition: calls term(x, w, y) for every product, with the places of its
/// factors and of the sum it goes into. x (samples, H, W, C), w (kh, kw, C / groups, N), y
/// (samples, Y, X, N).
template <class Term>
void each_product(geometry const& of, int samples, Term const& term) {
  auto const& [down, across, channels, filters, groups] = of;
  int const read = channels / groups, made = filters / groups;
  for (int s = 0; s < samples; ++s)
    for (int i = 0; i < down.out; ++i)
      for (int j = 0; j < across.out; ++j)
        for (int n = 0; n < filters; ++n)
          for (int u = 0; u < down.kernel; ++u)
            for (int v = 0; v < across.kernel; ++v)
              for (int c = 0; c < read; ++c) {
                int const y = i * down.stride - down.padding + u * down.dilation,
                          x = j * across.stride - across.padding + v * across.dilation;
                if (y < 0 || y >= down.in || x < 0 || x >= across.in) continue;
                term(((s * down.in + y) * across.in + x) * channels + n / made * read + c,
                     ((u * across.kernel + v) * read + c) * filters + n,
                     ((s * down.out + i) * across.out + j) * filters + n);
              }
}
struct results {
  numbers y, dx, dw;
};
results by_definition(geometry const& of, int samples, numbers const& x, numbers const& w,
                      numbers const& dy) {
  results r{numbers(dy.size()), numbers(x.size()), numbers(w.size())};
  each_product(of, samples, [&](int at, int weight, int to) {
    r.y[std::size_t(to)] += x[std::size_t(at)] * w[std::size_t(weight)];
    r.dx[std::size_t(at)] += dy[std::size_t(to)] * w[std::size_t(weight)];
    r.dw[std::size_t(weight)] += dy[std::size_t(to)] * x[std::size_t(at)];
  });
  return r;
}

// ---- numbers that PyTorch computed, in its order ----

/// Number i of a tensor of the given series, exact in binary.
double series(int a, int i) { return ((a * i + 3) % 11 - 5) / 8.0; }
/// A series in PyTorch's order (outer, inner, window) as we store it, (outer, window, inner) for
/// images and (window, inner, outer) for weights; and back.
numbers image(int a, int samples, int channels, int pixels) {
  numbers x(std::size_t(samples * channels * pixels));
  for (int i = 0; i < int(x.size()); ++i)
    x[std::size_t((i / (channels * pixels) * pixels + i % pixels) * channels +
                  i / pixels % channels)] = series(a, i);
  return x;
}
numbers weight(int a, int outer, int inner, int window) {
  numbers w(std::size_t(outer * inner * window));
  for (int i = 0; i < int(w.size()); ++i)
    w[std::size_t((i % window * inner + i / window % inner) * outer + i / (window * inner))] =
        series(a, i);
  return w;
}
/// First and last number, sum and sum of squares. The order of what is between does not matter, and
/// the first and the last are the same in both orders.
void check_sums(numbers const& x, double first, double last, double sum, double squares) {
  double found = 0, found_squares = 0;
  for (double const v : x) found += v, found_squares += v * v;
  CHECK(x.front() == Approx(first).margin(1e-12));
  CHECK(x.back() == Approx(last).margin(1e-12));
  CHECK(found == Approx(sum).margin(1e-9));
  CHECK(found_squares == Approx(squares).epsilon(1e-8));
}

// ---- kernels ----

inline constexpr int samples = 3;

/// A Linear makes the image that layer L reads, so that all three kernels are there.
template <class In, class L>
struct Of : Model<In, Linear<In::input.form.columns()>, L, Flatten, Linear<1>, MSE> {};

/// Holds a result in one part to what is expected, and one in parts to its bits.
void check_results(exact<float> const& out, exact<float> const& again, numbers const& expected) {
  double apart = 0, size = 0;
  bool same = true;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    double const d = double(out[int(i)]) - expected[i];
    apart += d * d;
    size += expected[i] * expected[i];
    same = same && out[int(i)] == again[int(i)];
  }
  CHECK(same);
  CHECK(std::sqrt(apart) <= 1e-6 * std::sqrt(size));
}

/// The first kernel of kind Kind of a compiled model, on operands of the test's: `left` and
/// `right`. Its result in one part is near `expected`, and has the same bits in three.
template <class Compiled, op_kind Kind, class Isa>
void check_kernel(Isa isa, void* left, void* right, numbers const& expected) {
  using kernel = lone::kernel<Compiled, Kind>;
  constexpr int count = 200;  // of biases
  exact<float> out(int(expected.size())), again(int(expected.size())), bias(count), sums(count);
  for (int i = 0; i < count; ++i) bias[i] = 0;
  kernel k;
  k.in(0) = left;
  k.in(1) = right;
  for (detail::pointwise_op const& s : kernel::g.epilogue) k.with.operand[s.operand] = bias.data();
  for (detail::pointwise_op const& s : kernel::g.prologue) k.with.operand[s.store] = sums.data();
  int to = kernel::g.out[0];
  for (detail::pointwise_op const& s : kernel::g.epilogue) to = s.store;
  k.with.operand[to] = out.data();
  k.run(isa);
  k.with.operand[to] = again.data();
  k.with.parts = 3;
  for (k.with.part = 0; k.with.part < 3; ++k.with.part) k.run(isa);
  check_results(out, again, expected);
}

numbers doubles(exact<float> const& from, int n) {
  numbers all(static_cast<std::size_t>(n));
  for (int i = 0; i < n; ++i) all[std::size_t(i)] = double(from[i]);
  return all;
}

/// Whether the kernels of layer L, a convolution or a transposed one, give the definition's numbers
/// on every instruction set.
template <class In, class L>
void check_kernels() {
  using compiled = lone::compiled<Of<In, L>, MicroBatchSize<samples>>;
  using enum op_kind;
  static constexpr geometry of =
      compiled::group_at(lone::group_of<compiled>(convolution_weight_gradient))
          .attributes.convolution();
  int const pixels = samples * of.in_rows() * of.channels,
            made = samples * of.out_rows() * of.filters, weights = of.inner() * of.filters;
  exact<float> x(pixels, 1), dy(made, 2), w(weights, 3), turned(weights);
  for (int r = 0; r < of.inner(); ++r)
    for (int n = 0; n < of.filters; ++n) turned[n * of.inner() + r] = w[r * of.filters + n];
  results const wanted =
      by_definition(of, samples, doubles(x, pixels), doubles(w, weights), doubles(dy, made));
  void* const read = of.is_depthwise() ? w.data() : turned.data();
  on_every_isa([&](auto isa) {
    INFO(isa.name);
    check_kernel<compiled, convolution>(isa, x.data(), w.data(), wanted.y);
    check_kernel<compiled, convolution_input_gradient>(isa, dy.data(), read, wanted.dx);
    check_kernel<compiled, convolution_weight_gradient>(isa, x.data(), dy.data(), wanted.dw);
  });
}

}  // namespace

TEST_CASE("the definition of a convolution is PyTorch's", "[nn]") {
  {
    geometry const of{{7, 3, 3, 2, 1, 2}, {6, 3, 2, 2, 1, 2}, 4, 6, 2};
    numbers const x = image(1, 2, 4, 42), w = weight(2, 6, 2, 6), dy = image(9, 2, 6, 9);
    results r = by_definition(of, 2, x, w, dy);
    check_sums(r.dx, 0, 0, -1.421875, 37.092041);
    check_sums(r.dw, .28125, -.484375, -1.140625, 18.0163574);
    for (std::size_t i = 0; i < r.y.size(); ++i) r.y[i] += series(3, int(i % 6));
    check_sums(r.y, .40625, -.125, -1.171875, 29.1882324);
  }
  {
    geometry const of{{5, 5, 3, 1, 1, 1}, {5, 5, 3, 1, 1, 1}, 3, 4, 1};
    results const r =
        by_definition(of, 2, image(1, 2, 3, 25), weight(2, 4, 3, 9), image(9, 2, 4, 25));
    check_sums(r.y, .71875, -1.046875, -2.5625, 95.8515625);
    check_sums(r.dx, -.03125, -.3125, .765625, 63.595459);
    check_sums(r.dw, 1.171875, .109375, .546875, 64.5773926);
  }
  {  // transposed: x and dy change places
    geometry const of{{6, 3, 3, 2, 1, 1}, {8, 4, 3, 2, 1, 1}, 6, 4, 2};
    numbers const x = image(1, 2, 4, 12), w = weight(2, 4, 3, 9), dy = image(9, 2, 6, 48);
    check_sums(by_definition(of, 2, dy, w, x).dx, .078125, .484375, -1.34375, 44.1796875);
    check_sums(by_definition(of, 2, dy, w, x).y, .625, 1.984375, -1.484375, 164.227783);
    check_sums(by_definition(of, 2, dy, w, x).dw, .21875, -.0625, .09375, 24.5839844);
  }
}

TEST_CASE("kernels of convolutions are their definition", "[nn]") {
  check_kernels<Input<7, 6, 4>,
                Conv2d<6, Axes<3, 2>, Stride<2>, Padding<1>, Dilation<2>, Groups<2>>>();
  // More rows than a block of patches, more taps and channels than its depth.
  check_kernels<Input<9, 11, 97>, Conv2d<37, 3, Padding<1>>>();
  // Taps further apart than the stride, a stride beyond the kernel, and padding beyond it.
  check_kernels<Input<8, 9, 5>,
                Conv2d<3, 3, Stride<2, 3>, Dilation<3, 2>, Padding<3, 4>, NoBias>>();
  check_kernels<Input<7, 3>, Conv1d<19, 2, Stride<3>>>();
  check_kernels<Input<6, 5, 18>, Conv2d<18, 3, Groups<18>, Stride<1, 2>, Padding<1>>>();
  check_kernels<Input<3, 4, 6>, ConvTranspose2d<4, 3, Stride<2>, OutputPadding<1>, Groups<2>>>();
}

namespace {

template <class L>
struct OfPixels : Model<Input<4, 3, 5>, L, Tanh, Linear<2>, MSE> {};

template <class L>
numbers trained() {
  Pipeline<OfPixels<L>, PortableHost, MicroBatchSize<2>, SGD> t(
      {.seed = 3, .optimizer = {.learning_rate = 0.1}});
  std::vector<float> x, label;
  for (int i = 0; i < 120; ++i) x.push_back(float(series(7, i)));
  for (int i = 0; i < 48; ++i) label.push_back(float(series(5, i)));
  t.step({x, label});
  numbers all;
  for (auto const& p : t.parameters()) all.insert(all.end(), p.values.begin(), p.values.end());
  return all;
}

/// The deviation of a filter's initial values: 2 over 3 x 3 x 200 outputs.
struct Begun : Model<Input<4, 4, 8>, Conv2d<200, 3, NoBias, Init<KaimingNormalFanOut>>, MSE> {};

/// Every filter of an image is in files where PyTorch has it.
struct Names : Model<Input<5, 5, 4>, Conv2d<6, Axes<1, 3>, Groups<2>>, ConvTranspose2d<2, 3>,
                     Flatten, Linear<1>, MSE> {};

}  // namespace

TEST_CASE("a convolution of one pixel is a Linear", "[nn]") {
  CHECK(trained<Conv2d<7, 1>>() == trained<Linear<7>>());
}
TEST_CASE("filters begin as wide as their outputs ask", "[nn]") {
  double squares = 0;
  Pipeline<Begun, PortableHost> t({.seed = 4});
  auto const all = t.parameters();
  for (float const w : all[0].values) squares += double(w) * double(w);
  CHECK(squares / double(all[0].values.size()) == Approx(2.0 / 1800).epsilon(0.05));
}
TEST_CASE("weights of convolutions are in files as PyTorch's", "[nn]") {
  Pipeline<Names, PortableHost> t({.seed = 1}), loaded({.seed = 2}), copied({.seed = 3}),
      resumed({.seed = 4});
  auto const all = t.parameters();
  CHECK(all[0].name == "0.weight");
  CHECK(all[0].file_shape == std::vector<long>{6, 2, 1, 3});
  CHECK(all[1].name == "0.bias");
  CHECK(all[2].file_shape == std::vector<long>{6, 2, 3, 3});
  temporary_folder const folder;
  save_weights(t, folder.file("weights"));
  t.save(folder.file("run"), 0);
  for (char const* const name : {"weights", "run"}) {
    safetensors_file const file(folder.file(name));
    for (int const i : {0, 2}) {
      auto const& p = all[std::size_t(i)];
      safetensors_entry const* const tensor = file.find(p.name);
      REQUIRE(tensor != nullptr);
      CHECK(tensor->shape == p.file_shape);
      std::vector<float> stored(p.values.size());
      decode(tensor->type, tensor->bytes.data(), std::span<float>(stored));
      // In memory (window, channel, filter), in the file (filter, channel, window).
      bool same = true;
      std::size_t at = 0;
      std::size_t const window = p.values.size() / 12;
      for (std::size_t n = 0; n < 6; ++n)
        for (std::size_t c = 0; c < 2; ++c)
          for (std::size_t k = 0; k < window; ++k)
            same = same && stored[at++] == p.values[(k * 2 + c) * 6 + n];
      CHECK(same);
    }
  }
  load_weights(loaded, folder.file("weights"));
  copy_weights(t, copied);
  resumed.load(folder.file("run"));
  for (auto* const other : {&loaded, &copied, &resumed}) {
    auto const theirs = other->parameters();
    for (std::size_t i = 0; i < all.size(); ++i)
      CHECK(std::equal(all[i].values.begin(), all[i].values.end(), theirs[i].values.begin()));
  }
}

namespace {

// [small_net]
template <int Filters>
using Block = Residual<Conv2d<Filters, 3, Padding<1>, Init<KaimingNormal>>, ReLU,
                       Conv2d<Filters, 3, Padding<1>, Init<Zeros>>>;

struct SmallNet
    : Model<Input<32, 32, 3>, Conv2d<32, 3, Padding<1>>, ReLU,            // (32, 32, 32)
            Block<32>, ReLU, Conv2d<64, 3, Stride<2>, Padding<1>>, ReLU,  // (16, 16, 64)
            Repeat<2, Block<64>, ReLU>, Conv2d<128, 3, Stride<2>, Padding<1>>, ReLU,  // (8, 8, 128)
            MeanPool, Linear<10>, CrossEntropy> {};
// [/small_net]
static_assert(SmallNet::graph.output == sample_shape(10));

// [separable]
/// Each channel by itself, then all channels of each pixel.
template <int Channels, int Filters, class Steps = Stride<1>>
using Separable =
    Seq<Conv2d<Channels, 3, Groups<Channels>, Padding<1>, Steps, NoBias>, Conv2d<Filters, 1>, ReLU>;
/// 1 x 7 and 7 x 1 instead of 7 x 7.
template <int Filters>
using Factorised = Seq<Conv2d<Filters, Axes<1, 7>, Padding<0, 3>, NoBias>,
                       Conv2d<Filters, Axes<7, 1>, Padding<3, 0>>>;
/// From (16, 16, 64) back to images of 32 x 32.
using Enlarge = ConvTranspose2d<32, 3, Stride<2>, Padding<1>, OutputPadding<1>>;
// [/separable]
struct Parts : Model<Input<32, 32, 3>, Conv2d<16, 3, Padding<1>>, Separable<16, 64, Stride<2>>,
                     Factorised<64>, Enlarge, MSE> {};
static_assert(Parts::graph.output == sample_shape(32, 32, 32));

}  // namespace

// The costs of layers, in FLOPs: twice the multiply-adds. The first and the last convolutions of
// torchvision's ResNet-18 are 118,013,952 and 115,605,504 of its 1.814 billion multiply-adds.
namespace {
struct Stem : Model<Input<224, 224, 3>, Conv2d<64, 7, Stride<2>, Padding<3>, NoBias>, MSE> {};
struct End : Model<Input<7, 7, 512>, Conv2d<512, 3, Padding<1>, NoBias>, MSE> {};
static_assert(Stem::graph.output == sample_shape(112, 112, 64));
static_assert(detail::cost_of(Stem::graph.ops[0]).flops == 2 * 118013952L);
static_assert(detail::cost_of(End::graph.ops[0]).flops == 2 * 115605504L);
}  // namespace
