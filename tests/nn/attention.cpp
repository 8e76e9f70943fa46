// SPDX-License-Identifier: BSL-1.0
//
// Attention as a layer, from ids to outputs, against its definition in double: shared key heads,
// rotary positions, padding. And the tables of positions: their entries, and that nothing trains
// them.
#include "catch.hpp"

#include <algorithm>
#include <cmath>
#include <complex>
#include <vector>

#include "laws/data.hpp"
#include "laws/worse.hpp"

using namespace pp;

namespace {

template <class M>
constexpr long parameters_of() {
  long n = 0;
  for (int i = 0; i < M::graph.size.parameters; ++i) n += M::graph.parameters[i].elements();
  return n;
}

template <class... Options>
struct Attends : Model<Tokens<11, 5>, Embedding<24>, Attention<6, Options...>, MSE> {};
static_assert(Attends<>::graph.output == sample_shape(5, 24));
static_assert(parameters_of<Attends<>>() == 11 * 24 + 24 * 72 + 72 + 24 * 24 + 24);
static_assert(parameters_of<Attends<KeyValueHeads<2>>>() == 11 * 24 + 24 * 40 + 40 + 24 * 24 + 24);
static_assert(parameters_of<Attends<KeyValueHeads<1>, NoBias, RoPE<>>>() ==
              11 * 24 + 24 * 32 + 5 * 4 + 24 * 24);
static_assert(parameters_of<Attends<HeadSize<5>, KeyValueHeads<2>>>() ==
              11 * 24 + 24 * 50 + 50 + 30 * 24 + 24);
// Padding is known wherever rows still are positions.
template <class M>
constexpr detail::operand padding_of_last_attention() {
  detail::operand found{};
  for (int i = 0; i < M::graph.size.ops; ++i)
    if (M::graph.ops[i].kind == op_kind::attention) found = M::graph.ops[i].in[3];
  return found;
}
struct Deep : Model<Tokens<11, 5>, Embedding<8>, Positions, Dropout<1, 2>,
                    Repeat<2, Residual<LayerNorm, Attention<2>>,
                           Residual<RMSNorm, Linear<8>, SwiGLU, Linear<8>>>,
                    Stash<"a">, Tanh, Pop<"a", Concat>, Softmax, Attention<2>, MSE> {};
static_assert(padding_of_last_attention<Deep>() == detail::operand{detail::space::input, 0});
struct Numbers : Model<Input<5, 8>, Linear<8>, Attention<2>, MSE> {};
static_assert(padding_of_last_attention<Numbers>() == detail::operand{});

/// The layer's output for one sample, by its definition. `keys`: how many positions are tokens.
struct layer {
  int heads, key_heads;
  bool causal;
  double base;  // of RoPE, or 0
};
std::vector<double> attend(layer const& l, std::vector<double> const& x, int keys, auto const& p) {
  int const width = 24, positions = int(x.size()) / width, d = width / l.heads,
            qkv = width + 2 * l.key_heads * d;
  auto const affine = [](std::vector<double> const& in, auto const& w, auto const& b) {
    int const inputs = w.rows, outputs = w.columns, rows = int(in.size()) / inputs;
    std::vector<double> y(std::size_t(rows * outputs));
    for (int r = 0; r < rows; ++r)
      for (int c = 0; c < outputs; ++c) {
        double sum = b.values[std::size_t(c)];
        for (int k = 0; k < inputs; ++k)
          sum += in[std::size_t(r * inputs + k)] * w.values[std::size_t(k * outputs + c)];
        y[std::size_t(r * outputs + c)] = sum;
      }
    return y;
  };
  std::vector<double> const all = affine(x, p[1], p[2]);
  // Element c of a head that begins at column `at`: RoPE turns the pair (c, c + d / 2) as one
  // complex number.
  auto const element = [&](int t, int at, int c) {
    double const* const head = all.data() + t * qkv + at;
    if (l.base == 0) return head[c];
    int const i = c % (d / 2);
    std::complex<double> const turned = std::complex(head[i], head[i + d / 2]) *
                                        std::polar(1.0, t * std::pow(l.base, -2.0 * i / d));
    return c < d / 2 ? turned.real() : turned.imag();
  };
  std::vector<double> y(x.size());
  for (int h = 0; h < l.heads; ++h)
    for (int t = 0; t < positions; ++t) {
      int const kv = h / (l.heads / l.key_heads),
                seen = std::min(keys, l.causal ? t + 1 : positions);
      std::vector<double> weight;
      double sum = 0;
      for (int s = 0; s < seen; ++s) {
        double score = 0;
        for (int c = 0; c < d; ++c) score += element(t, h * d, c) * element(s, width + kv * d, c);
        weight.push_back(std::exp(score / std::sqrt(double(d))));
        sum += weight.back();
      }
      for (int c = 0; c < d; ++c)
        for (int s = 0; s < seen; ++s)
          y[std::size_t(t * width + h * d + c)] +=
              weight[std::size_t(s)] / sum *
              all[std::size_t(s * qkv + width + l.key_heads * d + kv * d + c)];
    }
  return affine(y, p[p.size() - 2], p[p.size() - 1]);
}

template <class... Options>
void check(layer const& l, std::vector<int> const& ids) {
  using trainer = Pipeline<Attends<Options...>, FP64, PortableHost, MicroBatchSize<2>>;
  trainer t({.seed = 3});
  laws::disturb(t, 3, 0.5);
  std::vector<double> found(std::size_t(2 * 5 * 24));
  t.forward(ids, found);
  auto const p = t.parameters();
  for (int b = 0; b < 2; ++b) {
    std::vector<double> x;
    int keys = 0;
    for (int s = 0; s < 5; ++s) {
      int const id = ids[std::size_t(b * 5 + s)];
      if (id >= 0) keys = s + 1;
      for (int c = 0; c < 24; ++c) x.push_back(id < 0 ? 0 : p[0].values[std::size_t(id * 24 + c)]);
    }
    std::vector<double> const wanted = attend(l, x, keys, p);
    double most = 0;
    for (std::size_t i = 0; i < wanted.size(); ++i)
      most = laws::worse(most, std::fabs(wanted[i] - found[std::size_t(b) * wanted.size() + i]));
    INFO("sample " << b << ", " << keys << " tokens");
    CHECK(most < 1e-12);
  }
}

}  // namespace

