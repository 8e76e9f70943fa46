// SPDX-License-Identifier: BSL-1.0
//
// The second oracle of the laws: training written as plainly as it can be, in doubles, one scalar
// after the other, with nothing of the library's graph, passes, kernels or schedules. It takes the
// layer types as words, and Philox as the definition of what is dropped.
#pragma once

#include <cmath>
#include <cstddef>
#include <map>
#include <string>
#include <type_traits>
#include <vector>

#include <pipe/pipe.hpp>

namespace laws::plain {

/// Reverse-mode differentiation of scalars: every number is an entry with the slopes of up to two
/// others.
class tape {
 public:
  int make(double value, int a = 0, double slope_a = 0, int b = 0, double slope_b = 0) {
    entries_.push_back({value, {a, b}, {slope_a, slope_b}});
    return int(entries_.size()) - 1;
  }
  double value(int i) const { return entries_[std::size_t(i)].value; }
  int add(int a, int b) { return make(value(a) + value(b), a, 1, b, 1); }
  int multiply(int a, int b) { return make(value(a) * value(b), a, value(b), b, value(a)); }
  int scale(int a, double by) { return make(value(a) * by, a, by); }
  /// A function of a, by its value and slope there.
  int map(int a, double f, double slope) { return make(f, a, slope); }
  /// The slopes of one number in all.
  std::vector<double> slopes(int of) const {
    std::vector<double> g(entries_.size());
    g[std::size_t(of)] = 1;
    for (std::size_t i = std::size_t(of) + 1; i-- > 0;)
      for (int k = 0; k < 2; ++k)
        g[std::size_t(entries_[i].from[k])] += g[i] * entries_[i].slope[k];
    return g;
  }

 private:
  struct entry {
    double value;
    int from[2];
    double slope[2];
  };
  std::vector<entry> entries_;
};

struct matrix {
  int rows = 0, columns = 0;
  std::vector<int> at;  // on the tape, or token ids
  int& operator()(int r, int c) { return at[std::size_t(r * columns + c)]; }
};

/// A parameter: whether it decays, its numbers, the optimizer's two moments, and where the numbers
/// are on the tape of a step.
struct weight {
  int rows, columns;
  bool decays;
  std::vector<double> values, m, v;
  std::vector<int> at;
};

/// One sample on its way through the layers.
struct sample {
  tape& t;
  std::vector<weight>& weights;
  std::map<std::string, std::size_t>& named;  // the first weight of a layer
  std::uint64_t seed;
  std::uint32_t step, number;
  std::size_t next = 0;
  std::uint32_t dropouts = 0;
  std::map<std::string, matrix> kept{};

