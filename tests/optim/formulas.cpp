// SPDX-License-Identifier: BSL-1.0
//
// Ten steps of every optimizer against the formulas of PyTorch's documentation, written down once
// more in double and as they stand there; and which parameters decay.
#include "catch.hpp"

#include <algorithm>
#include <cmath>

#include "laws/data.hpp"
#include "laws/worse.hpp"

using namespace pp;

namespace {

struct Net : Model<Input<2, 3>, Linear<5>, LayerNorm, Tanh, Linear<2>, MSE> {};
template <class Optimizer>
using Trainer = Pipeline<Net, Optimizer, FP64, PortableHost, MicroBatches<2>, Stages<2>>;

/// A matrix decays; a bias, a scale or a shift does not.
bool decays(int rows) { return rows > 1; }

/// torch.optim.SGD: buf = momentum * buf + g; with Nesterov g = g + momentum * buf, else g = buf
/// (when there is momentum).
struct plain_sgd {
  SGD o;
  double buffer = 0;
  double operator()(double w, double g, long step, bool decay) {
    if (decay) g += o.weight_decay * w;
    if (o.momentum != 0) {
      buffer = step == 1 ? g : o.momentum * buffer + g;
      g = o.nesterov ? g + o.momentum * buffer : buffer;
    }
    return w - o.learning_rate * g;
  }
};
/// torch.optim.Adam and AdamW.
template <class O>
struct plain_adam {
  O o;
  double m = 0, v = 0;
  double operator()(double w, double g, long step, bool decay) {
    if (decay && std::is_same_v<O, Adam>) g += o.weight_decay * w;
    if (decay && std::is_same_v<O, AdamW>) w -= o.learning_rate * o.weight_decay * w;
    m = o.beta1 * m + (1 - o.beta1) * g;
    v = o.beta2 * v + (1 - o.beta2) * g * g;
    double const m_hat = m / (1 - std::pow(o.beta1, double(step))),
                 v_hat = v / (1 - std::pow(o.beta2, double(step)));
    return w - o.learning_rate * m_hat / (std::sqrt(v_hat) + o.epsilon);
  }
};
/// torch.optim.RMSprop, centred for CenteredRMSprop.
template <class O>
struct plain_rmsprop {
  O o;
  double square_avg = 0, grad_avg = 0, buffer = 0;
  double operator()(double w, double g, long, bool decay) {
    if (decay) g += o.weight_decay * w;
    square_avg = o.alpha * square_avg + (1 - o.alpha) * g * g;
    double variance = square_avg;
    if (std::is_same_v<O, CenteredRMSprop>) {
      grad_avg = o.alpha * grad_avg + (1 - o.alpha) * g;
      variance -= grad_avg * grad_avg;
    }
    double const update = g / (std::sqrt(variance) + o.epsilon);
    if (o.momentum == 0) return w - o.learning_rate * update;
    buffer = o.momentum * buffer + update;
    return w - o.learning_rate * buffer;
  }
};
/// torch.optim.Adagrad.
struct plain_adagrad {
  Adagrad o;
  double sum = o.initial_accumulator_value;
  double operator()(double w, double g, long step, bool decay) {
    double const rate = o.learning_rate / (1 + double(step - 1) * o.learning_rate_decay);
    if (decay) g += o.weight_decay * w;
    sum += g * g;
    return w - rate * g / (std::sqrt(sum) + o.epsilon);
  }
};
/// torch.optim.Adamax.
struct plain_adamax {
  Adamax o;
  double m = 0, u = 0;
  double operator()(double w, double g, long step, bool decay) {
    if (decay) g += o.weight_decay * w;
    m = o.beta1 * m + (1 - o.beta1) * g;
    u = std::fmax(o.beta2 * u, std::fabs(g) + o.epsilon);
    return w - o.learning_rate * m / ((1 - std::pow(o.beta1, double(step))) * u);
  }
};

template <class Optimizer, class Reference>
void ten_steps(Optimizer const& o, Reference const& fresh, double clip_norm = 0) {
  using trainer = Trainer<Optimizer>;
  trainer t({.seed = 3, .optimizer = o, .clip_norm = clip_norm});
  laws::disturb(t, 4, 0.2);
  auto parameters = t.parameters();
  std::vector<std::vector<Reference>> references;
  std::vector<std::vector<double>> expected;
  for (auto const& p : parameters) {
    references.emplace_back(p.values.size(), fresh);
    expected.emplace_back(p.values.begin(), p.values.end());
  }
  double most = 0;
  for (long step = 1; step <= 10; ++step) {
    laws::sample_batch<trainer> const data(std::uint64_t(step) + 20);
    auto const result = t.step(data.view());
    double const scale = clip_norm > 0 && result.gradient_norm > clip_norm
                             ? clip_norm / (result.gradient_norm + 1e-6)
                             : 1;
    double squares = 0;
    for (std::size_t i = 0; i < parameters.size(); ++i)
      for (std::size_t e = 0; e < expected[i].size(); ++e) {
        double const g = parameters[i].gradients[e];
        squares += g * g;
        expected[i][e] =
            references[i][e](expected[i][e], g * scale, step, decays(parameters[i].rows));
        most = laws::worse(most, std::fabs(expected[i][e] - parameters[i].values[e]));
        expected[i][e] =
            parameters[i].values[e];  // differences of rounding must not grow through the gradients
      }
    CHECK(result.gradient_norm == Approx(std::sqrt(squares)).epsilon(1e-12));
    if (clip_norm > 0) CHECK(result.gradient_norm > clip_norm);
  }
  CHECK(most < 1e-12);
}

template <class O>
void rmsprop_is_pytorchs() {
  O const o{.learning_rate = 0.01, .alpha = 0.8, .epsilon = 1e-3, .weight_decay = 0.3};
  O with_momentum = o;
  with_momentum.momentum = 0.9;
  ten_steps(o, plain_rmsprop<O>{o});
  ten_steps(with_momentum, plain_rmsprop<O>{with_momentum});
  ten_steps(with_momentum, plain_rmsprop<O>{with_momentum}, 0.05);
}

}  // namespace