TEST_CASE("Attention is its definition", "[nn]") {
  std::vector<int> const ids{3, 0, 10, 7, 7, 1, 5, 2, 2, 9},
      padded{3, 0, 10, -1, -1, 1, -1, 2, 2, -1}, empty{-1, -1, -1, -1, -1, 4, -1, -1, -1, -1};
  for (auto const& of : {ids, padded, empty}) {
    check<>({6, 6, true, 0}, of);
    check<NotCausal>({6, 6, false, 0}, of);
    check<KeyValueHeads<2>>({6, 2, true, 0}, of);
    check<KeyValueHeads<1>, Causal>({6, 1, true, 0}, of);
    check<RoPE<>>({6, 6, true, 10000}, of);
    check<RoPE<50>, NotCausal, KeyValueHeads<3>>({6, 3, false, 50}, of);
  }
}

TEST_CASE("an id of -1 has no vector and no gradient", "[nn]") {
  struct Words : Model<Tokens<5, 4>, Embedding<3>, MSE> {};
  using trainer = Pipeline<Words, PortableHost>;
  trainer t({.seed = 1});
  std::vector<int> const ids{2, -1, 2, -1};
  std::vector<float> const targets(12, 1.0f);
  std::vector<float> y(12);
  t.forward(ids, y);
  auto const p = t.parameters()[0];
  for (int c = 0; c < 3; ++c) {
    CHECK(y[std::size_t(c)] == p.values[std::size_t(2 * 3 + c)]);
    CHECK(y[std::size_t(3 + c)] == 0);
  }
  t.gradients({ids, targets});
  for (int row = 0; row < 5; ++row)
    for (int c = 0; c < 3; ++c) CHECK((p.gradients[std::size_t(row * 3 + c)] != 0) == (row == 2));
}

TEST_CASE("tables of positions have the entries of their papers and are not trained", "[nn]") {
  struct Placed : Model<Tokens<5, 7>, Embedding<10>, SinusoidalPositions, MSE> {};
  using trainer = Pipeline<Placed, FP64, PortableHost, AdamW, MicroBatches<2>>;
  trainer t({.seed = 1});
  laws::sample_batch<trainer> const data(1);
  for (int step = 0; step < 3; ++step) t.step(data.view());
  std::vector<int> const nothing(7, -1);  // so that the table alone comes out
  std::vector<double> y(70);
  t.forward(nothing, y);
  double most = 0;
  for (int pos = 0; pos < 7; ++pos)
    for (int i = 0; i < 5; ++i) {
      double const angle = pos / std::pow(10000.0, 2.0 * i / 10);
      detail::initializer const turned{distribution::rotary, 10000};
      most = laws::worse(most, std::fabs(y[std::size_t(pos * 10 + 2 * i)] - std::sin(angle)));
      most = laws::worse(most, std::fabs(y[std::size_t(pos * 10 + 2 * i + 1)] - std::cos(angle)));
      most =
          laws::worse(most, std::fabs(detail::table_entry(turned, 10, pos, i) - std::cos(angle)));
      most = laws::worse(most,
                         std::fabs(detail::table_entry(turned, 10, pos, 5 + i) - std::sin(angle)));
    }
  CHECK(most < 1e-14);
}