  matrix take() {
    weight const& w = weights[next++];
    return {w.rows, w.columns, w.at};
  }
  template <class F>
  matrix each(matrix x, F f) {
    for (int& i : x.at) i = f(i);
    return x;
  }
  matrix plus(matrix x, matrix y) {
    for (std::size_t i = 0; i < x.at.size(); ++i) x.at[i] = t.add(x.at[i], y.at[i]);
    return x;
  }
  int dot(matrix& a, int row, int from, matrix& b, int column, bool transposed, int first,
          int count) {
    int sum = t.make(0);
    for (int k = 0; k < count; ++k)
      sum = t.add(sum, t.multiply(a(row, from + k),
                                  transposed ? b(column, first + k) : b(first + k, column)));
    return sum;
  }
  matrix product(matrix x, matrix w, bool transposed = false) {
    matrix y{x.rows, transposed ? w.rows : w.columns, {}};
    for (int r = 0; r < y.rows; ++r)
      for (int c = 0; c < y.columns; ++c)
        y.at.push_back(dot(x, r, 0, w, c, transposed, 0, x.columns));
    return y;
  }
  matrix biased(matrix x, bool has_bias) {
    if (!has_bias) return x;
    matrix b = take();
    for (int r = 0; r < x.rows; ++r)
      for (int c = 0; c < x.columns; ++c) x(r, c) = t.add(x(r, c), b(0, c));
    return x;
  }
  int exponential(int a) { return t.map(a, std::exp(t.value(a)), std::exp(t.value(a))); }
  int power(int a, double p) {
    return t.map(a, std::pow(t.value(a), p), p * std::pow(t.value(a), p - 1));
  }
  /// (x - mean) / sqrt(variance + epsilon), or x / sqrt(mean square + epsilon).
  matrix normal(matrix x, bool centred, double epsilon) {
    for (int r = 0; r < x.rows; ++r) {
      int mean = t.make(0), square = t.make(0);
      if (centred)
        for (int c = 0; c < x.columns; ++c) mean = t.add(mean, t.scale(x(r, c), -1.0 / x.columns));
      for (int c = 0; c < x.columns; ++c) {
        x(r, c) = t.add(x(r, c), mean);
        square = t.add(square, t.scale(t.multiply(x(r, c), x(r, c)), 1.0 / x.columns));
      }
      int const inverse = power(t.add(square, t.make(epsilon)), -0.5);
      for (int c = 0; c < x.columns; ++c) x(r, c) = t.multiply(x(r, c), inverse);
    }
    matrix gain = take();
    for (int r = 0; r < x.rows; ++r)
      for (int c = 0; c < x.columns; ++c) x(r, c) = t.multiply(x(r, c), gain(0, c));
    return biased(x, centred);
  }
};

// ---- the layers ----

template <class... L>
matrix through(sample& s, matrix x, pp::detail::layers<L...>);

template <int C>
matrix run(sample& s, matrix ids, std::type_identity<pp::Embedding<C>>) {
  matrix table = s.take(), y{ids.columns, C, {}};
  for (int const id : ids.at)
    for (int c = 0; c < C; ++c) y.at.push_back(id < 0 ? s.t.make(0) : table(id, c));
  return y;
}
inline matrix run(sample& s, matrix x, std::type_identity<pp::Positions>) {
  return s.plus(x, s.take());
}
inline matrix run(sample& s, matrix x, std::type_identity<pp::SinusoidalPositions>) {
  for (int r = 0; r < x.rows; ++r)
    for (int c = 0; c < x.columns; ++c) {
      double const angle = r / std::pow(10000.0, double(c - c % 2) / x.columns);
      x(r, c) = s.t.add(x(r, c), s.t.make(c % 2 == 0 ? std::sin(angle) : std::cos(angle)));
    }
  return x;
}
template <int N, class... O>
matrix run(sample& s, matrix x, std::type_identity<pp::Linear<N, O...>>) {
  return s.biased(s.product(x, s.take()), (!std::is_same_v<O, pp::NoBias> && ...));
}
inline matrix run(sample& s, matrix x, std::type_identity<pp::Tanh>) {
  return s.each(x, [&](int i) {
    double const y = std::tanh(s.t.value(i));
    return s.t.map(i, y, 1 - y * y);
  });
}
inline matrix run(sample& s, matrix x, std::type_identity<pp::GELUTanh>) {
  return s.each(x, [&](int i) {
    double const a = std::sqrt(2 / 3.14159265358979323846), b = 0.044715, v = s.t.value(i);
    double const y = std::tanh(a * (v + b * v * v * v));
    return s.t.map(i, v * (1 + y) / 2, (1 + y) / 2 + v * (1 - y * y) / 2 * a * (1 + 3 * b * v * v));
  });
}
inline matrix run(sample& s, matrix x, std::type_identity<pp::Sigmoid>) {
  return s.each(x, [&](int i) {
    double const y = 1 / (1 + std::exp(-s.t.value(i)));
    return s.t.map(i, y, y * (1 - y));
  });
}
inline matrix run(sample& s, matrix x, std::type_identity<pp::GELU>) {
  return s.each(x, [&](int i) {
    double const v = s.t.value(i), phi = 0.5 * std::erfc(-v / std::sqrt(2.0));
    return s.t.map(i, v * phi,
                   phi + v * std::exp(-v * v / 2) / std::sqrt(2 * 3.14159265358979323846));
  });
}
inline matrix run(sample& s, matrix x, std::type_identity<pp::SiLU>) {
  return s.each(x, [&](int i) {
    double const v = s.t.value(i), y = 1 / (1 + std::exp(-v));
    return s.t.map(i, v * y, y * (1 + v * (1 - y)));
  });
}
inline matrix run(sample& s, matrix x, std::type_identity<pp::LayerNorm>) {
  return s.normal(x, true, 1e-5);
}
inline matrix run(sample& s, matrix x, std::type_identity<pp::RMSNorm>) {
  return s.normal(x, false, 1.1920929e-7);
}
template <int H, class... O>
matrix run(sample& s, matrix x, std::type_identity<pp::Attention<H, O...>>) {
  constexpr bool causal = (!std::is_same_v<O, pp::NotCausal> && ...),
                 bias = (!std::is_same_v<O, pp::NoBias> && ...);
  int const d = x.columns / H;
  matrix qkv = s.biased(s.product(x, s.take()), bias), y{x.rows, 0, {}};
  for (int r = 0; r < x.rows; ++r)
    for (int h = 0; h < H; ++h) {
      int const seen = causal ? r + 1 : x.rows;
      std::vector<int> weights;
      int sum = s.t.make(0);
      for (int k = 0; k < seen; ++k) {
        int score = s.t.make(0);
        for (int c = 0; c < d; ++c)
          score = s.t.add(score, s.t.multiply(qkv(r, h * d + c), qkv(k, (H + h) * d + c)));
        weights.push_back(s.exponential(s.t.scale(score, 1 / std::sqrt(double(d)))));
        sum = s.t.add(sum, weights.back());
      }
      int const inverse = s.power(sum, -1);
      for (int c = 0; c < d; ++c) {
        int mixed = s.t.make(0);
        for (int k = 0; k < seen; ++k)
          mixed =
              s.t.add(mixed, s.t.multiply(weights[std::size_t(k)], qkv(k, (2 * H + h) * d + c)));
        y.at.push_back(s.t.multiply(mixed, inverse));
      }
    }
  y.columns = x.columns;
  return s.biased(s.product(y, s.take()), bias);
}
template <int Numerator, int Denominator>
matrix run(sample& s, matrix x, std::type_identity<pp::Dropout<Numerator, Denominator>>) {
  double const p = double(Numerator) / Denominator;
  std::uint32_t const stream = s.dropouts++, blocks = std::uint32_t(x.columns + 3) / 4;
  for (int r = 0; r < x.rows; ++r)
    for (int c = 0; c < x.columns; ++c) {
      pp::detail::philox_block const counter{
          {std::uint32_t(r) * blocks + std::uint32_t(c) / 4, s.number, stream, s.step}};
      std::uint32_t const bits =
          pp::detail::philox(counter, std::uint32_t(s.seed), std::uint32_t(s.seed >> 32))
              .word[c % 4];
      x(r, c) = s.t.scale(x(r, c), bits / 4294967296.0 < p ? 0 : 1 / (1 - p));
    }
  return x;
}
template <class... L>
matrix run(sample& s, matrix x, std::type_identity<pp::Seq<L...>>) {
  return through(s, x, pp::detail::layers<L...>{});
}
template <int N, class... L>
matrix run(sample& s, matrix x, std::type_identity<pp::Repeat<N, L...>>) {
  for (int i = 0; i < N; ++i) x = through(s, x, pp::detail::layers<L...>{});
  return x;
}
template <class... L>
matrix run(sample& s, matrix x, std::type_identity<pp::Residual<L...>>) {
  return s.plus(x, through(s, x, pp::detail::layers<L...>{}));
}
template <pp::Text Key>
matrix run(sample& s, matrix x, std::type_identity<pp::Stash<Key>>) {
  return s.kept[std::string(Key.view())] = x;
}
template <pp::Text Key>
matrix run(sample& s, matrix x, std::type_identity<pp::Pop<Key>>) {
  return s.plus(x, s.kept[std::string(Key.view())]);
}
template <pp::Text Key>
matrix run(sample& s, matrix x, std::type_identity<pp::Pop<Key, pp::Concat>>) {
  matrix z = s.kept[std::string(Key.view())], y{x.rows, x.columns + z.columns, {}};
  for (int r = 0; r < x.rows; ++r)
    for (int c = 0; c < y.columns; ++c)
      y.at.push_back(c < x.columns ? x(r, c) : z(r, c - x.columns));
  return y;
}
template <pp::Text Name, class L>
matrix run(sample& s, matrix x, std::type_identity<pp::Named<Name, L>>) {
  s.named[std::string(Name.view())] = s.next;
  return run(s, x, std::type_identity<L>{});
}
/// The head of a language model: x table'.
template <pp::Text Name>
matrix run(sample& s, matrix x, std::type_identity<pp::Tied<Name>>) {
  weight const& table = s.weights[s.named[std::string(Name.view())]];
  return s.product(x, {table.rows, table.columns, table.at}, true);
}
template <class... L>
matrix through(sample& s, matrix x, pp::detail::layers<L...>) {
  ((x = run(s, x, std::type_identity<L>{})), ...);
  return x;
}

// ---- the trainer ----

/// AdamW. Its epsilon is large, so that gradients which are zero but for rounding (a bias of keys,
/// say) move nothing.
class trainer {
 public:
  static constexpr double rate = 0.02, decay = 0.1, epsilon = 1e-3;

