// SPDX-License-Identifier: BSL-1.0
//
// Kernels that reduce along rows: norms and losses, with their gradients. A row is in L1 cache
// between its passes. Each function is one copy for all groups, so that equal rows give equal bits
// wherever they are computed.

namespace pp::host::PIPE_ISA {

/// Sums over a row of what `term` says, for whole vectors first and then for the rest. Several
/// vectors of each sum are alive together, as an addition takes as long as several loads. Whole: n
/// is a multiple of the lanes, and nothing is compiled for a rest.
/// law: the order of additions depends on n and the lane count only
template <int Sums, bool Whole, class T, class Term>
void row_sums(int n, Term const& term, T (&total)[Sums]) {
  constexpr int Lanes = lanes<T>, Together = 4;
  vec<T> sum[Together][Sums] = {};
  int i = 0;
  for (; i + Together * Lanes <= n; i += Together * Lanes) {
#pragma GCC unroll 4
    for (int k = 0; k < Together; ++k) term.vector(sum[k], i + k * Lanes);
  }
  for (; i + Lanes <= n; i += Lanes) term.vector(sum[0], i);
  for (int s = 0; s < Sums; ++s)
    total[s] = fold_lanes<sum_of, T>((sum[0][s] + sum[1][s]) + (sum[2][s] + sum[3][s]));
  if constexpr (!Whole)
    for (; i < n; ++i) term.scalar(total, i);
}
template <class T, bool Whole, class Term>
T row_sum(int n, Term const& term) {
  T total[1];
  row_sums<1, Whole, T>(n, term, total);
  return total[0];
}

template <class T>
struct plain_term {
  T const* x;
  [[gnu::always_inline]] void vector(vec<T>* sum, int i) const { sum[0] += load(x + i); }
  [[gnu::always_inline]] void scalar(T* sum, int i) const { sum[0] += x[i]; }
};
template <class T>
struct square_term {
  T const* x;
  T mean;
  [[gnu::always_inline]] void vector(vec<T>* sum, int i) const {
    vec<T> const d = load(x + i) - mean;
    sum[0] += d * d;
  }
  [[gnu::always_inline]] void scalar(T* sum, int i) const {
    sum[0] += (x[i] - mean) * (x[i] - mean);
  }
};
template <class T>
struct product_term {
  T const *x, *y;
  [[gnu::always_inline]] void vector(vec<T>* sum, int i) const {
    sum[0] += load(x + i) * load(y + i);
  }
  [[gnu::always_inline]] void scalar(T* sum, int i) const { sum[0] += x[i] * y[i]; }
};
/// g and g * xhat, g = dy * gamma, xhat = (x - mean) * rstd
template <class T>
struct norm_gradient_term {
  T const *dy, *gamma, *x;
  T mean, rstd;
  [[gnu::always_inline]] void vector(vec<T>* sum, int i) const {
    vec<T> const g = load(dy + i) * load(gamma + i);
    sum[0] += g;
    sum[1] += g * ((load(x + i) - mean) * rstd);
  }
  [[gnu::always_inline]] void scalar(T* sum, int i) const {
    T const g = dy[i] * gamma[i];
    sum[0] += g;
    sum[1] += g * ((x[i] - mean) * rstd);
  }
};

/// 1 / sqrt(x), correctly rounded operations.
template <class T>
T reciprocal_sqrt(T x) {
  return T(1) / libm::sqrt(x);
}

/// y = (x - mean) * rstd * gamma (+ beta); statistics = {mean, rstd}. RMSNorm: mean = 0. Streams: y
/// is written past the caches.
template <class T, bool Whole, bool Streams>
PIPE_ONE_COPY void norm_row(int n, bool has_mean, T epsilon, T const* x, T const* gamma,
                            T const* beta, T* statistics, T* y) {
  T const mean = has_mean ? row_sum<T, Whole>(n, plain_term<T>{x}) / T(n) : T(0);
  T const rstd = reciprocal_sqrt(row_sum<T, Whole>(n, square_term<T>{x, mean}) / T(n) + epsilon);
  statistics[0] = mean;
  statistics[1] = rstd;
  int i = 0;
  for (; i + lanes<T> <= n; i += lanes<T>) {
    vec<T> v = (load(x + i) - mean) * rstd * load(gamma + i);
    if (beta != nullptr) v += load(beta + i);
    if constexpr (Streams)
      stream(y + i, v);
    else
      save(y + i, v);
  }
  if constexpr (!Whole)
    for (; i < n; ++i) y[i] = (x[i] - mean) * rstd * gamma[i] + (beta != nullptr ? beta[i] : T(0));
}

/// dx = rstd * (g - mean(g) - xhat * mean(g * xhat)), g = dy * gamma, xhat = (x - mean) * rstd.
/// RMSNorm: without mean(g).
template <class T, bool Whole>
PIPE_ONE_COPY void norm_gradient_row(int n, bool has_mean, T const* dy, T const* x, T const* gamma,
                                     T const* statistics, T* dx) {
  T const mean = statistics[0], rstd = statistics[1];
  T sums[2];
  row_sums<2, Whole, T>(n, norm_gradient_term<T>{dy, gamma, x, mean, rstd}, sums);
  T const mean_g = has_mean ? sums[0] / T(n) : T(0), mean_gx = sums[1] / T(n);
  int i = 0;
  for (; i + lanes<T> <= n; i += lanes<T>) {
    vec<T> const g = load(dy + i) * load(gamma + i), xhat = (load(x + i) - mean) * rstd;
    save(dx + i, (g - mean_g - xhat * mean_gx) * rstd);
  }
  if constexpr (!Whole)
    for (; i < n; ++i) dx[i] = (dy[i] * gamma[i] - mean_g - (x[i] - mean) * rstd * mean_gx) * rstd;
}

/// exp(x - top) for a whole row, in blocks of constant length.
template <int N, class T>
void shifted_exp(T const* x, T top, T* out) {
  PIPE_INDEPENDENT
  for (int i = 0; i < N; ++i) out[i] = math::exp(x[i] - top);
}

/// A row's exponentials, over that of the largest element; their sum; and the logarithm of the sum
/// of exp(x).
template <class T>
struct row_exponentials {
  T sum = 0;
  double log_of_all = 0;
};
template <int N, class T>
row_exponentials<T> exponentials_of(T const* x, T* e) {
  constexpr int L = lanes<T>, whole = N / L * L, rest = N - whole;
  T top = x[0];
  for (int i = 1; i < N; ++i) top = x[i] > top ? x[i] : top;
  for (int i = 0; i < whole; i += L) shifted_exp<L>(x + i, top, e + i);
  if constexpr (rest > 0) shifted_exp<rest>(x + whole, top, e + whole);
  T const sum = row_sum<T, (rest == 0)>(N, plain_term<T>{e});
  return {sum, libm::log(double(sum)) + double(top)};
}

/// One row of logits[V]: returns the sum over j of -t_j log softmax(x)_j, and z (log sum exp(x))^2
/// besides, where the target t is 1 - smoothing at the label, and smoothing / V everywhere. Writes
/// the gradient times `scale`, which may overwrite the logits. `e` has room for V elements. label
/// -1: loss 0 and gradient 0.
template <int N, class T>
PIPE_ONE_COPY double cross_entropy_row(T const* x, int label, T smoothing, T z, T scale,
                                       bool wants_gradient, T* e, T* gradient) {
  if (label < 0) {
    if (wants_gradient) std::memset(gradient, 0, sizeof(T) * N);
    return 0;
  }
  constexpr int L = lanes<T>, whole = N / L * L, rest = N - whole;
  auto const [sum, whole_log] = exponentials_of<N>(x, e);
  double loss = whole_log - double(x[label]) + double(z) * whole_log * whole_log;
  if (smoothing != T(0))
    loss += double(smoothing) *
            (double(x[label]) - double(row_sum<T, (rest == 0)>(N, plain_term<T>{x})) / N);
  if (wants_gradient) {
    T const factor = scale * (T(1) + T(2) * z * T(whole_log)) / sum,
            everywhere = scale * smoothing / T(N);
    for (int i = 0; i < whole; i += L) save(gradient + i, load(e + i) * factor - everywhere);
    for (int i = whole; i < N; ++i) gradient[i] = e[i] * factor - everywhere;
    gradient[label] -= scale * (T(1) - smoothing);
  }
  return loss;
}

/// The same where classes weigh w, as PyTorch has it: w_label times the loss without smoothing, and
/// then the sum over j of -(smoothing / V) w_j log softmax(x)_j instead of that without weights.
template <class Classes, int N, class T>
PIPE_ONE_COPY double weighted_cross_entropy_row(T const* x, int label, T smoothing, T z, T scale,
                                                bool wants_gradient, T* e, T* gradient) {
  if (label < 0) {
    if (wants_gradient) std::memset(gradient, 0, sizeof(T) * N);
    return 0;
  }
  T const own = Classes::template of<T>(label), kept = own * (T(1) - smoothing),
          each = smoothing / T(N);
  auto const [sum, whole_log] = exponentials_of<N>(x, e);
  double loss = double(kept) * (whole_log - double(x[label])) +
                double(own) * double(z) * whole_log * whole_log;
  if (smoothing != T(0))
    for (int i = 0; i < N; ++i)
      loss += double(each * Classes::template of<T>(i)) * (whole_log - double(x[i]));
  if (wants_gradient) {
    T const mass =
        kept +
        each * T(Classes::sum);  // of the targets: what the gradient of whole_log is multiplied by
    T const factor = scale * (mass + T(2) * z * own * T(whole_log)) / sum;
    for (int i = 0; i < N; ++i)
      gradient[i] = e[i] * factor - scale * (each * Classes::template of<T>(i));
    gradient[label] -= scale * kept;
  }
  return loss;
}

/// One row of a formula of the log-probability l of its label, and of further numbers: returns its
/// value and writes its slope by the logits times `scale`.
template <class Formula, int N, class T, class... More>
[[gnu::flatten]] PIPE_ONE_COPY double label_loss_row(T const* x, int label, T scale,
                                                     bool wants_gradient, T* e, T* gradient,
                                                     More... more) {
  if (label < 0) {
    if (wants_gradient) std::memset(gradient, 0, sizeof(T) * N);
    return 0;
  }
  constexpr int L = lanes<T>, whole = N / L * L;
  auto const [sum, whole_log] = exponentials_of<N>(x, e);
  T const l = T(double(x[label]) - whole_log);
  if (wants_gradient) {
    T const slope = Formula::slope(l, more...) * scale, factor = slope / sum;
    for (int i = 0; i < whole; i += L) save(gradient + i, -(load(e + i) * factor));
    for (int i = whole; i < N; ++i) gradient[i] = -(e[i] * factor);
    gradient[label] += slope;
  }
  return double(Formula::value(l, more...));
}

/// One row of (x - target)^2: returns the sum and writes 2 (x - target) * scale.
template <class T>
PIPE_ONE_COPY double squared_error_row(int n, T const* x, T const* target, T scale,
                                       bool wants_gradient, T* gradient) {
  double sum = 0;
  for (int i = 0; i < n; ++i) {
    T const d = x[i] - target[i];
    sum += double(d) * double(d);
    if (wants_gradient) gradient[i] = T(2) * d * scale;
  }
  return sum;
}

}  // namespace pp::host::PIPE_ISA
