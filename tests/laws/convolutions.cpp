// SPDX-License-Identifier: BSL-1.0
//
// The laws for convolutions: dense, in groups, depthwise and transposed, of images and sequences;
// and those that hold between them.
#include "catch.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "laws/eager.hpp"
#include "laws/layer_laws.hpp"

using namespace pp;

namespace {

struct Images
    : Model<Input<5, 6, 4>, Conv2d<6, Axes<3, 2>, Stride<2>, Padding<2>, Dilation<2>, Groups<2>>,
            GELUTanh, ConvTranspose2d<4, 3, Stride<2>, Padding<1>, OutputPadding<1>>,
            Residual<Conv2d<4, 3, Groups<4>, Padding<1>>, Tanh, Conv2d<4, 1>,
                     Conv2d<4, 3, Padding<1>, NoBias>>,
            Flatten, Linear<3>, CrossEntropy> {};
struct Sequence : Model<Input<7, 3>, Conv1d<4, 3, Padding<1>, Stride<2>>, Tanh,
                        ConvTranspose1d<4, 4, Stride<3>, Groups<4>>, MeanPool, Linear<2>, MSE> {};

template <class Backend, class... Options>
using Trained = Pipeline<Images, Backend, AdamW, MicroBatches<3>, MicroBatchSize<2>, Options...>;

}  // namespace

TEST_CASE("convolutions obey the laws", "[laws]") {
  laws::obeys<Images>(1);
  laws::gradients_are_differences<Sequence>(2);
}
TEST_CASE("threads and recomputation keep the bits of convolutions", "[laws]") {
  using many = Trained<laws::Eager<PortableHost>, HostThreads<3>, Stages<2>, GPipe,
                       Recompute<op_kind::convolution, op_kind::map>>;
  laws::train_alike_from_the_start<Trained<PortableHost>, many>(3, 2);
}

namespace {

using numbers = std::vector<double>;

numbers drawn(std::uint64_t seed, int size) {
  numbers x;
  for (int i = 0; i < size; ++i) x.push_back(laws::uniform(seed, 1, std::uint64_t(i)));
  return x;
}
double dot(numbers const& a, numbers const& b) {
  REQUIRE(a.size() == b.size());
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}
bool are_near(numbers const& a, numbers const& b) {
  if (a.size() != b.size()) return false;
  double apart = 0;
  for (std::size_t i = 0; i < a.size(); ++i) apart = std::max(apart, std::fabs(a[i] - b[i]));
  return apart < 1e-12;
}

/// A layer by itself, behind a table of zeros whose gradient is that of the layer's input.
template <class In, class L>
struct Alone : Model<In, Positions, L, MSE> {};
struct results {
  numbers y, dx, dw;
};
/// The output y of a layer without a bias for one sample x and weights w, and the gradients of <y,
/// dy>.
template <class In, class L>
results run(numbers const& x, numbers const& w, numbers const& dy) {
  using trainer = Pipeline<Alone<In, L>, FP64, PortableHost, MicroBatchSize<1>, SGD>;
  trainer t;
  auto const all = t.parameters();
  REQUIRE(all.size() == 2);
  REQUIRE(all[1].values.size() == w.size());
  std::fill(all[0].values.begin(), all[0].values.end(), 0);
  std::copy(w.begin(), w.end(), all[1].values.begin());
  t.parameters_changed();
  results r{numbers(dy.size()), {}, {}};
  t.forward(x, r.y);
  numbers label(dy.size());  // the loss is the mean of (y - label)^2
  for (std::size_t i = 0; i < dy.size(); ++i) label[i] = r.y[i] - dy[i] * double(dy.size()) / 2;
  t.gradients({x, label});
  r.dx.assign(all[0].gradients.begin(), all[0].gradients.end());
  r.dw.assign(all[1].gradients.begin(), all[1].gradients.end());
  return r;
}

using Image = Input<6, 5, 4>;
using Made = Input<3, 3, 6>;
template <class... More>
using Dense = Conv2d<6, Axes<3, 2>, Stride<2>, Padding<1>, Dilation<1, 2>, NoBias, More...>;
using Grouped = Dense<Groups<2>>;
using Back = ConvTranspose2d<4, Axes<3, 2>, Stride<2>, Padding<1>, Dilation<1, 2>, Groups<2>,
                             OutputPadding<1, 0>, NoBias>;
inline constexpr std::size_t taps = 6, channels = 4, filters = 6, groups = 2;

}  // namespace

TEST_CASE("gradients of a convolution are its adjoints", "[laws]") {
  numbers const x = drawn(1, 6 * 5 * 4), w = drawn(2, 6 * 2 * 6), dy = drawn(3, 3 * 3 * 6);
  results const r = run<Image, Grouped>(x, w, dy);
  CHECK(std::fabs(dot(r.y, dy)) > 0.1);
  CHECK(dot(x, r.dx) == Approx(dot(r.y, dy)).epsilon(1e-12));
  CHECK(dot(w, r.dw) == Approx(dot(r.y, dy)).epsilon(1e-12));
  // A transposed convolution is that adjoint, and its own is the convolution.
  results const back = run<Made, Back>(dy, w, x);
  CHECK(are_near(back.y, r.dx));
  CHECK(are_near(back.dx, r.y));
  CHECK(are_near(back.dw, r.dw));
}
TEST_CASE("a convolution in groups is a dense one of diagonal blocks", "[laws]") {
  numbers const x = drawn(4, 6 * 5 * 4), w = drawn(5, 6 * 2 * 6), dy = drawn(6, 3 * 3 * 6);
  constexpr std::size_t read = channels / groups, made = filters / groups;
  numbers blocks(taps * channels * filters), gradient(w.size());
  auto const each_weight = [](auto const& use) {  // use(its place in groups, its place)
    for (std::size_t k = 0; k < taps; ++k)
      for (std::size_t c = 0; c < read; ++c)
        for (std::size_t n = 0; n < filters; ++n)
          use((k * read + c) * filters + n, (k * channels + n / made * read + c) * filters + n);
  };
  each_weight([&](std::size_t from, std::size_t to) { blocks[to] = w[from]; });
  results const in_groups = run<Image, Grouped>(x, w, dy),
                dense = run<Image, Dense<>>(x, blocks, dy);
  each_weight([&](std::size_t to, std::size_t from) { gradient[to] = dense.dw[from]; });
  CHECK(are_near(in_groups.y, dense.y));
  CHECK(are_near(in_groups.dx, dense.dx));
  CHECK(are_near(in_groups.dw, gradient));
}