  /// Begins with the parameters of another trainer.
  template <class Other>
  trainer(Other& other, std::uint64_t seed) : seed_(seed) {
    for (auto const& p : other.parameters()) {
      std::vector<double> const values(p.values.begin(), p.values.end());
      weights_.push_back({p.rows,
                          p.columns,
                          p.file_shape.size() > 1,
                          values,
                          std::vector<double>(values.size()),
                          std::vector<double>(values.size()),
                          {}});
    }
  }

  /// A step on samples of `inputs` with a label per row (or a target per element): the mean loss.
  template <class... L, class Input, class Label>
  double step(pp::detail::layers<L...> model, std::vector<Input> const& inputs,
              std::vector<Label> const& labels, int samples, int rows) {
    tape t;
    t.make(0);
    for (weight& w : weights_) {
      w.at.clear();
      for (double const value : w.values) w.at.push_back(t.make(value));
    }
    std::size_t const size = inputs.size() / std::size_t(samples);
    std::vector<int> losses;
    for (int n = 0; n < samples; ++n) {
      sample s{t, weights_, named_, seed_, std::uint32_t(steps_ + 1), std::uint32_t(n)};
      matrix x{rows, int(size) / rows, {}};
      if constexpr (std::is_same_v<Input, int>) x = {1, int(size), {}};
      for (std::size_t i = 0; i < size; ++i) {
        Input const given = inputs[std::size_t(n) * size + i];
        if constexpr (std::is_same_v<Input, int>)
          x.at.push_back(given);
        else
          x.at.push_back(t.make(given));
      }
      matrix y = through(s, x, model);
      std::size_t const first = std::size_t(n) * labels.size() / std::size_t(samples);
      for (int r = 0; r < y.rows; ++r) add_losses(s, y, r, labels, first, losses);
    }
    int loss = t.make(0);
    for (int const one : losses) loss = t.add(loss, t.scale(one, 1.0 / double(losses.size())));
    update(t.slopes(loss));
    return t.value(loss);
  }
  std::vector<double> values() const {
    std::vector<double> all;
    for (weight const& w : weights_) all.insert(all.end(), w.values.begin(), w.values.end());
    return all;
  }

