// SPDX-License-Identifier: BSL-1.0
//
// Ten steps of the optimizers beside SGD and Adam against their published formulas, written down
// once more in double, by loops over whole matrices, as they stand there.
#include "catch.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "laws/data.hpp"
#include "laws/worse.hpp"

using namespace pp;
using namespace pp::detail;

namespace {

using numbers = std::vector<double>;

/// Tall, wide and square matrices, one of a single row, one of a single column; tables; vectors.
struct Net : Model<Input<5, 3>, Positions, Linear<17>, LayerNorm, Tanh, Linear<6, NoBias>,
                   Group<LearningRate<1, 2>, Linear<6>>, Linear<1>, Linear<35>, GELUTanh,
                   Group<WeightDecay<2>, Linear<4>>, MSE> {};
constexpr int parameters = Net::graph.size.parameters;
template <class Optimizer, class Precision = FP64>
using Trainer = Pipeline<Net, Optimizer, Precision, PortableHost, MicroBatches<2>, Stages<3>>;

struct problem {
  detail::parameter is;
  long step;
  double scale;  // of gradients
  double rate() const { return is.rate_scale; }
};

double norm(numbers const& x) {
  double sum = 0;
  for (double e : x) sum += e * e;
  return std::sqrt(sum);
}
double rms(numbers const& x) { return norm(x) / std::sqrt(double(x.size())); }

/// Chen et al., 2023, algorithm 2.
struct plain_lion {
  Lion o;
  numbers m;
  void operator()(problem const& p, numbers& w, numbers const& g) {
    m.resize(w.size());
    for (std::size_t i = 0; i < w.size(); ++i) {
      double const c = o.beta1 * m[i] + (1 - o.beta1) * g[i];
      double const sign = c > 0 ? 1 : c < 0 ? -1 : 0;
      w[i] -= o.learning_rate * p.rate() * (sign + o.weight_decay * p.is.decay_scale * w[i]);
      m[i] = o.beta2 * m[i] + (1 - o.beta2) * g[i];
    }
  }
};

/// You et al., 2020, algorithm 2.
struct plain_lamb {
  LAMB o;
  numbers m, v;
  void operator()(problem const& p, numbers& w, numbers const& g) {
    m.resize(w.size()), v.resize(w.size());
    numbers r(w.size());
    for (std::size_t i = 0; i < w.size(); ++i) {
      m[i] = o.beta1 * m[i] + (1 - o.beta1) * g[i];
      v[i] = o.beta2 * v[i] + (1 - o.beta2) * g[i] * g[i];
      double const m_hat = m[i] / (1 - std::pow(o.beta1, double(p.step))),
                   v_hat = v[i] / (1 - std::pow(o.beta2, double(p.step)));
      r[i] = m_hat / (std::sqrt(v_hat) + o.epsilon) + o.weight_decay * p.is.decay_scale * w[i];
    }
    double const trust = norm(w) > 0 && norm(r) > 0 ? norm(w) / norm(r) : 1;
    for (std::size_t i = 0; i < w.size(); ++i) w[i] -= o.learning_rate * p.rate() * trust * r[i];
  }
};

/// PyTorch's documentation of torch.optim.Adafactor, on the matrix as PyTorch has it: a weight is
/// [outputs, inputs] there.
struct plain_adafactor {
  Adafactor o;
  double epsilon1;
  numbers row, column, variance;
  void operator()(problem const& p, numbers& w, numbers const& g) {
    std::size_t const n = w.size();
    bool const transposed = p.is.kind == custom::tensor_kind::matrix;
    std::size_t const rows = std::size_t(transposed ? p.is.columns() : p.is.rows()),
                      columns = n / rows;
    auto const at = [&](std::size_t r, std::size_t c) {
      return transposed ? c * rows + r : r * columns + c;
    };
    double const rest = std::pow(double(p.step), o.beta2_decay), rate = o.learning_rate * p.rate();
    double const rho = std::min(rate, 1 / std::sqrt(double(p.step)));
    double const alpha = std::max(o.epsilon2, rms(w)) * rho;
    for (double& e : w) e *= 1 - rate * o.weight_decay * p.is.decay_scale;
    numbers estimate(n), u(n);
    if (p.is.kind == custom::tensor_kind::vector) {
      variance.resize(n);
      for (std::size_t i = 0; i < n; ++i)
        estimate[i] = variance[i] = (1 - rest) * variance[i] + rest * g[i] * g[i];
    } else {
      row.resize(rows), column.resize(columns);
      numbers row_mean(rows), column_mean(columns);
      for (std::size_t r = 0; r < rows; ++r)
        for (std::size_t c = 0; c < columns; ++c) {
          row_mean[r] += g[at(r, c)] * g[at(r, c)] / double(columns);
          column_mean[c] += g[at(r, c)] * g[at(r, c)] / double(rows);
        }
      double mean = 0;
      for (std::size_t r = 0; r < rows; ++r)
        row[r] += rest * (row_mean[r] - row[r]), mean += row[r] / double(rows);
      for (std::size_t c = 0; c < columns; ++c) column[c] += rest * (column_mean[c] - column[c]);
      for (std::size_t r = 0; r < rows; ++r)
        for (std::size_t c = 0; c < columns; ++c)
          estimate[at(r, c)] = row[r] * column[c] / std::max(mean, epsilon1);
    }
    for (std::size_t i = 0; i < n; ++i)
      u[i] = g[i] / std::sqrt(std::max(estimate[i], epsilon1 * epsilon1));
    double const denominator = std::max(1.0, rms(u) / o.threshold);
    for (std::size_t i = 0; i < n; ++i) w[i] -= alpha / denominator * u[i];
  }
};

/// PyTorch's documentation of torch.optim.Muon, without its bfloat16, on the matrix as PyTorch has
/// it; AdamW for the rest.
struct plain_muon {
  Muon o;
  numbers m, v;
  void operator()(problem const& p, numbers& w, numbers const& g) {
    m.resize(w.size()), v.resize(w.size());
    if (p.is.kind != custom::tensor_kind::matrix) return adamw(p, w, g);
    std::size_t const n = w.size(), A = std::size_t(p.is.columns()), B = n / A;
    numbers x(n);
    for (std::size_t r = 0; r < A; ++r)
      for (std::size_t c = 0; c < B; ++c) {
        std::size_t const i = c * A + r;
        m[i] = o.momentum * m[i] + (1 - o.momentum) * g[i];
        x[r * B + c] = o.nesterov ? o.momentum * m[i] + (1 - o.momentum) * g[i] : m[i];
      }
    std::size_t const rows = std::min(A, B), columns = std::max(A, B);
    if (A > B) x = transposed(x, A, B);
    double const size = std::max(norm(x), o.epsilon);
    for (double& e : x) e /= size;
    for (int i = 0; i < o.newton_schulz_steps; ++i) {
      numbers const gram = product(x, transposed(x, rows, columns), rows, columns, rows);
      numbers update = product(gram, gram, rows, rows, rows);
      for (std::size_t e = 0; e < update.size(); ++e) update[e] = o.b * gram[e] + o.c * update[e];
      numbers const moved = product(update, x, rows, rows, columns);
      for (std::size_t e = 0; e < n; ++e) x[e] = o.a * x[e] + moved[e];
    }
    if (A > B) x = transposed(x, B, A);
    double const rate = o.learning_rate * p.rate(), a = double(A), b = double(B);
    double const ratio = o.adjust == muon_rate::original          ? std::sqrt(std::max(1.0, a / b))
                         : o.adjust == muon_rate::match_rms_adamw ? 0.2 * std::sqrt(std::max(a, b))
                                                                  : std::sqrt(a / b);
    for (std::size_t r = 0; r < A; ++r)
      for (std::size_t c = 0; c < B; ++c)
        w[c * A + r] = w[c * A + r] * (1 - rate * o.weight_decay * p.is.decay_scale) -
                       rate * ratio * x[r * B + c];
  }
  void adamw(problem const& p, numbers& w, numbers const& g) {
    double const rate = o.others.learning_rate * p.rate();
    for (std::size_t i = 0; i < w.size(); ++i) {
      m[i] = o.others.beta1 * m[i] + (1 - o.others.beta1) * g[i];
      v[i] = o.others.beta2 * v[i] + (1 - o.others.beta2) * g[i] * g[i];
      double const m_hat = m[i] / (1 - std::pow(o.others.beta1, double(p.step))),
                   v_hat = v[i] / (1 - std::pow(o.others.beta2, double(p.step)));
      w[i] = w[i] * (1 - rate * o.others.weight_decay * p.is.decay_scale) -
             rate * m_hat / (std::sqrt(v_hat) + o.others.epsilon);
    }
  }
  static numbers transposed(numbers const& x, std::size_t rows, std::size_t columns) {
    numbers y(x.size());
    for (std::size_t r = 0; r < rows; ++r)
      for (std::size_t c = 0; c < columns; ++c) y[c * rows + r] = x[r * columns + c];
    return y;
  }
  static numbers product(numbers const& a, numbers const& b, std::size_t rows, std::size_t inner,
                         std::size_t columns) {
    numbers y(rows * columns);
    for (std::size_t r = 0; r < rows; ++r)
      for (std::size_t c = 0; c < columns; ++c)
        for (std::size_t i = 0; i < inner; ++i)
          y[r * columns + c] += a[r * inner + i] * b[i * columns + c];
    return y;
  }
};

/// Ten steps; largest difference of a parameter tensor, relative to what the reference moved it in
/// that step, in root mean square.
template <class Trainer, class Reference>
double ten_steps(typename Trainer::optimizer_type const& o, Reference const& fresh,
                 double clip_norm = 0) {
  Trainer t({.seed = 3, .optimizer = o, .clip_norm = clip_norm});
  laws::disturb(t, 4, 0.2);
  auto views = t.parameters();
  REQUIRE(int(views.size()) == parameters);
  std::vector<Reference> references(views.size(), fresh);
  double most = 0;
  for (long step = 1; step <= 10; ++step) {
    std::vector<numbers> before;
    for (auto const& p : views) before.emplace_back(p.values.begin(), p.values.end());
    laws::sample_batch<Trainer> const data(std::uint64_t(step) + 20);
    auto const result = t.step(data.view());
    double const scale = clip_norm > 0 ? clip_norm / (result.gradient_norm + 1e-6) : 1;
    if (clip_norm > 0) CHECK(result.gradient_norm > clip_norm);
    for (std::size_t i = 0; i < views.size(); ++i) {
      numbers w = before[i], g(views[i].gradients.begin(), views[i].gradients.end());
      for (double& e : g) e *= scale;
      references[i](problem{Net::graph.parameters[i], step, scale}, w, g);
      double apart = 0, moved = 0;
      for (std::size_t e = 0; e < w.size(); ++e) {
        apart += (w[e] - double(views[i].values[e])) * (w[e] - double(views[i].values[e]));
        moved += (w[e] - before[i][e]) * (w[e] - before[i][e]);
      }
      REQUIRE(moved > 0);
      most = laws::worse(most, std::sqrt(apart / moved));
    }
  }
  return most;
}

}  // namespace

