// SPDX-License-Identifier: BSL-1.0
//
// Attention and its gradients by their definitions, in double, and one run of the kernels on the
// same numbers.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <type_traits>
#include <vector>

#include <pipe/base/half.hpp>

#include "backend/host_kernels.hpp"

namespace attention_reference {

using namespace pp::host;

template <class V>
double real(V x) {
  if constexpr (std::is_same_v<V, pp::bf16>)
    return float(x);
  else
    return double(x);
}

/// One run of both kernels on values of type V, by one unit.
template <class T, class V = T>
struct run {
  attention_shape shape;
  extent q_columns, k_columns, q_rows, k_rows;
  exact<V> q, k, v, dout, out;
  exact<T> lse;
  exact<V> dq, dk, dv;
  exact<T> rotation;
  exact<int> ids;
  attention_operands<T, V> with;

  /// `rotated`: whether queries and keys are rotated, by angles that are not small. `padding`: in
  /// sample b, the last `padding` * b ids are -1.
  explicit run(attention_shape const& s, bool rotated = false, int padding = 0)
      : shape(s), q_columns(s.heads * s.head_size), k_columns(s.kv_heads * s.head_size),
        q_rows(s.samples * s.queries), k_rows(s.samples * s.keys), q(q_rows * q_columns, 1),
        k(k_rows * k_columns, 2), v(k_rows * k_columns, 3), dout(q_rows * q_columns, 4),
        out(q_rows * q_columns), lse(q_rows * s.heads), dq(q_rows * q_columns),
        dk(k_rows * k_columns), dv(k_rows * k_columns), rotation(s.keys * s.head_size), ids(k_rows),
        with{{{q.data(), q_columns}, {k.data(), k_columns}, {v.data(), k_columns}},
             T(1) / std::sqrt(static_cast<T>(s.head_size))} {
    for (extent i = 0; i < q_rows * q_columns; ++i)
      q[i] = V(T(real(q[i])) * T(4));  // so that softmax is far from uniform
    extent const half = s.head_size / 2;
    for (extent t = 0; t < s.keys; ++t)
      for (extent c = 0; c < half; ++c) {
        T const angle = T(t * (c + 1)) / T(7);
        rotation[t * s.head_size + c] = std::cos(angle);
        rotation[t * s.head_size + half + c] = std::sin(angle);
      }
    for (extent b = 0; b < s.samples; ++b)
      for (extent t = 0; t < s.keys; ++t) ids[b * s.keys + t] = t >= s.keys - b * padding ? -1 : 3;
    if (rotated) with.rotation = rotation.data();
    if (padding > 0) with.ids = ids.data();
  }
  extent present(extent b) const {
    extent n = 0;
    for (extent t = 0; t < shape.keys; ++t)
      n += with.ids == nullptr || ids[b * shape.keys + t] >= 0;
    return n;
  }

  template <class Kernels>
  void forward(Kernels) {
    set_functions<Kernels>();
    workspace space(attention_forward_workspace<T, V>(shape));
    Kernels::template attention_forward<T>(
        shape, with, attention_results<V, T>{{out.data(), q_columns}, lse.data()}, space.at);
  }
  template <class Kernels>
  void backward(Kernels, bool queries_too = true, bool keys_too = true) {
    set_functions<Kernels>();
    workspace space(attention_backward_workspace<T, V>(shape));
    Kernels::template attention_backward<T>(
        shape, with, attention_results<V const, T const>{{out.data(), q_columns}, lse.data()},
        positions<V const>{dout.data(), q_columns},
        attention_slices<V>{{queries_too ? dq.data() : nullptr, q_columns},
                            {keys_too ? dk.data() : nullptr, k_columns},
                            {keys_too ? dv.data() : nullptr, k_columns}},
        space.at);
  }

