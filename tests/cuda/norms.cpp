// SPDX-License-Identifier: BSL-1.0
//
// Norms over pixels and over neighbouring channels through their CUDA kernel bodies, against fp64:
// groups of a sample's channels, channels of a micro-batch, responses.
#include "catch.hpp"

#include "cuda/one_group.hpp"

using namespace pp;
using cuda::thread_order;
using on_host::buffer;

namespace {

/// A group of this kind with operands 0 to `Ins` - 1, results behind them, and an epilogue
/// that adds the last operand but one and stores to the last.
template <op_kind Kind, int Rows, int Columns, class Attributes, int Ins, int Outs, bool Chained>
struct one_norm {
  static constexpr detail::group make() {
    detail::group g;
    g.anchor = Kind;
    g.rows = Rows, g.columns = Columns;
    g.attributes = Attributes::value;
    for (signed char i = 0; i < Ins; ++i) g.in[i] = i;
    for (signed char i = 0; i < Outs; ++i) g.out[i] = static_cast<signed char>(Ins + i);
    if (Chained) g.epilogue.push_back({op_kind::add, 0, Ins + Outs, Ins + Outs + 1, false});
    g.operands = Ins + Outs + 2 * Chained;
    return g;
  }
};

/// Lists of numbers as the operands of a launch.
struct operands {
  cuda::arguments a;
  int index = 0;
  template <class... Buffers>
  explicit operands(Buffers&... all) {
    ((a.operand[index++] = all.data()), ...);
  }
};

/// x as the sum of a large constant for each column, and noise.
template <class T>
buffer<T> offset_numbers(std::size_t size, std::size_t columns, int stream) {
  auto x = buffer<T>::random(size, stream);
  for (std::size_t i = 0; i < size; ++i) x[i] = T(float(x.value(i)) + float(i % columns % 5) * 3);
  return x;
}

struct moments {
  double mean = 0, square = 0;
  double rstd(double epsilon) const { return 1 / std::sqrt(square + epsilon); }
};
/// Of the numbers with begin <= i < end for which is_in(i).
template <class T, class In>
moments moments_of(buffer<T> const& x, In is_in, std::size_t begin, std::size_t end) {
  moments m;
  double n = 0;
  for (std::size_t i = begin; i < end; ++i)
    if (is_in(i)) m.mean += x.value(i), n += 1;
  m.mean /= n;
  for (std::size_t i = begin; i < end; ++i)
    if (is_in(i)) m.square += (x.value(i) - m.mean) * (x.value(i) - m.mean) / n;
  return m;
}

template <int Groups>
struct in_groups {
  static constexpr detail::group_attributes value{Groups, 1e-3f};
};

template <class T, int Rows, int Columns, int Groups, int Samples = 3>
void check_groups() {
  using of = in_groups<Groups>;
  constexpr std::size_t n = Columns, rows = Rows, width = n / Groups, size = Samples * rows * n;
  auto x = offset_numbers<T>(size, n, 1), dy = buffer<T>::random(size, 2),
       gamma = buffer<T>::random(n, 3), beta = buffer<T>::random(n, 4),
       z = buffer<T>::random(size, 5);
  buffer<T> y(size), end(size), dx(size);
  buffer<float> statistics(2 * Samples * Groups), dgamma(n), dbeta(n);

  std::vector<double> ys(size), ends(size), dxs(size), all, dgammas(n), dbetas(n);
  for (std::size_t s = 0; s < Samples; ++s)
    for (std::size_t k = 0; k < Groups; ++k) {
      auto const is_in = [&](std::size_t i) { return i / (rows * n) == s && i % n / width == k; };
      moments const m = moments_of(x, is_in, 0, x.size());
      double const rstd = m.rstd(double(of::value.epsilon)), count = double(rows * width);
      all.push_back(m.mean), all.push_back(rstd);
      double mean_g = 0, mean_gx = 0;
      for (int pass = 0; pass < 2; ++pass)
        for (std::size_t i = 0; i < size; ++i) {
          if (!is_in(i)) continue;
          double const xhat = (x.value(i) - m.mean) * rstd, g = dy.value(i) * gamma.value(i % n);
          if (pass == 0) {
            ys[i] = xhat * gamma.value(i % n) + beta.value(i % n);
            ends[i] = ys[i] + z.value(i);
            mean_g += g / count, mean_gx += g * xhat / count;
            dgammas[i % n] += dy.value(i) * xhat, dbetas[i % n] += dy.value(i);
          } else {
            dxs[i] = rstd * (g - mean_g - xhat * mean_gx);
          }
        }
    }
  INFO(Rows << " rows of " << Columns << " in " << Groups);
  on_host::run_alone<
      on_host::one_group<T, one_norm<op_kind::group_norm, Rows, Columns, of, 3, 2, true>, Samples>>(
      operands(x, gamma, beta, y, statistics, z, end).a, thread_order::descending);
  CHECK(on_host::difference(y, ys) < on_host::tolerance<T>);
  CHECK(on_host::difference(end, ends) < on_host::tolerance<T>);
  CHECK(on_host::difference(statistics, all) < 1e-5);
  on_host::run_alone<on_host::one_group<
      T, one_norm<op_kind::group_norm_gradient, Rows, Columns, of, 4, 1, false>, Samples>>(
      operands(dy, x, gamma, statistics, dx).a, thread_order::interleaved);
  CHECK(on_host::difference(dx, dxs) < on_host::tolerance<T>);
  on_host::run_alone<on_host::one_group<
      T, one_norm<op_kind::group_parameter_gradient, Rows, Columns, of, 3, 2, false>, Samples>>(
      operands(dy, x, statistics, dgamma, dbeta).a, thread_order::interleaved);
  CHECK(on_host::difference(dgamma, dgammas) < 1e-5);
  CHECK(on_host::difference(dbeta, dbetas) < 1e-5);
}

template <int Rows, bool IsConstant, int Group>
struct of_batch {
  static constexpr detail::batch_attributes value{Rows, 1e-3f, IsConstant, Group};
};

/// The first Valid samples are real, the others fill up the micro-batch. Group: samples of
/// SyncOver, or 0.
template <class T, int Rows, int Columns, bool IsConstant = false, int Samples = 3,
          int Valid = Samples - 1, int Group = 0>
void check_batch() {
  using of = of_batch<Rows, IsConstant, Group>;
  constexpr int samples = Samples, valid = Valid;
  constexpr std::size_t n = Columns, size = std::size_t(samples) * Rows * n,
                        real = std::size_t(valid) * Rows * n,
                        each = std::size_t(of::value.group_size(samples)) * Rows * n,
                        groups = std::size_t(of::value.groups(samples));
  auto x = offset_numbers<T>(size, n, 1), dy = buffer<T>::random(size, 2),
       gamma = buffer<T>::random(n, 3), beta = buffer<T>::random(n, 4);
  auto running = buffer<float>::random(n, 5), spread = buffer<float>::random(n, 6);
  for (std::size_t c = 0; c < n; ++c) spread[c] = 1 + std::fabs(spread[c]);
  buffer<T> y(size), dx(size);
  buffer<float> statistics(groups * 3 * n), sums(groups * 2 * n), dgamma(n), dbeta(n), mean_sum(n),
      square_sum(n);

  std::vector<double> all(groups * 3 * n), ys(size), dxs(size), both(groups * 2 * n), means(n, 0.5),
      squares(n, 0.5), dgammas(n), dbetas(n);
  for (std::size_t g = 0; g < groups; ++g)
    for (std::size_t c = 0; c < n; ++c) {
      std::size_t const begin = g * each, end = std::min(begin + each, std::max(begin, real));
      double const count = double((end - begin) / n);
      moments m{};
      if (IsConstant)
        m = {running.value(c), spread.value(c)};
      else if (count > 0)
        m = moments_of(x, [&](std::size_t i) { return i % n == c; }, begin, end);
      double const rstd = IsConstant || count > 0 ? m.rstd(double(of::value.epsilon)) : 0;
      double *const a = &all[g * 3 * n + c], *const sum = &both[g * 2 * n + c];
      a[0] = m.mean, a[n] = rstd, a[2 * n] = m.square;
      double const off = m.mean - running.value(c);
      means[c] += count * off, squares[c] += count * (m.square + off * off);
      for (std::size_t i = begin + c; i < begin + each; i += n) {
        double const xhat = (x.value(i) - m.mean) * rstd;
        ys[i] = xhat * gamma.value(c) + beta.value(c);
        if (i < end) sum[0] += dy.value(i) * xhat, sum[n] += dy.value(i);
      }
      dgammas[c] += sum[0], dbetas[c] += sum[n];
      for (std::size_t i = begin + c; i < end; i += n) {
        double const xhat = (x.value(i) - m.mean) * rstd,
                     others = IsConstant ? 0 : (sum[n] + xhat * sum[0]) / count;
        dxs[i] = rstd * gamma.value(c) * (dy.value(i) - others);
      }
    }
  INFO(Rows << " rows of " << Columns << ", " << groups << " groups");
  auto const run = [&]<op_kind Kind, int Out, int Ins, int Outs, class... Buffers>(Buffers&... in) {
    cuda::arguments a = operands(in...).a;
    a.valid_samples = valid, a.training = true, a.accumulate = Out > 0;
    using group = one_norm<Kind, Rows, Columns, of, Ins, Outs, false>;
    on_host::run_alone<on_host::one_group<T, group, samples>>(a, thread_order::descending);
  };
  run.template operator()<op_kind::batch_statistics, 0, 3, 1>(x, running, spread, statistics);
  CHECK(on_host::difference(statistics, all) < 1e-5);
  run.template operator()<op_kind::batch_norm, 0, 4, 1>(x, statistics, gamma, beta, y);
  CHECK(on_host::difference(y, ys) < on_host::tolerance<T>);
  run.template operator()<op_kind::batch_sums, 1, 3, 1>(dy, x, statistics, sums);
  CHECK(on_host::difference(sums, both) < 1e-5);
  run.template operator()<op_kind::batch_parameter_gradient, 0, 1, 2>(sums, dgamma, dbeta);
  CHECK(on_host::difference(dgamma, dgammas) < 1e-5);
  CHECK(on_host::difference(dbeta, dbetas) < 1e-5);
  for (std::size_t c = 0; c < n; ++c) mean_sum[c] = square_sum[c] = 0.5f;
  run.template operator()<op_kind::batch_running_sums, 1, 2, 2>(statistics, running, mean_sum,
                                                                square_sum);
  CHECK(on_host::difference(mean_sum, means) < 1e-5);
  CHECK(on_host::difference(square_sum, squares) < 1e-5);

  cuda::arguments a = operands(dy, x, statistics, sums, gamma, dx).a;
  a.valid_samples = valid;
  struct by_x {
    static constexpr detail::group make() {
      auto g = one_norm<op_kind::batch_norm_gradient, Rows, Columns, of, 5, 1, false>::make();
      if (IsConstant) g.in[3] = -1;
      return g;
    }
  };
  on_host::run_alone<on_host::one_group<T, by_x, samples>>(a, thread_order::interleaved);
  CHECK(on_host::difference(dx, dxs) < on_host::tolerance<T>);
}

template <int Size>
struct responses {
  static constexpr detail::response_attributes value{Size, 0.5f, 0.75f, 2.0f};
};

template <class T, int Columns, int Size>
void check_responses() {
  using of = responses<Size>;
  constexpr int rows = 4, samples = 2, n = Columns;
  constexpr std::size_t size = std::size_t(rows) * samples * n;
  auto x = buffer<T>::random(size, 1, 3.0), dy = buffer<T>::random(size, 2);
  buffer<T> y(size), dx(size);
  std::vector<double> ys(size), dxs(size), d(size);
  constexpr auto by = of::value;
  auto const for_window = [](int c, auto f) {
    for (int j = c - Size / 2; j <= c + (Size - 1) / 2; ++j)
      if (j >= 0 && j < n) f(std::size_t(j));
  };
  for (std::size_t r = 0; r < size; r += n) {
    for (int c = 0; c < n; ++c) {
      std::size_t const i = r + std::size_t(c);
      double sum = 0;
      for_window(c, [&](std::size_t j) { sum += x.value(r + j) * x.value(r + j); });
      d[i] = double(by.offset) + double(by.scale) / Size * sum;
      ys[i] = x.value(i) * std::pow(d[i], -double(by.power));
      dxs[i] += dy.value(i) * std::pow(d[i], -double(by.power));
    }
    for (int c = 0; c < n; ++c) {
      std::size_t const i = r + std::size_t(c);
      double const all = -2 * double(by.scale * by.power) / Size * dy.value(i) * x.value(i) *
                         std::pow(d[i], -double(by.power) - 1);
      for_window(c, [&](std::size_t j) { dxs[r + j] += all * x.value(r + j); });
    }
  }
  INFO(Size << " of " << Columns);
  on_host::run_alone<on_host::one_group<
      T, one_norm<op_kind::response_norm, rows, Columns, of, 1, 1, false>, samples>>(
      operands(x, y).a, thread_order::descending);
  CHECK(on_host::difference(y, ys) < on_host::tolerance<T>);
  on_host::run_alone<on_host::one_group<
      T, one_norm<op_kind::response_norm_gradient, rows, Columns, of, 2, 1, false>, samples>>(
      operands(dy, x, dx).a, thread_order::descending);
  CHECK(on_host::difference(dx, dxs) < on_host::tolerance<T>);
}

}  // namespace