TEST_CASE("Lion is Chen's", "[optim]") {
  Lion const o{.learning_rate = 0.01, .weight_decay = 0.3};
  CHECK(ten_steps<Trainer<Lion>>(o, plain_lion{o, {}}) < 1e-12);
  CHECK(ten_steps<Trainer<Lion>>(o, plain_lion{o, {}}, 0.05) < 1e-12);
}
TEST_CASE("LAMB is You's", "[optim]") {
  LAMB const o{.learning_rate = 0.01, .beta2 = 0.99, .weight_decay = 0.3};
  CHECK(ten_steps<Trainer<LAMB>>(o, plain_lamb{o, {}, {}}) < 1e-12);
  CHECK(ten_steps<Trainer<LAMB>>(o, plain_lamb{o, {}, {}}, 0.05) < 1e-12);
  CHECK(ten_steps<Trainer<LAMB, FP32>>(o, plain_lamb{o, {}, {}}) < 1e-4);
}
TEST_CASE("Adafactor is PyTorch's", "[optim]") {
  for (Adafactor const o :
       {Adafactor{.weight_decay = 0.1},
        Adafactor{.learning_rate = 0.5, .epsilon2 = 0.3, .threshold = 0.5},
        Adafactor{.learning_rate = 0.05, .beta2_decay = -0.5, .epsilon1 = 0.03}}) {
    CHECK(ten_steps<Trainer<Adafactor>>(
              o, plain_adafactor{o, o.epsilon1 > 0 ? o.epsilon1 : 0x1p-52, {}, {}, {}}) < 1e-12);
    CHECK(ten_steps<Trainer<Adafactor>>(
              o, plain_adafactor{o, o.epsilon1 > 0 ? o.epsilon1 : 0x1p-52, {}, {}, {}}, 0.05) <
          1e-12);
  }
  Adafactor const o{};
  CHECK(ten_steps<Trainer<Adafactor, FP32>>(o, plain_adafactor{o, 0x1p-23, {}, {}, {}}) < 1e-4);
}
TEST_CASE("Muon is PyTorch's", "[optim]") {
  Muon o{.learning_rate = 0.02,
         .weight_decay = 0.3,
         .others = {.learning_rate = 0.003, .weight_decay = 0.2}};
  CHECK(ten_steps<Trainer<Muon>>(o, plain_muon{o, {}, {}}) < 1e-10);
  CHECK(ten_steps<Trainer<Muon>>(o, plain_muon{o, {}, {}}, 0.05) < 1e-10);
  CHECK(ten_steps<Trainer<Muon, FP32>>(o, plain_muon{o, {}, {}}) < 1e-4);
  o.nesterov = false;
  o.adjust = muon_rate::match_rms_adamw;
  CHECK(ten_steps<Trainer<Muon>>(o, plain_muon{o, {}, {}}) < 1e-10);
  o.adjust = muon_rate::spectral_unclamped;
  o.newton_schulz_steps = 3;
  CHECK(ten_steps<Trainer<Muon>>(o, plain_muon{o, {}, {}}) < 1e-10);
}

