// SPDX-License-Identifier: BSL-1.0
//
// Kernels along and over rows on their own: every kind of team, float and bf16, prologue and
// epilogue, against fp64.
#include "catch.hpp"

#include <memory>
#include <type_traits>

#include <pipe/base/half.hpp>

#include "cuda/one_group.hpp"

using namespace pp;
using cuda::thread_order;
using on_host::buffer;

namespace {

/// Operands 0..2 are read, 3 and 4 written; 5 is added before and the sum stored in 6; 7 is added
/// after and the sum stored in 8.
template <op_kind Kind, int Columns, bool Flag, bool Chained>
struct along {
  static constexpr detail::group make() {
    detail::group g;
    g.anchor = Kind;
    g.rows = 3;
    g.columns = Columns;
    if (Kind == op_kind::norm || Kind == op_kind::norm_gradient)
      g.attributes = detail::norm_attributes{.has_mean = Flag, .epsilon = 1e-5f};
    for (signed char i = 0; i < 3; ++i) g.in[i] = i;
    g.out[0] = 3;
    if (Kind == op_kind::norm) g.out[1] = 4;
    if (Kind == op_kind::norm_gradient) g.in[3] = 4;
    if (Kind == op_kind::norm && !Flag) g.in[2] = -1;
    if (Chained && detail::takes_prologue(Kind))
      g.prologue.push_back({op_kind::add, 0, 5, 6, false});
    if (Chained) g.epilogue.push_back({op_kind::add, 0, 7, 8, false});
    g.operands = 9;
    return g;
  }
};

/// What the group makes of a row, in fp64.
template <op_kind Kind, bool Flag>
void reference(int n, double const* x, double const* z, double const* gamma, double const* beta,
               double* statistics, double* y) {
  double mean = 0, square = 0, a = 0, b = 0;
  if constexpr (Kind == op_kind::norm) {
    for (int i = 0; i < n; ++i) mean += Flag ? x[i] / n : 0;
    for (int i = 0; i < n; ++i) square += (x[i] - mean) * (x[i] - mean) / n;
    double const rstd = 1 / std::sqrt(square + double(1e-5f));
    statistics[0] = mean, statistics[1] = rstd;
    for (int i = 0; i < n; ++i) y[i] = (x[i] - mean) * rstd * gamma[i] + (Flag ? beta[i] : 0);
  } else if constexpr (Kind == op_kind::norm_gradient) {  // x is dy, z is x
    for (int i = 0; i < n; ++i) {
      double const g = x[i] * gamma[i], xhat = (z[i] - statistics[0]) * statistics[1];
      a += Flag ? g / n : 0, b += g * xhat / n;
    }
    for (int i = 0; i < n; ++i)
      y[i] = (x[i] * gamma[i] - a - (z[i] - statistics[0]) * statistics[1] * b) * statistics[1];
  } else if constexpr (Kind == op_kind::softmax) {
    for (int i = 0; i < n; ++i) a += std::exp(x[i]);
    for (int i = 0; i < n; ++i) y[i] = std::exp(x[i]) / a;
  } else {
    for (int i = 0; i < n; ++i) a += x[i] * z[i];
    for (int i = 0; i < n; ++i) y[i] = z[i] * (x[i] - a);
  }
}

template <class T, op_kind Kind, int Columns, bool Flag = true, bool Chained = true>
void check_along(thread_order order) {
  using P = on_host::one_group<T, along<Kind, Columns, Flag, Chained>, 2>;
  constexpr std::size_t n = Columns, rows = 6;
  constexpr bool before = Chained && detail::takes_prologue(Kind),
                 is_gradient = Kind == op_kind::norm_gradient;
  auto x = buffer<T>::random(rows * n, 1), z = buffer<T>::random(rows * n, 2),
       add = buffer<T>::random(rows * n, 3), after = buffer<T>::random(rows * n, 4),
       gamma = buffer<T>::random(n, 5), beta = buffer<T>::random(n, 6);
  buffer<T> y(rows * n), sum(rows * n), end(rows * n);
  auto statistics = is_gradient ? buffer<float>::random(2 * rows, 7) : buffer<float>(2 * rows);
  bool const is_norm = Kind == op_kind::norm;
  cuda::arguments a;
  void* const operands[]{x.data(),
                         is_norm ? gamma.data() : z.data(),
                         is_norm ? beta.data() : gamma.data(),
                         y.data(),
                         statistics.data(),
                         add.data(),
                         sum.data(),
                         after.data(),
                         end.data()};
  for (int i = 0; i < 9; ++i) a.operand[i] = operands[i];
  on_host::run_alone<P>(a, order);

  std::vector<double> ys, sums, ends, all_statistics;
  for (std::size_t r = 0; r < rows; ++r) {
    double numbers[2]{};
    if (is_gradient)
      for (std::size_t k = 0; k < 2; ++k) numbers[k] = statistics.value(2 * r + k);
    std::vector<double> row(n), other(n), scale(n), shift(n), made(n);
    for (std::size_t i = 0; i < n; ++i) {
      row[i] = double(
          cuda::as_stored<T>(float(x.value(r * n + i) + (before ? add.value(r * n + i) : 0))));
      sums.push_back(row[i]);
      other[i] = z.value(r * n + i), scale[i] = gamma.value(i), shift[i] = beta.value(i);
    }
    reference<Kind, Flag>(Columns, row.data(), other.data(), scale.data(), shift.data(), numbers,
                          made.data());
    for (std::size_t i = 0; i < n; ++i) {
      ys.push_back(made[i]);
      ends.push_back(made[i] + after.value(r * n + i));
    }
    all_statistics.insert(all_statistics.end(), numbers, numbers + 2);
  }
  INFO(detail::name_of(Kind) << " " << Columns);
  CHECK(on_host::difference(y, ys) < on_host::tolerance<T>);
  if constexpr (before) CHECK(on_host::difference(sum, sums) < on_host::tolerance<T>);
  if constexpr (Chained) CHECK(on_host::difference(end, ends) < on_host::tolerance<T>);
  if (is_norm) CHECK(on_host::difference(statistics, all_statistics) < 1e-5);
}

template <class T, op_kind Kind>
void check_widths() {
  check_along<T, Kind, 1>(thread_order::ascending);
  check_along<T, Kind, 20>(thread_order::descending);
  check_along<T, Kind, 257, false>(thread_order::interleaved);
  check_along<T, Kind, 1000, true, false>(thread_order::descending);
  check_along<T, Kind, 4100, false>(thread_order::descending);
  check_along<T, Kind, 20000>(thread_order::interleaved);
  check_along<T, Kind, 36002>(thread_order::descending);
}

template <int Rows, int Columns>
struct bias_of_rows {
  static constexpr detail::group make() {
    detail::group g;
    g.anchor = op_kind::bias_gradient;
    g.rows = Rows, g.columns = Columns;
    g.in[0] = 0, g.out[0] = 1;
    g.operands = 2;
    return g;
  }
};

/// The numbers that `at` gives for n rows, added as a block of column_sums_kernel adds them: each
/// of `apart` threads its rows in order, then threads by halves.
template <class At>
float sum_by_halves(int first, int n, int step, int apart, At at) {
  std::vector<float> sum(std::size_t(apart), 0.0f);
  for (int i = 0; i < apart; ++i)
    for (int r = first + i; r < n; r += step) sum[std::size_t(i)] += at(r);
  for (int half = apart / 2; half > 0; half /= 2)
    for (int i = 0; i < half; ++i) sum[std::size_t(i)] += sum[std::size_t(i + half)];
  return sum[0];
}

template <int Rows, int Columns, int Chunks>
void check_turns() {
  using P = on_host::one_group<float, bias_of_rows<Rows, Columns>, 1>;
  using kernel = cuda::column_sums_kernel<cuda::bias_source<P, 0>>;
  STATIC_REQUIRE(kernel::chunks == Chunks);
  constexpr int apart = kernel::rows_at_once;
  auto dy = buffer<float>::random(std::size_t(Rows) * Columns, 1);
  buffer<float> db(Columns);
  cuda::arguments a;
  a.operand[0] = dy.data(), a.operand[1] = db.data();
  on_host::run_alone<P>(a, thread_order::descending);
  for (int c = 0; c < Columns; ++c) {
    float const expected = sum_by_halves(0, Chunks, apart, apart, [&](int chunk) {
      return sum_by_halves(chunk * apart, Rows, Chunks * apart, apart,
                           [&](int r) { return dy[std::size_t(r * Columns + c)]; });
    });
    CHECK(db[std::size_t(c)] == expected);
  }
}

template <int Columns, int Smoothing, int Z>
struct classes {
  static constexpr detail::group make() {
    detail::group g;
    g.anchor = op_kind::cross_entropy;
    g.rows = 2;
    g.columns = Columns;
    g.attributes = detail::cross_entropy_attributes{float(Smoothing) / 10, float(Z) / 10};
    g.in[0] = 0, g.in[1] = 1, g.out[0] = 2;
    g.operands = 3;
    return g;
  }
};

template <class T, int Columns, int Smoothing = 0, int Z = 0>
void check_cross_entropy(thread_order order, bool in_place, bool wants_gradient = true) {
  using P = on_host::one_group<T, classes<Columns, Smoothing, Z>, 4>;
  constexpr std::size_t n = Columns, rows = 8, valid = 6;
  auto x = buffer<T>::random(rows * n, 1, 9);
  if (Smoothing == 0) x[2 * n] = T(-HUGE_VALF);  // a class that is ruled out
  buffer<int> labels(rows);
  int const of[]{int(n) - 1, -1, int(n / 2), 0, int(n / 3), 1, 0, int(n) - 1};
  for (std::size_t r = 0; r < rows; ++r) labels[r] = of[r];
  buffer<double> loss(rows);
  buffer<T> gradient(rows * n);
  double const scale = 0.125, s = double(float(Smoothing) / 10), z = double(float(Z) / 10);
  std::vector<double> losses(rows), gradients(rows * n);
  for (std::size_t r = 0; r < valid; ++r) {
    if (labels[r] < 0) continue;
    auto const at = [&](std::size_t i) { return x.value(r * n + i); };
    double sum = 0, plain = 0;
    for (std::size_t i = 0; i < n; ++i) sum += std::exp(at(i)), plain += at(i);
    double const whole = std::log(sum), label = at(std::size_t(labels[r]));
    losses[r] = whole - label + z * whole * whole;
    if (Smoothing != 0) losses[r] += s * (label - plain / double(n));
    for (std::size_t i = 0; i < n; ++i)
      gradients[r * n + i] = scale * (std::exp(at(i)) / sum * (1 + 2 * z * whole) - s / double(n) -
                                      (int(i) == labels[r] ? 1 - s : 0));
  }
  cuda::arguments a;
  a.operand[0] = x.data(), a.operand[1] = labels.data(),
  a.operand[2] = in_place ? x.data() : gradient.data();
  a.loss = loss.data();
  auto const state = std::make_unique<cuda::run_state>();
  state->loss_scale = float(scale);
  a.run = state.get();
  a.valid_samples = 3;
  a.wants_gradient = wants_gradient;
  on_host::run_alone<P>(a, order);
  INFO(Columns << " classes");
  CHECK(on_host::difference(loss, losses) < 1e-6);
  if (wants_gradient)
    CHECK(on_host::difference(in_place ? x : gradient, gradients) < on_host::tolerance<T>);
}

template <class T>
void check_classes() {
  check_cross_entropy<T, 3>(thread_order::ascending, false);
  check_cross_entropy<T, 10, 1, 2>(thread_order::interleaved, true);
  check_cross_entropy<T, 129>(thread_order::descending, true);
  check_cross_entropy<T, 1024, 3>(thread_order::ascending, true);
  check_cross_entropy<T, 1024>(thread_order::descending, false, false);
  check_cross_entropy<T, 26000, 0, 1>(thread_order::interleaved, true);
  check_cross_entropy<T, 50304>(thread_order::descending, true);
  check_cross_entropy<T, 50257, 1>(thread_order::interleaved, true);
  check_cross_entropy<T, 70000, 0, 1>(thread_order::interleaved, true);
}

template <op_kind Kind, int Rows, int Columns>
struct over {
  static constexpr detail::group make() {
    detail::group g;
    g.anchor = Kind;
    g.rows = Rows;
    g.columns = Columns;
    for (signed char i = 0; i < 3; ++i) g.in[i] = i;
    g.out[0] = 3;
    g.out[1] = Kind == op_kind::norm_parameter_gradient && Columns % 2 == 0 ? 4 : -1;
    g.operands = 5;
    return g;
  }
};

template <class T, op_kind Kind, int Rows, int Columns, int Samples>
void check_over(thread_order order, bool accumulate) {
  using P = on_host::one_group<T, over<Kind, Rows, Columns>, Samples>;
  constexpr bool is_table = Kind == op_kind::row_bias_gradient,
                 is_norm = Kind == op_kind::norm_parameter_gradient;
  constexpr std::size_t rows = is_table ? Samples : Rows * Samples,
                        n = is_table ? Rows * Columns : Columns;
  auto dy = buffer<T>::random(rows * n, 1), x = buffer<T>::random(rows * n, 2);
  auto statistics = buffer<float>::random(2 * rows, 3);
  auto first = accumulate ? buffer<float>::random(n, 4) : buffer<float>(n);
  auto second = accumulate ? buffer<float>::random(n, 5) : buffer<float>(n);
  std::vector<double> firsts(n), seconds(n);
  for (std::size_t c = 0; c < n; ++c) {
    if (accumulate) firsts[c] = first.value(c), seconds[c] = second.value(c);
    for (std::size_t r = 0; r < rows; ++r) {
      double const d = dy.value(r * n + c);
      firsts[c] +=
          is_norm ? d * (x.value(r * n + c) - statistics.value(2 * r)) * statistics.value(2 * r + 1)
                  : d;
      seconds[c] += d;
    }
  }
  cuda::arguments a;
  void* const operands[]{dy.data(), x.data(), statistics.data(), first.data(), second.data()};
  for (int i = 0; i < 5; ++i) a.operand[i] = operands[i];
  a.accumulate = accumulate;
  on_host::run_alone<P>(a, order);
  INFO(detail::name_of(Kind) << " " << rows << " x " << n);
  CHECK(on_host::difference(first, firsts) < 1e-5);
  if (P::group_at(0).out[1] >= 0) CHECK(on_host::difference(second, seconds) < 1e-5);
}

template <class T>
void check_sums() {
  check_over<T, op_kind::bias_gradient, 1, 7, 1>(thread_order::ascending, false);
  check_over<T, op_kind::bias_gradient, 300, 1, 33>(thread_order::descending, true);
  check_over<T, op_kind::bias_gradient, 101, 264, 29>(thread_order::interleaved, true);
  check_over<T, op_kind::bias_gradient, 7, 1030, 31>(thread_order::descending, false);
  check_over<T, op_kind::row_bias_gradient, 13, 40, 5>(thread_order::descending, true);
  check_over<T, op_kind::row_bias_gradient, 3, 6, 700>(thread_order::interleaved, false);
  check_over<T, op_kind::norm_parameter_gradient, 43, 768, 8>(thread_order::descending, true);
  check_over<T, op_kind::norm_parameter_gradient, 5, 77, 3>(thread_order::interleaved, false);
  check_over<T, op_kind::norm_parameter_gradient, 900, 12, 7>(thread_order::interleaved, false);
}

template <op_kind Kind, int Columns, int Inner, int First, bool IsParameter = false>
struct copied {
  static constexpr detail::group make() {
    detail::group g;
    g.anchor = Kind;
    g.rows = 3;
    g.columns = Columns;
    if (Kind == op_kind::concat)
      g.attributes = detail::concat_attributes{Inner, IsParameter};
    else
      g.attributes = detail::slice_attributes{Inner, First};
    g.in[0] = 0, g.in[1] = 1, g.out[0] = 2;
    g.operands = 3;
    return g;
  }
};

template <class T, int Left, int Right>
void check_copies() {
  constexpr std::size_t rows = 12, left = Left, right = Right, n = left + right;
  auto x = buffer<T>::random(rows * left, 1), z = buffer<T>::random(rows * right, 2);
  buffer<T> y(rows * n), u(rows * left), v(rows * right);
  cuda::arguments a;
  a.operand[0] = x.data(), a.operand[1] = z.data(), a.operand[2] = y.data();
  auto const concatenate = [&]<bool IsParameter>(std::bool_constant<IsParameter>) {
    using both = copied<op_kind::concat, Left + Right, Left, 0, IsParameter>;
    on_host::run_alone<on_host::one_group<T, both, 4>>(a, thread_order::descending);
    for (std::size_t r = 0; r < rows; ++r) {
      CHECK(std::memcmp(&y[r * n], &x[IsParameter ? 0 : r * left], sizeof(T) * left) == 0);
      CHECK(std::memcmp(&y[r * n + left], &z[r * right], sizeof(T) * right) == 0);
    }
  };
  concatenate(std::true_type{});
  concatenate(std::false_type{});
  a.operand[0] = y.data(), a.operand[2] = u.data();
  on_host::run_alone<on_host::one_group<T, copied<op_kind::slice, Left, Left + Right, 0>, 4>>(
      a, thread_order::interleaved);
  a.operand[2] = v.data();
  on_host::run_alone<on_host::one_group<T, copied<op_kind::slice, Right, Left + Right, Left>, 4>>(
      a, thread_order::ascending);
  CHECK(std::memcmp(u.data(), x.data(), sizeof(T) * rows * left) == 0);
  CHECK(std::memcmp(v.data(), z.data(), sizeof(T) * rows * right) == 0);
}

/// Operands 0 and 1 are read, 2 is written; 3 is added after, and the sum stored in 4.
template <op_kind Kind, int Columns>
struct products {
  static constexpr detail::group make() {
    detail::group g;
    g.anchor = Kind;
    g.rows = 3;
    g.columns = Kind == op_kind::row_dot ? 1 : Columns;
    if (Kind == op_kind::row_dot) g.attributes = detail::contraction_attributes{Columns};
    g.in[0] = 0, g.in[1] = 1;
    g.out[0] = 2;
    g.epilogue.push_back({op_kind::add, 0, 3, 4, false});
    g.operands = 5;
    return g;
  }
};

template <class T, int Columns>
void check_products(thread_order order) {
  constexpr std::size_t rows = 6, n = Columns;
  auto x = buffer<T>::random(rows * n, 1), z = buffer<T>::random(rows * n, 2),
       s = buffer<T>::random(rows, 3), after = buffer<T>::random(rows * n, 4);
  buffer<T> dot(rows), dot_end(rows), scaled(rows * n), scaled_end(rows * n);
  std::vector<double> dots, dot_ends, scaled_rows, ends;
  for (std::size_t r = 0; r < rows; ++r) {
    double sum = 0;
    for (std::size_t i = r * n; i < (r + 1) * n; ++i) {
      sum += x.value(i) * z.value(i);
      scaled_rows.push_back(x.value(i) * s.value(r));
      ends.push_back(scaled_rows.back() + after.value(i));
    }
    dots.push_back(sum);
    dot_ends.push_back(sum + after.value(r));
  }
  cuda::arguments a;
  a.operand[0] = x.data(), a.operand[1] = z.data(), a.operand[2] = dot.data();
  a.operand[3] = after.data(), a.operand[4] = dot_end.data();
  on_host::run_alone<on_host::one_group<T, products<op_kind::row_dot, Columns>, 2>>(a, order);
  a.operand[1] = s.data(), a.operand[2] = scaled.data(), a.operand[4] = scaled_end.data();
  on_host::run_alone<on_host::one_group<T, products<op_kind::row_scale, Columns>, 2>>(a, order);
  INFO(Columns << " columns");
  CHECK(on_host::difference(dot, dots) < on_host::tolerance<T>);
  CHECK(on_host::difference(dot_end, dot_ends) < on_host::tolerance<T>);
  CHECK(on_host::difference(scaled, scaled_rows) < on_host::tolerance<T>);
  CHECK(on_host::difference(scaled_end, ends) < on_host::tolerance<T>);
}
template <class T>
void check_products() {
  check_products<T, 1>(thread_order::ascending);
  check_products<T, 20>(thread_order::descending);
  check_products<T, 257>(thread_order::interleaved);
  check_products<T, 4100>(thread_order::descending);
  check_products<T, 20000>(thread_order::interleaved);
}

}  // namespace

