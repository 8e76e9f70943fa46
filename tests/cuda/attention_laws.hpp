// SPDX-License-Identifier: BSL-1.0
//
// The CUDA kernel bodies of attention and its gradient on the CPU, without a model around them:
// against the definition in double.
#pragma once

#include "catch.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include <pipe/backend/cuda/lowering/lowering.hpp>

#include "cuda/run_bodies.hpp"

namespace attention_laws {

using namespace pp;
using namespace pp::detail;

struct sizes {
  int samples, queries, keys, heads, key_heads, head_size;
  bool causal = true, apart = false, turned = false;
  int padding = 0;  // so many ids at the end of sample b are -1, times b + 1
  score_attributes scores{};
};

/// The mask of a test whose scores are masked.
struct Checks {
  PIPE_HD static constexpr bool visible(int q, int k) {
    return q % 7 != 3 && k / 40 != 1 && (q + k) % 3 != 0;
  }
};
/// A layer type with it.
struct masked {
  using mask = Checks;
};

constexpr sizes not_causal(sizes s) { return s.causal = false, s; }
constexpr sizes kv_apart(sizes s) { return s.apart = true, s; }
constexpr sizes turned(sizes s) { return s.turned = true, s; }
constexpr sizes with(score_attributes scores, sizes s) { return s.scores = scores, s; }
constexpr sizes padded(int by, sizes s) { return s.padding = by, s; }

/// A pipeline of two groups: an attention, and its gradient.
template <class T, sizes Sizes>
struct attention_alone {
  static constexpr sizes s = Sizes;
  using element = T;
  using leaves = detail::layers<masked>;
  static constexpr int samples = s.samples;
  static constexpr detail::group group_at(int i) {
    detail::group g;
    g.anchor = i == 0 ? op_kind::attention : op_kind::attention_gradient;
    g.rows = s.queries, g.columns = s.heads * s.head_size;
    g.attributes = detail::attention_attributes{s.heads, s.key_heads, s.apart ? s.keys : 0,
                                                s.causal, s.scores};
    // operands: 0 q or qkv, 1 kv, 2 table, 3 ids, 4 y, 5 lse, 6 dy, 7 dq or dqkv, 8 dkv
    signed char const kv = s.apart ? 1 : -1, table = s.turned ? 2 : -1,
                      ids = s.padding > 0 ? 3 : -1;
    if (i == 0) {
      signed char const in[6] = {0, kv, table, ids, -1, -1};
      std::copy(in, in + 6, g.in);
      g.out[0] = 4, g.out[1] = 5;
    } else {
      signed char const in[6] = {6, 0, 4, 5, s.apart ? kv : table, ids};
      std::copy(in, in + 6, g.in);
      g.out[0] = i == 3 ? -1 : 7, g.out[1] = s.apart && i != 2 ? 8 : -1;
    }
    g.operands = 9;
    return g;
  }
};

/// Numbers of T, of a formula or NaN, in memory of exactly their size.
template <class T>
struct numbers {
  std::vector<T> items;
  explicit numbers(long count) : items(std::size_t(count)) {
    if (count > 0) std::memset(static_cast<void*>(items.data()), 0xff, sizeof(T) * items.size());
  }
  numbers(long count, unsigned seed, float scale) : items(std::size_t(count)) {
    for (T& x : items) {
      seed = seed * 1664525u + 1013904223u;
      x = T(scale * (float(seed >> 8) / float(1 << 23) - 1.0f));
    }
  }
  double operator[](long i) const { return double(float(items[std::size_t(i)])); }
};

/// The largest difference, relative to the largest wanted number; infinite if something is no
/// number.
inline double distance(std::vector<double> const& wanted, auto const& found) {
  double most = 0, scale = 1e-3;
  REQUIRE(wanted.size() == found.items.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    double const off = std::fabs(wanted[i] - found[long(i)]);
    if (!std::isfinite(off)) return HUGE_VAL;
    most = std::fmax(most, off);
    scale = std::fmax(scale, std::fabs(wanted[i]));
  }
  return most / scale;
}

template <class T, sizes Sizes>
struct run {
  static constexpr sizes s = Sizes;
  static constexpr long q_rows = long(s.samples) * s.queries, k_rows = long(s.samples) * s.keys;
  static constexpr long width = s.heads * s.head_size, key_width = s.key_heads * s.head_size;
  static constexpr long q_stride = s.apart ? width : width + 2 * key_width;
  static constexpr long k_stride = s.apart ? 2 * key_width : q_stride;
  numbers<T> q{q_rows * q_stride, 1, 3.0f}, kv{s.apart ? k_rows * k_stride : 0, 2, 1.5f};
  numbers<float> table{long(s.keys) * s.head_size};
  numbers<T> y{q_rows * width}, dy{q_rows * width, 4, 1.0f}, dq{q_rows * q_stride},
      dkv{s.apart ? k_rows * k_stride : 0};
  numbers<float> lse{q_rows * s.heads};
  std::vector<int> ids = std::vector<int>(std::size_t(k_rows), 3);