TEST_CASE("Muon's iteration makes the singular values alike", "[optim]") {
  // The step that a 2 x 2 matrix makes is the orthogonalised gradient: both its singular values are
  // near 1.
  Muon const o{.learning_rate = 1, .momentum = 0, .nesterov = false, .weight_decay = 0};
  struct Two : Model<Input<2>, Linear<2, NoBias>, MSE> {};
  Pipeline<Two, Muon, FP64, PortableHost, MicroBatchSize<2>> t({.seed = 1, .optimizer = o});
  auto w = t.parameters()[0];
  numbers const before(w.values.begin(), w.values.end());
  laws::sample_batch<decltype(t)> const data(3);
  t.step(data.view());
  double const a = before[0] - w.values[0], b = before[1] - w.values[1],
               c = before[2] - w.values[2], d = before[3] - w.values[3];
  double const sum = a * a + b * b + c * c + d * d, product = std::fabs(a * d - b * c);
  double const largest = std::sqrt((sum + std::sqrt(sum * sum - 4 * product * product)) / 2),
               smallest = product / largest;
  CHECK(largest < 1.3);
  CHECK(smallest > 0.5);
}

TEST_CASE("whole tensors come one by one, with the state that they need", "[optim]") {
  using adafactor = Trainer<Adafactor>::compiled;
  using muon = Trainer<Muon>::compiled;
  using lion = Trainer<Lion>::compiled;
  long kept = 0, matrices = 0;
  for (int i = 0; i < parameters; ++i) {
    detail::parameter const& p = Net::graph.parameters[i];
    kept += detail::padded<double>(p.kind == custom::tensor_kind::vector ? p.columns()
                                                                         : p.rows() + p.columns());
    matrices +=
        detail::padded<double>(p.elements()) * (p.kind == custom::tensor_kind::matrix ? 1 : 2);
  }
  long bytes[3] = {}, trained = 0;
  for (int s = 0; s < 3; ++s) {
    bytes[0] += adafactor::plan().stages[s].optimizer_bytes;
    bytes[1] += muon::plan().stages[s].optimizer_bytes;
    bytes[2] += lion::plan().stages[s].optimizer_bytes;
    trained += lion::plan().stages[s].gradient_bytes;
  }
  CHECK(bytes[0] == kept * 8);
  CHECK(bytes[1] == matrices * 8);
  CHECK(bytes[2] == trained);
  for (chunk_description const& c : muon::memory().chunks.items)
    for (int u = 0; u < c.updates.count; ++u)
      CHECK(c.updates[u].whole == (c.updates[u].shape.kind == custom::tensor_kind::matrix));
}