TEST_CASE("products along rows agree with fp64", "[cuda]") {
  on_host::again_to_the_bit(check_products<float>);
  on_host::again_to_the_bit(check_products<bf16>);
}
TEST_CASE("kernels along rows agree with fp64", "[cuda]") {
  on_host::again_to_the_bit(check_widths<float, op_kind::norm>);
  on_host::again_to_the_bit(check_widths<float, op_kind::norm_gradient>);
  on_host::again_to_the_bit(check_widths<float, op_kind::softmax>);
  on_host::again_to_the_bit(check_widths<float, op_kind::softmax_gradient>);
  on_host::again_to_the_bit(check_widths<bf16, op_kind::norm>);
  on_host::again_to_the_bit(check_widths<bf16, op_kind::norm_gradient>);
  on_host::again_to_the_bit(check_widths<bf16, op_kind::softmax>);
  on_host::again_to_the_bit(check_widths<bf16, op_kind::softmax_gradient>);
}
TEST_CASE("cross-entropy agrees with fp64", "[cuda]") {
  on_host::again_to_the_bit(check_classes<float>);
  on_host::again_to_the_bit(check_classes<bf16>);
}
TEST_CASE("sums over rows agree with fp64", "[cuda][small]") {
  on_host::again_to_the_bit(check_sums<float>);
  on_host::again_to_the_bit(check_sums<bf16>);
}
TEST_CASE("chunks of a sum over rows take rows in turn", "[cuda][small]") {
  check_turns<77, 24, 1>();
  check_turns<1000, 24, 3>();
  check_turns<2100, 5, 8>();
}
TEST_CASE("rows side by side and apart again are the same bits", "[cuda][small]") {
  check_copies<float, 8, 12>();
  check_copies<float, 3, 6>();
  check_copies<bf16, 8, 24>();
  check_copies<bf16, 5, 1>();
}
