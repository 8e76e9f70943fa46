// SPDX-License-Identifier: BSL-1.0
//
// Pools and their gradients against their definitions, on every instruction set: padding at either
// end, inside, everywhere, and where there are no ids.
#include "catch.hpp"

#include <cmath>
#include <vector>

#include "backend/lone_kernel.hpp"

using namespace pp;

namespace {

inline constexpr int samples = 6, positions = 4, width = 19;

template <class Pool>
struct OfTokens
    : Model<Tokens<9, positions>, Embedding<width>, Linear<width>, Pool, Linear<2>, MSE> {};
template <class Pool>
struct OfNumbers : Model<Input<2, 2, 3>, Linear<width>, Pool, Linear<2>, MSE> {};
static_assert(OfTokens<MeanPool>::graph.units[2].out == sample_shape(width));
static_assert(OfNumbers<LastPosition>::graph.units[1].out == sample_shape(width));

std::vector<int> const padded{1,  2, 3,  4,  5, 6,  -1, -1, -1, -1, 7,  0,
                              -1, 1, -1, -1, 2, -1, -1, 3,  -1, -1, -1, -1};

/// How much of position t goes into the result, given which positions are no padding.
using shares = double (*)(std::vector<int> const& real, int t);

template <class M>
void check(shares share, bool has_ids) {
  using trained = lone::compiled<M, MicroBatchSize<samples>>;
  exact<float> x(samples * positions * width, 1), dy(samples * width, 2);
  exact<float> y(samples * width), dx(samples * positions * width);
  std::vector<double> wanted_y(std::size_t(samples * width)),
      wanted_dx(std::size_t(samples * positions * width));
  for (int s = 0; s < samples; ++s) {
    std::vector<int> real;
    for (int t = 0; t < positions; ++t)
      if (!has_ids || padded[std::size_t(s * positions + t)] >= 0) real.push_back(t);
    for (int t = 0; t < positions; ++t)
      for (int c = 0; c < width; ++c) {
        int const i = (s * positions + t) * width + c;
        wanted_y[std::size_t(s * width + c)] += share(real, t) * double(x[i]);
        wanted_dx[std::size_t(i)] = share(real, t) * double(dy[s * width + c]);
      }
  }
  on_every_isa([&](auto isa) {
    INFO(isa.name);
    lone::kernel<trained, op_kind::pool> forward;
    forward.in(0) = x.data();
    if (has_ids) forward.in(1) = padded.data();
    forward.out(0) = y.data();
    forward.run(isa);
    for (int i = 0; i < samples * width; ++i)
      CHECK(double(y[i]) == Approx(wanted_y[std::size_t(i)]).margin(1e-6));
    lone::kernel<trained, op_kind::pool_gradient> backward;
    backward.in(0) = dy.data();
    if (has_ids) backward.in(1) = padded.data();
    backward.out(0) = dx.data();
    backward.run(isa);
    for (int i = 0; i < samples * positions * width; ++i)
      CHECK(double(dx[i]) == Approx(wanted_dx[std::size_t(i)]).margin(1e-6));
  });
}

double mean(std::vector<int> const& real, int t) {
  for (int r : real)
    if (r == t) return 1.0 / double(real.size());
  return 0;
}
double first(std::vector<int> const& real, int t) { return !real.empty() && real.front() == t; }
double last(std::vector<int> const& real, int t) { return !real.empty() && real.back() == t; }

}  // namespace

TEST_CASE("pools leave padding out", "[nn]") {
  check<OfTokens<MeanPool>>(mean, true);
  check<OfTokens<FirstPosition>>(first, true);
  check<OfTokens<LastPosition>>(last, true);
}
TEST_CASE("without ids every position counts", "[nn]") {
  check<OfNumbers<MeanPool>>(mean, false);
  check<OfNumbers<LastPosition>>(last, false);
}

namespace {

// [classifier]
using Block = Seq<Residual<LayerNorm, Attention<4, NotCausal>>,
                  Residual<LayerNorm, Linear<256>, GELUTanh, Linear<64>>>;

struct Reviews
    : Model<Tokens<20000, 200>, Embedding<64>, Positions, Repeat<2, Block>, LayerNorm,  // (200, 64)
            MeanPool,                                                                   // (64)
            Linear<2>, CrossEntropy> {};  // one label per review
// [/classifier]
static_assert(Reviews::graph.output == sample_shape(2));

/// A sample of a model with a shorter context, and the same padded.
template <int Context>
struct Reader
    : Model<Tokens<9, Context>, Embedding<8>, Residual<LayerNorm, Attention<2, NotCausal>>,
            LayerNorm, MeanPool, Linear<3>, CrossEntropy> {};

}  // namespace

TEST_CASE("padding changes no answer", "[nn]") {
  Pipeline<Reader<3>, PortableHost> shorter({.seed = 5});
  Pipeline<Reader<5>, PortableHost, Stages<3>> longer({.seed = 5});
  float a[3], b[3];
  shorter.forward(std::vector{4, 0, 7}, a);
  longer.forward(std::vector{4, 0, 7, -1, -1}, b);
  for (int i = 0; i < 3; ++i) CHECK(a[i] == Approx(b[i]).epsilon(1e-5));
  longer.forward(std::vector{-1, -1, -1, -1, -1}, b);
  for (float const x : b) CHECK(std::isfinite(x));
}
