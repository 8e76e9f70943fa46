// SPDX-License-Identifier: BSL-1.0
//
// Optimizers as a user writes them: a formula for one element, and one that looks at whole tensors.
#include "catch.hpp"

#include <algorithm>
#include <cmath>

#include "laws/bit_law.hpp"
#include "laws/own_optimizer.hpp"
#include "laws/worse.hpp"

using namespace pp;
using namespace pp::detail;

namespace {

// [element]
/// w -= rate * g / (|g| + softness)
struct SoftSign {
  double learning_rate = 0.01, softness = 0.1;

  static constexpr char const* name = "SoftSign";
  static constexpr int states = 0;  // arrays of its own, as large as the parameters
  void check(custom::setting_check const& is) const {
    is.positive("softness", softness);
  }  // optional: refused otherwise

  template <class T>
  struct coefficients {
    T rate, scale, softness;
  };
  template <class T>
  coefficients<T> prepare(custom::update_context const& c) const {
    return {T(c.learning_rate), T(c.gradient_scale), T(softness)};
  }
  template <class T>
  PIPE_HD static PIPE_INLINE T apply(coefficients<T> const& c, T w, T g) {
    g = g * c.scale;
    return w - c.rate * g / ((g < T(0) ? -g : g) + c.softness);
  }
};
// [/element]

// [tensor]
/// w -= rate * g / |g|, the norm being that of the whole tensor
struct Normalised {
  double learning_rate = 0.01;

  static constexpr char const* name = "Normalised";
  static constexpr bool takes(custom::tensor_kind) { return true; }
  static constexpr long state_elements(custom::tensor_shape const&) { return 0; }
  template <class Backend, class T>
  static constexpr long workspace_elements(custom::tensor_shape const&) {
    return 0;
  }

  template <class T>
  struct move {
    T* w;
    T const* g;
    T rate;
    PIPE_HD PIPE_INLINE void operator()(long i) const { w[i] = w[i] - rate * g[i]; }
  };
  template <class Kernels, class T>
  void update(Kernels k, custom::update_context const& c, custom::tensor_update<T> const& t) const {
    double const norm = std::sqrt(k.sum_of_squares(t.shape.elements(), t.gradients));
    if (norm > 0)
      k.each(t.shape.elements(), move<T>{t.values, t.gradients, T(c.learning_rate / norm)});
  }
};
// [/tensor]

struct Net : Model<Input<2, 3>, Linear<5>, LayerNorm, Tanh, Linear<2>, MSE> {};
template <class Optimizer, class... More>
using Trainer = Pipeline<Net, Optimizer, PortableHost, MicroBatches<2>, More...>;

template <class Optimizer, class Formula>
void moves_by(Formula const& formula) {
  using trainer = Trainer<Optimizer, FP64>;
  trainer t({.seed = 1});
  laws::sample_batch<trainer> const data(1);
  std::vector<std::vector<double>> before;
  for (auto const& p : t.parameters()) before.emplace_back(p.values.begin(), p.values.end());
  t.step(data.view());
  double worst = 0;
  std::size_t i = 0;
  for (auto const& p : t.parameters()) {
    double squares = 0;
    for (double g : p.gradients) squares += g * g;
    for (std::size_t e = 0; e < p.values.size(); ++e)
      worst = laws::worse(
          worst, std::fabs(before[i][e] - 0.01 * formula(p.gradients[e], std::sqrt(squares)) -
                           p.values[e]));
    ++i;
  }
  CHECK(worst < 1e-15);
}

}  // namespace

TEST_CASE("a formula of one's own is an optimizer", "[optim]") {
  CHECK_THROWS_WITH(Trainer<SoftSign>({.optimizer = {.softness = 0}}),
                    "SoftSign.softness: expected a number in [1e-37, 1e30], got 0");
  moves_by<SoftSign>([](double g, double) { return g / (std::fabs(g) + 0.1); });
  static_assert(Trainer<SoftSign>::plan.stages[0].optimizer_bytes == 0);
  laws::same_as_one_stage<Trainer<SoftSign>, Trainer<SoftSign, Stages<4>>>();
}
TEST_CASE("an optimizer of one's own may look at whole tensors", "[optim]") {
  moves_by<Normalised>([](double g, double norm) { return g / norm; });
  static_assert(Trainer<Normalised>::plan.stages[0].optimizer_bytes == 0);
  laws::same_as_one_stage<Trainer<Normalised>, Trainer<Normalised, Stages<4>>>();
}
TEST_CASE("an optimizer of two passes of one's own", "[optim]") {
  moves_by<laws::Normed>([](double g, double norm) { return g / norm; });
  laws::same_as_one_stage<Trainer<laws::Normed>, Trainer<laws::Normed, Stages<4>>>();
}