TEST_CASE("SGD is PyTorch's", "[optim]") {
  for (SGD const o :
       {SGD{.learning_rate = 0.1}, SGD{.learning_rate = 0.1, .weight_decay = 0.3},
        SGD{.learning_rate = 0.1, .momentum = 0.9, .weight_decay = 0.01},
        SGD{.learning_rate = 0.1, .momentum = 0.9, .weight_decay = 0.01, .nesterov = true}})
    ten_steps(o, plain_sgd{o});
}
TEST_CASE("Adam is PyTorch's", "[optim]") {
  Adam const o{
      .learning_rate = 0.01, .beta1 = 0.8, .beta2 = 0.95, .epsilon = 1e-6, .weight_decay = 0.1};
  ten_steps(o, plain_adam<Adam>{o});
}
TEST_CASE("AdamW is PyTorch's", "[optim]") {
  AdamW const o{
      .learning_rate = 0.01, .beta1 = 0.8, .beta2 = 0.95, .epsilon = 1e-6, .weight_decay = 0.3};
  ten_steps(o, plain_adam<AdamW>{o});
  ten_steps(o, plain_adam<AdamW>{o}, 0.05);
}
TEST_CASE("RMSprop is PyTorch's, centred or not", "[optim]") {
  rmsprop_is_pytorchs<RMSprop>();
  rmsprop_is_pytorchs<CenteredRMSprop>();
}
TEST_CASE("a spread that rounding makes negative is none", "[optim]") {
  CenteredRMSprop const o{.alpha = 0.8, .epsilon = 1e-3};
  auto const c = o.prepare<float>({1, o.learning_rate, 1, 0});
  float w = 0, v = 0, m = 0, a = 0, before = 0;
  int negative = 0;
  for (int step = 0; step < 200; ++step) {
    before = w;
    w = CenteredRMSprop::apply(c, w, step < 20 ? 0.74f : 0.37f, v, m, a);
    negative += math::multiply_add(-a, a, v) < 0;
  }
  CHECK(negative > 0);
  CHECK(w < before);  // and no NaN
}
TEST_CASE("Adagrad is PyTorch's", "[optim]") {
  for (Adagrad const o : {Adagrad{.learning_rate = 0.1}, Adagrad{.learning_rate = 0.1,
                                                                 .learning_rate_decay = 0.2,
                                                                 .weight_decay = 0.3,
                                                                 .initial_accumulator_value = 0.01,
                                                                 .epsilon = 1e-3}}) {
    ten_steps(o, plain_adagrad{o});
    ten_steps(o, plain_adagrad{o}, 0.05);
  }
}
TEST_CASE("Adagrad's sum begins with its initial value in whichever step is the first", "[optim]") {
  Adagrad const o{.initial_accumulator_value = 0.5};
  for (long const first : {1L, 7L}) {
    double sum = 0, expected = 0.5;
    for (long step = first; step < first + 3; ++step) {
      Adagrad::apply(o.prepare<double>({step, 0.1, 1, 0}), 1.0, 0.25, sum);
      CHECK(sum == (expected += 0.0625));
    }
  }
}
TEST_CASE("Adamax is PyTorch's", "[optim]") {
  Adamax const o{
      .learning_rate = 0.01, .beta1 = 0.8, .beta2 = 0.7, .epsilon = 1e-3, .weight_decay = 0.1};
  ten_steps(o, plain_adamax{o});
  ten_steps(o, plain_adamax{o}, 0.05);
}
TEST_CASE("a step may have a learning rate of its own", "[optim]") {
  using trainer = Trainer<SGD>;
  trainer a({.seed = 1, .optimizer = {.learning_rate = 0.1}}),
      b({.seed = 1, .optimizer = {.learning_rate = 7}});
  laws::sample_batch<trainer> const data(1);
  a.step(data.view());
  b.step(data.view(), 0.1);
  CHECK(laws::same_numbers(laws::snapshot(a).values, laws::snapshot(b).values));
}
TEST_CASE("biases, scales and shifts do not decay", "[optim]") {
  constexpr auto const& g = Net::graph;
  static_assert(g.size.parameters == 6);
  for (int i = 0; i < 6; ++i)
    CHECK(g.parameters[i].decay_scale == (decays(g.parameters[i].rows()) ? 1 : 0));
}