 private:
  template <class Kernels>
  void set_functions() {
    if constexpr (!in_place<T, V>) {
      value_products<T, V> const& of = Kernels::template products<T, V>();
      with.conversions = of.rows;
      with.sliced = of.sliced;
    }
  }
};

/// A mask with blocks of keys that no query sees, and queries that see nothing.
struct Checks {
  static constexpr bool visible(int q, int k) {
    return q % 7 != 3 && k / 130 != 1 && (q + k) % 3 != 0;
  }
};

struct reference {
  std::vector<double> out, lse, dq, dk, dv;
  /// If asked for, the sums of the absolute terms of out, dq, dk and dv, and the largest one of a
  /// score.
  struct sizes {
    std::vector<double> out, dq, dk, dv;
    double score = 0;
  } of_terms{};
};

/// Element c of one head's row, rotated by the angle of position t: cosines and sines as the table
/// has them.
template <class T, class V>
double rotated_element(run<T, V> const& given, exact<V> const& x, extent row, extent t, extent c) {
  if (given.with.rotation == nullptr) return real(x[row + c]);
  extent const d = given.shape.head_size, half = d / 2, i = c % half;
  double const cosine = static_cast<double>(given.rotation[t * d + i]),
               sine = static_cast<double>(given.rotation[t * d + half + i]);
  double const x1 = real(x[row + i]), x2 = real(x[row + half + i]);
  return c < half ? x1 * cosine - x2 * sine : x2 * cosine + x1 * sine;
}

/// Adds `gradient` of that element to the gradients of what it was made of.
template <class T, class V>
void rotate_gradient(run<T, V> const& given, std::vector<double>& dx, extent row, extent t,
                     extent c, double gradient) {
  auto at = [&](extent i) -> double& { return dx[static_cast<std::size_t>(row + i)]; };
  if (given.with.rotation == nullptr) {
    at(c) += gradient;
    return;
  }
  extent const d = given.shape.head_size, half = d / 2, i = c % half;
  double const cosine = static_cast<double>(given.rotation[t * d + i]),
               sine = static_cast<double>(given.rotation[t * d + half + i]);
  at(i) += gradient * (c < half ? cosine : sine);
  at(half + i) += gradient * (c < half ? -sine : cosine);
}

/// Softmax attention and its gradients by their definitions, with the whole matrix of scores.
template <class T, class V>
reference naive(run<T, V> const& given, bool with_sizes = false) {
  attention_shape const& s = given.shape;
  auto size = [](extent n) { return static_cast<std::size_t>(n); };
  reference r{std::vector<double>(given.out.count), std::vector<double>(given.lse.count),
              std::vector<double>(given.q.count), std::vector<double>(given.k.count),
              std::vector<double>(given.v.count)};
  reference::sizes& terms = r.of_terms;
  if (with_sizes) terms = {r.out, r.dq, r.dk, r.dv};
  extent const d = s.head_size;
  for (extent b = 0; b < s.samples; ++b)
    for (extent h = 0; h < s.heads; ++h)
      for (extent t = 0; t < s.queries; ++t) {
        extent const kv = h / (s.heads / s.kv_heads), place = t + s.keys - s.queries;
        // Whether key j is seen, and the score and its slope where the scaled product is z.
        auto const sees = [&](extent j) {
          bool const in_time = !s.causal || j <= place || j < s.scores.prefix,
                     in_window = s.scores.window == 0 || j > place - s.scores.window;
          return in_time && in_window && (s.mask == nullptr || Checks::visible(int(place), int(j)));
        };
        double const cap = double(s.scores.cap);
        auto const shaped = [&](double z, extent j) {
          double const capped = cap > 0 ? cap * std::tanh(z / cap) : z;
          return s.scores.has_alibi
                     ? capped - std::pow(2.0, -8.0 * double(h + 1) / double(s.heads)) *
                                    double(std::abs(place - j))
                     : capped;
        };
        auto const slope = [&](double z) {
          double const y = cap > 0 ? std::tanh(z / cap) : 0;
          return 1 - y * y;
        };
        extent const seen = given.present(b);
        extent const row = (b * s.queries + t) * given.q_columns + h * d;
        auto key = [&](extent j, extent c) {
          return (b * s.keys + j) * given.k_columns + kv * d + c;
        };
        std::vector<double> p(size(seen)), dp(size(seen)), z(size(seen));
        double sum = 0, mean = 0;
        for (extent j = 0; j < seen; ++j) {
          double score = 0;
          for (extent c = 0; c < d; ++c)
            score += rotated_element(given, given.q, row, place, c) *
                     rotated_element(given, given.k, key(j, 0), j, c);
          z[size(j)] = score * static_cast<double>(given.with.scale);
          sum += p[size(j)] = sees(j) ? std::exp(shaped(z[size(j)], j)) : 0;
        }
        if (sum == 0) continue;
        r.lse[size((b * s.queries + t) * s.heads + h)] = std::log(sum);
        for (extent j = 0; j < seen; ++j) {
          p[size(j)] /= sum;
          for (extent c = 0; c < d; ++c) {
            r.out[size(row + c)] += p[size(j)] * real(given.v[key(j, c)]);
            r.dv[size(key(j, c))] += p[size(j)] * real(given.dout[row + c]);
            dp[size(j)] += real(given.dout[row + c]) * real(given.v[key(j, c)]);
          }
          mean += p[size(j)] * dp[size(j)];
        }
        for (extent j = 0; j < seen; ++j) {
          double const ds = p[size(j)] * (dp[size(j)] - mean) *
                            static_cast<double>(given.with.scale) * slope(z[size(j)]);
          for (extent c = 0; c < d; ++c) {
            rotate_gradient(given, r.dq, row, place, c,
                            ds * rotated_element(given, given.k, key(j, 0), j, c));
            rotate_gradient(given, r.dk, key(j, 0), j, c,
                            ds * rotated_element(given, given.q, row, place, c));
          }
        }
        if (!with_sizes) continue;
        std::vector<double> dp_terms(size(seen));
        double mean_terms = 0;
        for (extent j = 0; j < seen; ++j) {
          for (extent c = 0; c < d; ++c) {
            terms.out[size(row + c)] += p[size(j)] * std::fabs(real(given.v[key(j, c)]));
            terms.dv[size(key(j, c))] += p[size(j)] * std::fabs(real(given.dout[row + c]));
            dp_terms[size(j)] += std::fabs(real(given.dout[row + c]) * real(given.v[key(j, c)]));
          }
          mean_terms += p[size(j)] * dp_terms[size(j)];
        }
        for (extent j = 0; j < seen; ++j) {
          double const scale = static_cast<double>(given.with.scale),
                       ds = p[size(j)] * (dp_terms[size(j)] + mean_terms) * scale;
          double score = 0;
          for (extent c = 0; c < d; ++c) {
            double const x = std::fabs(rotated_element(given, given.q, row, place, c)),
                         y = std::fabs(rotated_element(given, given.k, key(j, 0), j, c));
            score += x * y * scale;
            // The gradient of a rotated element is divided among two.
            for (extent i : {c, given.with.rotation != nullptr ? (c + d / 2) % d : c})
              terms.dq[size(row + i)] += ds * y, terms.dk[size(key(j, i))] += ds * x;
          }
          terms.score = std::fmax(terms.score, score);
        }
      }
  return r;
}

template <class T>
double distance(exact<T> const& got, std::vector<double> const& wanted) {
  double largest = 0;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    double const off = std::fabs(real(got.items[i]) - wanted[i]);
    if (!(off <= largest)) largest = off;
  }
  return largest;
}

}  // namespace attention_reference