  run() {
    int const half = s.head_size / 2;
    for (int t = 0; t < s.keys; ++t)
      for (int c = 0; c < half; ++c) {
        float const angle = float(t * (c + 1)) / 7;
        table.items[std::size_t(t * s.head_size + c)] = std::cos(angle);
        table.items[std::size_t(t * s.head_size + half + c)] = std::sin(angle);
      }
    for (int b = 0; b < s.samples; ++b)
      for (int t = 0; t < s.keys; ++t)
        if (t >= s.keys - (b + 1) * s.padding) ids[std::size_t(b * s.keys + t)] = -1;
    if (s.keys > 2 && s.padding > 0) ids[1] = -1;  // no trailing one: a key
  }
  template <int G>
  void launch() {
    launch(cuda::lowered<attention_alone<T, Sizes>, G>{});
  }
  template <class... Body>
  void launch(cuda::kernel_list<Body...> kernels) {
    cuda::arguments a;
    void* const operands[9] = {q.items.data(),  kv.items.data(), table.items.data(),
                               ids.data(),      y.items.data(),  lse.items.data(),
                               dy.items.data(), dq.items.data(), dkv.items.data()};
    std::copy(operands, operands + 9, a.operand);
    numbers<double> space(cuda::workspace_of(kernels) / 8);
    a.workspace = space.items.data();
    on_host::run_bodies(kernels, a);
  }
  double key(long b, long t, int h, int c) const {
    long const at = (b * s.keys + t) * k_stride + h * s.head_size + c;
    return s.apart ? kv[at] : q[at + width];
  }
  double value(long b, long t, int h, int c) const { return key(b, t, h + s.key_heads, c); }
};

struct answers {
  std::vector<double> y, lse, dq, dkv;
};

/// Softmax attention and its gradients by their definitions, with the whole matrix of scores.
template <class T, sizes Sizes>
answers defined(run<T, Sizes> const& r) {
  constexpr sizes const& s = Sizes;
  constexpr int d = s.head_size, half = d / 2;
  using R = run<T, Sizes>;
  auto z = [](long n) { return std::vector<double>(std::size_t(n)); };
  answers w{z(R::q_rows * R::width), z(R::q_rows * s.heads), z(R::q_rows * R::q_stride),
            z(s.apart ? R::k_rows * R::k_stride : 0)};
  double const scale = 1 / std::sqrt(double(d));
  auto turn = [&](auto const& x, int t, double* to, double sign) {
    for (int c = 0; c < d; ++c) to[c] = x(c);
    for (int c = 0; s.turned && c < half; ++c) {
      double const cosine = r.table[t * d + c], sine = sign * r.table[t * d + half + c];
      to[c] = x(c) * cosine - x(half + c) * sine;
      to[half + c] = x(half + c) * cosine + x(c) * sine;
    }
  };
  for (int b = 0; b < s.samples; ++b) {
    int present = s.keys;
    while (s.padding > 0 && present > 0 && r.ids[std::size_t(b * s.keys + present - 1)] < 0)
      --present;
    for (int h = 0; h < s.heads; ++h) {
      int const kh = h / (s.heads / s.key_heads);
      std::vector<double> keys = z(long(s.keys) * d), dkeys = keys, dvalues = keys;
      for (int t = 0; t < s.keys; ++t)
        turn([&](int c) { return r.key(b, t, kh, c); }, t, &keys[std::size_t(t * d)], 1);
      for (int t = 0; t < s.queries; ++t) {
        int const place = t + s.keys - s.queries;
        auto const sees = [&](int j) {
          score_attributes const& rule = s.scores;
          return j < present && (!s.causal || j <= place || j < rule.prefix) &&
                 (rule.window == 0 || j > place - rule.window) &&
                 (!rule.is_masked || Checks::visible(place, j));
        };
        int const seen = present;
        double const cap = double(s.scores.cap),
                     fall = s.scores.has_alibi ? std::pow(2, -8.0 * (h + 1) / s.heads) : 0;
        long const row = long(b) * s.queries + t;
        std::vector<double> q = z(d), dq = q, y = q, p = z(seen), dp = p, by(p.size(), 1.0);
        turn([&](int c) { return r.q[row * R::q_stride + h * d + c]; }, t, q.data(), 1);
        double largest = -1e300, sum = 0, mean = 0;
        for (std::size_t j = 0; j < p.size(); ++j) {
          for (std::size_t c = 0; c < std::size_t(d); ++c) p[j] += q[c] * keys[j * d + c] * scale;
          if (cap > 0) {
            double const tanh = std::tanh(p[j] / cap);
            p[j] = cap * tanh;
            by[j] = 1 - tanh * tanh;
          }
          p[j] = sees(int(j)) ? p[j] - fall * std::abs(place - int(j)) : -HUGE_VAL;
          largest = std::max(largest, p[j]);
        }
        for (double& x : p) sum += x = std::exp(x - largest);
        if (sum == 0) continue;
        w.lse[std::size_t(row * s.heads + h)] = largest + std::log(sum);
        for (std::size_t j = 0; j < p.size(); ++j) {
          p[j] /= sum;
          for (int c = 0; c < d; ++c) {
            double const dy = r.dy[row * R::width + h * d + c], v = r.value(b, long(j), kh, c);
            w.y[std::size_t(row * R::width + h * d + c)] += p[j] * v;
            dvalues[j * d + std::size_t(c)] += p[j] * dy;
            dp[j] += dy * v;
          }
          mean += p[j] * dp[j];
        }
        for (std::size_t j = 0; j < p.size(); ++j)
          for (std::size_t c = 0; c < std::size_t(d); ++c) {
            double const ds = p[j] * (dp[j] - mean) * scale * by[j];
            dq[c] += ds * keys[j * d + c];
            dkeys[j * d + c] += ds * q[c];
          }
        turn([&](int c) { return dq[std::size_t(c)]; }, t,
             &w.dq[std::size_t(row * R::q_stride + h * d)], -1);
      }
      for (int t = 0; t < s.keys; ++t) {
        double back[128];
        turn([&](int c) { return dkeys[std::size_t(t * d + c)]; }, t, back, -1);
        std::vector<double>& to = s.apart ? w.dkv : w.dq;
        long const at = (long(b) * s.keys + t) * R::k_stride + (s.apart ? 0 : R::width) + kh * d;
        for (int c = 0; c < d; ++c) {
          to[std::size_t(at + c)] += back[c];
          to[std::size_t(at + R::key_width + c)] += dvalues[std::size_t(t * d + c)];
        }
      }
    }
  }
  return w;
}

template <class T, sizes Sizes>
void check(double tolerance = 1e-5) {
  constexpr sizes const& s = Sizes;
  CAPTURE(s.samples, s.queries, s.keys, s.heads, s.key_heads, s.head_size, s.causal, s.apart,
          s.turned, s.padding);
  run<T, Sizes> found;
  answers const wanted = defined(found);
  found.template launch<0>();
  CHECK(distance(wanted.y, found.y) < tolerance);
  CHECK(distance(wanted.lse, found.lse) < tolerance);
  found.template launch<1>();
  CHECK(distance(wanted.dq, found.dq) < tolerance);
  CHECK(distance(wanted.dkv, found.dkv) < tolerance);
  if constexpr (s.apart) {
    run<T, Sizes> half = found;
    half.dq = numbers<T>(long(half.dq.items.size()));
    half.dkv = numbers<T>(long(half.dkv.items.size()));
    half.template launch<2>();
    CHECK(distance(wanted.dq, half.dq) < tolerance);
    CHECK(std::isnan(half.dkv[0]));
    half.dq = numbers<T>(long(half.dq.items.size()));
    half.template launch<3>();
    CHECK(distance(wanted.dkv, half.dkv) < tolerance);
    CHECK(std::isnan(half.dq[0]));
  }
}

template <class T>
bool same(numbers<T> const& a, numbers<T> const& b) {
  return a.items.empty() ||
         std::memcmp(a.items.data(), b.items.data(), sizeof(T) * a.items.size()) == 0;
}

/// Kernels whose warps have one tile of rows, or two above each other, give the same bits; so do
/// all orders of threads.
template <class T, sizes Sizes>
void check_heights() {
  using P = attention_alone<T, Sizes>;
  run<T, Sizes> low;
  low.template launch<0>();
  low.template launch<1>();
  on_host::order = cuda::thread_order::interleaved;
  run<T, Sizes> high;
  if constexpr (Sizes.turned)
    high.launch(
        cuda::kernel_list<cuda::attention_rope<P, 0, false>, cuda::attention_forward<P, 0, 2>>{});
  if constexpr (!Sizes.turned) high.launch(cuda::kernel_list<cuda::attention_forward<P, 0, 2>>{});
  CHECK(same(low.y, high.y));
  CHECK(same(low.lse, high.lse));
  high.template launch<1>();
  CHECK(same(low.dq, high.dq));
  on_host::order = cuda::thread_order::ascending;
  high.dq = numbers<T>(long(high.dq.items.size()));
  high.dkv = numbers<T>(long(high.dkv.items.size()));
  using slopes = cuda::attention_slopes<P, 1>;
  using keys = cuda::attention_key_gradients<P, 1, 2>;
  using queries = cuda::attention_query_gradients<P, 1, 2>;
  if constexpr (Sizes.turned)
    high.launch(cuda::kernel_list<cuda::attention_rope<P, 1, false>, slopes, keys, queries>{});
  else
    high.launch(cuda::kernel_list<slopes, keys, queries>{});
  CHECK(same(low.dkv, high.dkv));
  CHECK(same(low.dq, high.dq));
}

}  // namespace attention_laws