 private:
  template <class Label>
  static void add_losses(sample& s, matrix& y, int r, std::vector<Label> const& labels,
                         std::size_t first, std::vector<int>& losses) {
    tape& t = s.t;
    if constexpr (std::is_same_v<Label, int>) {
      int const label = labels[first + std::size_t(r)];
      if (label < 0) return;
      int sum = t.make(0);
      for (int c = 0; c < y.columns; ++c) sum = t.add(sum, s.exponential(y(r, c)));
      losses.push_back(
          t.add(t.map(sum, std::log(t.value(sum)), 1 / t.value(sum)), t.scale(y(r, label), -1)));
    } else {
      for (int c = 0; c < y.columns; ++c) {
        int const difference =
            t.add(y(r, c), t.make(-labels[first + std::size_t(r * y.columns + c)]));
        losses.push_back(t.multiply(difference, difference));
      }
    }
  }
  void update(std::vector<double> const& slopes) {
    ++steps_;
    for (weight& w : weights_)
      for (std::size_t i = 0; i < w.values.size(); ++i) {
        double const g = slopes[std::size_t(w.at[i])];
        w.m[i] = 0.9 * w.m[i] + 0.1 * g;
        w.v[i] = 0.999 * w.v[i] + 0.001 * g * g;
        if (w.decays) w.values[i] *= 1 - rate * decay;
        double const m = w.m[i] / (1 - std::pow(0.9, steps_)),
                     v = w.v[i] / (1 - std::pow(0.999, steps_));
        w.values[i] -= rate * m / (std::sqrt(v) + epsilon);
      }
  }

  std::uint64_t seed_;
  std::vector<weight> weights_;
  std::map<std::string, std::size_t> named_;
  int steps_ = 0;
};

}  // namespace laws::plain