TEST_CASE("norms of groups of channels are those of fp64", "[cuda]") {
  check_groups<float, 9, 24, 3>();
  check_groups<float, 1, 20, 20>();
  check_groups<float, 300, 6, 6>();
  check_groups<float, 40, 264, 1>();
  check_groups<bf16, 50, 48, 8>();
}
TEST_CASE("norms of the channels of a micro-batch are those of fp64", "[cuda]") {
  check_batch<float, 2, 5>();
  check_batch<float, 130, 24>();
  check_batch<float, 7, 12, true>();
  check_batch<bf16, 33, 16>();
}
TEST_CASE("norms of groups of samples are those of fp64", "[cuda]") {
  check_batch<float, 2, 5, false, 6, 5, 2>();     // a group in part
  check_batch<float, 300, 24, false, 6, 3, 2>();  // one in part, one without samples; chunks
  check_batch<float, 7, 4, false, 5, 5, 1>();
  check_batch<bf16, 33, 16, false, 8, 8, 4>();
}
TEST_CASE("there may be more groups of samples than tickets", "[cuda]") {
  using of = on_host::one_group<
      float, one_norm<op_kind::batch_statistics, 4096, 1, of_batch<4096, false, 1>, 3, 1, false>,
      1100>;
  using kernel = cuda::column_sums_kernel<cuda::batch_statistics_source<of, 0>>;
  static_assert(kernel::chunks > 1 && kernel::joint == 2);
  check_batch<float, 4096, 1, false, 1100, 1099, 1>();
  // Two groups to a share would be 205 shares of five tickets, one more than there are.
  using wide = on_host::one_group<
      float, one_norm<op_kind::batch_statistics, 512, 640, of_batch<512, false, 1>, 3, 1, false>,
      409>;
  using of_strips = cuda::column_sums_kernel<cuda::batch_statistics_source<wide, 0>>;
  static_assert(of_strips::chunks > 1 && of_strips::strips == 5 && of_strips::joint == 3);
}
TEST_CASE("norms of neighbouring channels are those of fp64", "[cuda]") {
  check_responses<float, 18, 5>();
  check_responses<float, 3, 4>();
  check_responses<fp16, 32, 1>();
}
