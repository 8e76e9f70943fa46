// SPDX-License-Identifier: BSL-1.0
//
// Parameters: how many, and how they begin.
#include "catch.hpp"

#include <algorithm>
#include <cmath>

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

/// GPT-2 of N blocks, width C, context T, vocabulary V. Its head is a Linear of its own with a
/// bias; OpenAI's is the embedding table used a second time.
template <int N, int C, int Heads, int T, int V>
using Gpt2 = Model<Tokens<V, T>, Embedding<C>, Positions,
                   Repeat<N, Residual<LayerNorm, Attention<Heads>>,
                          Residual<LayerNorm, Linear<4 * C>, GELUTanh, Linear<C>>>,
                   LayerNorm, Linear<V>, CrossEntropy>;
struct Gpt2Small : Gpt2<12, 768, 12, 1024, 50257> {};

constexpr long blocks(long n, long c) {
  long const norms = 2 * 2 * c, attention = c * 3 * c + 3 * c + c * c + c,
             mlp = c * 4 * c + 4 * c + 4 * c * c + c;
  return n * (norms + attention + mlp);
}
constexpr long published = 50257L * 768 + 1024L * 768 + blocks(12, 768) + 2 * 768;
static_assert(published == 124'439'808);
static_assert(parameters_of<Gpt2Small>() == published + 768L * 50257 + 50257);

struct All : Model<Tokens<31, 9>, Embedding<40>, Positions, Attention<4, NoBias>, LayerNorm,
                   RMSNorm, Linear<50, NoBias>, Linear<20>, CrossEntropy> {};
static_assert(parameters_of<All>() ==
              31 * 40 + 9 * 40 + (40 * 120 + 40 * 40) + 2 * 40 + 40 + 40 * 50 + (50 * 20 + 20));

template <int N>
using Cut_ = Pipeline<All, Stages<N>, PortableHost>;

struct moments {
  double mean = 0, deviation = 0, largest = 0;
  explicit moments(std::span<float const> x) {
    for (float v : x) mean += v, largest = std::max(largest, std::fabs(double(v)));
    mean /= double(x.size());
    for (float v : x) deviation += (v - mean) * (v - mean);
    deviation = std::sqrt(deviation / double(x.size()));
  }
};

}  // namespace

TEST_CASE("parameters begin as PyTorch's do", "[nn]") {
  Cut_<1> trainer({.seed = 5});
  auto const p = trainer.parameters();
  REQUIRE(p.size() == 10);
  for (int table : {0, 1}) {  // Embedding, Positions: normal, deviation 0.02
    moments const m(p[std::size_t(table)].values);
    CHECK(m.mean == Approx(0).margin(0.004));
    CHECK(m.deviation == Approx(0.02).epsilon(0.1));
    CHECK(m.largest > 0.045);
    CHECK(m.largest < 0.12);
  }
  struct {
    std::size_t index;
    int inputs;
  } const uniforms[] = {{2, 40}, {3, 40}, {7, 40}, {8, 50}, {9, 50}};
  for (auto const& u : uniforms) {  // matrices and biases: uniform in +-1/sqrt(inputs)
    moments const m(p[u.index].values);
    double const bound = 1 / std::sqrt(double(u.inputs));
    CHECK(m.largest <= bound * 1.0000001);
    CHECK(m.largest > 0.85 * bound);
    if (p[u.index].values.size() > 500) {
      CHECK(m.mean == Approx(0).margin(0.06 * bound));
      CHECK(m.deviation == Approx(bound / std::sqrt(3.0)).epsilon(0.05));
    }
  }
  for (float gamma : p[4].values) CHECK(gamma == 1);
  for (float beta : p[5].values) CHECK(beta == 0);
  for (float gamma : p[6].values) CHECK(gamma == 1);
  CHECK(p[8].rows == 50);
  CHECK(p[8].columns == 20);
  CHECK(p[9].rows == 1);
  CHECK(p[4].layer == 3);
}

TEST_CASE("parameters begin alike however the model is cut", "[nn]") {
  Cut_<1> one({.seed = 5});
  Cut_<7> seven({.seed = 5});
  Cut_<1> other({.seed = 6});
  Pipeline<All, Stages<3>, MicroBatches<4>, AdamW, FP64, PortableHost> wide({.seed = 5});
  CHECK(laws::same_numbers(laws::snapshot(one).values, laws::snapshot(seven).values));
  CHECK_FALSE(laws::same_numbers(laws::snapshot(one).values, laws::snapshot(other).values));
  auto const narrow = laws::snapshot(one).values;
  auto const exact = laws::snapshot(wide).values;
  REQUIRE(narrow.size() == exact.size());
  double most = 0;
  for (std::size_t i = 0; i < narrow.size(); ++i)
    most = laws::worse(most, std::fabs(double(narrow[i]) - exact[i]));
  CHECK(most < 1e-7);
}

TEST_CASE("no two parameters begin with the same numbers", "[nn]") {
  Cut_<1> trainer({.seed = 5});
  auto const p = trainer.parameters();
  CHECK(p[2].values[0] != p[3].values[0]);
  CHECK(p[2].values[1] != p[2].values[0]);
  CHECK(p[8].values[0] != p[9].values[0]);
}
