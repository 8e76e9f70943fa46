// SPDX-License-Identifier: BSL-1.0
//
// The contraction kernel on every instruction set: right for all small and odd shapes, inside its
// buffers, and its
// laws: the bits of an element depend neither on the blocking nor on which rows are computed
//       together.
#include <cmath>
#include <vector>

#include "catch.hpp"

#include "host_kernels.hpp"
#include "laws/worse.hpp"

namespace {

using namespace pp::host;

/// A contraction's operands and what it should give, in double.
template <class T>
struct problem {
  extent m, n, k;
  bool transposed;
  exact<T> a, b;
  std::vector<double> c;

  problem(extent rows, extent columns, extent depth, bool a_transposed)
      : m(rows), n(columns), k(depth), transposed(a_transposed), a(m * k, 1), b(k * n, 2),
        c(static_cast<std::size_t>(m * n)) {
    for (extent i = 0; i < m; ++i)
      for (extent p = 0; p < k; ++p)
        for (extent j = 0; j < n; ++j)
          c[static_cast<std::size_t>(i * n + j)] +=
              static_cast<double>(a[transposed ? p * m + i : i * k + p]) *
              static_cast<double>(b[p * n + j]);
  }
  strided<T const> left() const {
    return transposed ? strided<T const>{a.data(), 1, m} : strided<T const>{a.data(), k, 1};
  }

  /// The largest difference from `base` + the product.
  double error(exact<T> const& got, double base) const {
    double largest = 0;
    for (extent i = 0; i < m * n; ++i)
      largest = laws::worse(
          largest, std::fabs(static_cast<double>(got[i]) - base - c[static_cast<std::size_t>(i)]));
    return largest;
  }
};

/// A sink like generated epilogues: adds a bias and doubles, and notes that each element comes
/// once.
template <class T>
struct biased {
  T const* bias;
  T* c;
  extent n;
  int* visits;
  template <int Columns>
  void full(extent i, extent j, int rows, T* sums, extent stride) {
    for (int r = 0; r < rows; ++r) {
      for (int x = 0; x < Columns; ++x)
        sums[r * stride + x] = T(2) * (sums[r * stride + x] + bias[j + x]);
      for (int x = 0; x < Columns; ++x) c[(i + r) * n + j + x] = sums[r * stride + x];
      for (int x = 0; x < Columns; ++x) ++visits[(i + r) * n + j + x];
    }
  }
  void part(extent i, extent j, int rows, int columns, T* sums, extent stride) {
    for (int r = 0; r < rows; ++r)
      for (int x = 0; x < columns; ++x) {
        c[(i + r) * n + j + x] = T(2) * (sums[r * stride + x] + bias[j + x]);
        ++visits[(i + r) * n + j + x];
      }
  }
};

/// A prologue that fills rows of A when they are first asked for.
template <class T>
struct filling {
  T const* from;
  T* to;
  extent k;
  extent* next;
  void operator()(extent i, extent rows) const {
    CHECK(i == *next);
    *next = i + rows;
    for (extent x = i * k; x < (i + rows) * k; ++x) to[x] = from[x];
  }
};

template <class T>
double tolerance() {
  return sizeof(T) == 4 ? 3e-5 : 1e-13;
}

}  // namespace

TEMPLATE_TEST_CASE("contract agrees with three loops", "", float, double) {
  for (extent m : {1, 2, 3, 7, 8, 9, 21})
    for (extent n : {1, 3, 10, 15, 16, 17, 33, 48, 49, 64, 65, 100})
      for (extent k : {1, 2, 5, 16, 17, 300})
        for (bool transposed : {false, true}) {
          problem<TestType> const given(m, n, k, transposed);
          on_every_isa([&](auto kernels) {
            CAPTURE(kernels.name, m, n, k, transposed);
            workspace space(contraction_workspace<TestType>(m, n, k));
            exact<TestType> c(m * n);
            kernels.template contract<TestType>(product_shape{m, n, k}, given.left(),
                                                given.b.data(), n, store<TestType>{c.data(), n},
                                                space.at);
            CHECK(given.error(c, 0) < tolerance<TestType>());
            for (extent i = 0; i < m * n; ++i) c[i] = TestType(3);
            kernels.template contract<TestType>(product_shape{m, n, k}, given.left(),
                                                given.b.data(), n,
                                                accumulate<TestType>{c.data(), n}, space.at);
            CHECK(given.error(c, 3) < tolerance<TestType>());
          });
        }
}

TEMPLATE_TEST_CASE("contract gives the same bits for every blocking and every set of rows", "",
                   float, double) {
  for (extent n : {10, 64, 107}) {
    extent const m = 37, k = 150;
    problem<TestType> const given(m, n, k, false);
    on_every_isa([&](auto kernels) {
      exact<TestType> whole(m * n);
      workspace space(contraction_workspace<TestType>(m, n, k));
      kernels.template contract<TestType>(product_shape{m, n, k}, given.left(), given.b.data(), n,
                                          store<TestType>{whole.data(), n}, space.at);
      extent const tile =
          3 * extent{widest_vector_bytes /
                     sizeof(TestType)};  // a multiple of every set's tile... times two
      for (blocking cut :
           {blocking{m, n, k, true}, blocking{8, n, 16, false}, blocking{16, 2 * tile, 40, true},
            blocking{5, 2 * tile, 7, false}, blocking{m, n, 1, true}, blocking{m, n, 1, false}}) {
        CAPTURE(kernels.name, n, cut.rows, cut.columns, cut.depth, cut.pack);
        workspace cut_space(contraction_workspace<TestType>(n, k, cut));
        exact<TestType> c(m * n);
        kernels.template contract<TestType>(product_shape{m, n, k}, given.left(), given.b.data(), n,
                                            store<TestType>{c.data(), n}, no_prologue{},
                                            cut_space.at, cut);
        CHECK(c == whole);
      }
      for (extent first : {0, 1, 5, 30}) {  // the rows from `first` on alone
        exact<TestType> c((m - first) * n);
        kernels.template contract<TestType>(
            product_shape{m - first, n, k},
            strided<TestType const>{given.a.data() + first * k, k, 1}, given.b.data(), n,
            store<TestType>{c.data(), n}, space.at);
        bool same = true;
        for (extent i = 0; i < (m - first) * n; ++i) same = same && c[i] == whole[first * n + i];
        CHECK(same);
      }
    });
  }
}

TEMPLATE_TEST_CASE("contract gives the same bits for a left factor stored by columns", "", float,
                   double) {
  struct shape {
    extent m, n, k;
  };
  for (shape s : {shape{1, 160, 40}, shape{13, 160, 40}, shape{70, 203, 33}, shape{31, 1024, 70},
                  shape{139, 150, 260}, shape{15, 1600, 260}}) {
    problem<TestType> const given(s.m, s.n, s.k, false);
    exact<TestType> by_columns(s.k * s.m);
    for (extent i = 0; i < s.m; ++i)
      for (extent p = 0; p < s.k; ++p) by_columns[p * s.m + i] = given.a[i * s.k + p];
    strided<TestType const> const left{by_columns.data(), 1, s.m};
    product_shape const shape{s.m, s.n, s.k};
    on_every_isa([&](auto kernels) {
      CAPTURE(kernels.name, s.m, s.n, s.k);
      exact<TestType> by_rows(s.m * s.n), c(s.m * s.n);
      workspace rows_space(contraction_workspace<TestType>(s.m, s.n, s.k, false)),
          space(contraction_workspace<TestType>(s.m, s.n, s.k, true));
      kernels.template contract<TestType>(shape, given.left(), given.b.data(), s.n,
                                          store<TestType>{by_rows.data(), s.n}, rows_space.at);
      kernels.template contract<TestType>(shape, left, given.b.data(), s.n,
                                          store<TestType>{c.data(), s.n}, space.at);
      CHECK(c == by_rows);
      for (blocking cut :
           {blocking{s.m, s.n, s.k, false, true}, blocking{s.m, s.n, s.k, true, true},
            blocking{20, 96, 37, false, true}, blocking{9, 96, 1, true, true}}) {
        CAPTURE(cut.rows, cut.columns, cut.depth, cut.pack);
        workspace cut_space(contraction_workspace<TestType>(s.n, s.k, cut));
        exact<TestType> again(s.m * s.n);
        kernels.template contract<TestType>(shape, left, given.b.data(), s.n,
                                            store<TestType>{again.data(), s.n}, no_prologue{},
                                            cut_space.at, cut);
        CHECK(again == by_rows);
      }
    });
  }
}

TEMPLATE_TEST_CASE(
    "contract runs prologues before rows are read and gives each element to the sink once", "",
    float, double) {
  for (extent m : {1, 13, 300})
    for (extent n : {5, 48, 70})
      for (extent k : {3, 290}) {
        problem<TestType> const given(m, n, k, false);
        exact<TestType> const bias(n, 3);
        on_every_isa([&](auto kernels) {
          CAPTURE(kernels.name, m, n, k);
          for (blocking cut :
               {best_blocking(m, n, k, 48, sizeof(TestType)), blocking{24, n, 100, true}}) {
            workspace space(contraction_workspace<TestType>(n, k, cut) +
                            contraction_workspace<TestType>(m, n, k));
            exact<TestType> a(m * k), c(m * n);
            exact<int> visits(m * n);
            extent next = 0;
            biased<TestType> sink{bias.data(), c.data(), n, visits.data()};
            kernels.template contract<TestType>(
                product_shape{m, n, k}, strided<TestType const>{a.data(), k, 1}, given.b.data(), n,
                sink, filling<TestType>{given.a.data(), a.data(), k, &next}, space.at, cut);
            CHECK(next == m);
            bool once = true;
            double error = 0;
            for (extent i = 0; i < m; ++i)
              for (extent j = 0; j < n; ++j) {
                once = once && visits[i * n + j] == 1;
                double const wanted = 2 * (given.c[static_cast<std::size_t>(i * n + j)] +
                                           static_cast<double>(bias[j]));
                error = laws::worse(error, std::fabs(static_cast<double>(c[i * n + j]) - wanted));
              }
            CHECK(once);
            CHECK(error < 2 * tolerance<TestType>());
          }
        });
      }
}

TEMPLATE_TEST_CASE("contract through each blocking that large shapes choose", "", float, double) {
  struct shape {
    extent m, n, k;
  };
  for (shape s :
       {shape{3, 700, 900}, shape{130, 1200, 1300}, shape{70, 40, 1100}, shape{261, 700, 900},
        shape{261, 1000, 650}, shape{600, 512, 257}, shape{1100, 1024, 300}}) {
    problem<TestType> const given(s.m, s.n, s.k, false);
    on_every_isa([&](auto kernels) {
      workspace space(contraction_workspace<TestType>(s.m, s.n, s.k));
      exact<TestType> c(s.m * s.n);
      kernels.template contract<TestType>(product_shape{s.m, s.n, s.k}, given.left(),
                                          given.b.data(), s.n, store<TestType>{c.data(), s.n},
                                          space.at);
      CHECK(given.error(c, 0) < 4 * tolerance<TestType>());
    });
  }
}

TEMPLATE_TEST_CASE("a product fetches the matrices of its epilogue, unless they are in a cache", "",
                   float, double) {
  using enum pp::op_kind;
  pp::detail::group g;
  g.columns = 96;
  g.out[0] = 2;
  auto const op = [](pp::op_kind kind, int operand, int store) {
    return pp::detail::pointwise_op{kind, 0, (signed char)operand, (signed char)store, false};
  };
  // Operands: 3 a row, 4 a number of a stream, 5 and 7 matrices.
  for (auto const& s : {op(bias, 3, -1), op(map, -1, 6), op(dropout, 4, -1), op(add, 5, -1),
                        op(map_gradient, 7, 8)})
    g.epilogue.push_back(s);
  std::vector<TestType> memory(9);
  arguments<TestType> a;
  for (std::size_t k = 0; k < memory.size(); ++k) a.operand[k] = &memory[k];

  extent const first = 64, few = 512 * 1024 / (5 * 96 * extent(sizeof(TestType)));
  CHECK(matrices_beside(a, g, {first, first + few}).count == 0);
  sink_matrices<TestType> const beside = matrices_beside(a, g, {first, first + few + 1});
  CHECK(beside.row == 96);
  REQUIRE(beside.count == 5);
  int const read_or_written[] = {2, 6, 5, 8, 7};
  for (int k = 0; k < 5; ++k) {
    CAPTURE(k);
    auto const offset = reinterpret_cast<char const*>(beside.matrix[k]) -
                        static_cast<char const*>(a.operand[read_or_written[k]]);
    CHECK(offset == first * 96 * extent(sizeof(TestType)));
  }
  // More than there is room for.
  for (int k = 0; k < 3; ++k) g.epilogue.push_back(op(add, 5, 6));
  CHECK(matrices_beside(a, g, {0, 4 * few}).count == sink_matrices<TestType>::most);
}

TEMPLATE_TEST_CASE("contract gives the same bits for a right factor in panels", "", float, double) {
  struct shape {
    extent m, n, k;
  };
  for (shape s : {shape{1, 64, 40}, shape{13, 16, 5}, shape{70, 208, 33}, shape{9, 784, 330},
                  shape{11, 1024, 7}, shape{270, 176, 9}, shape{5, 1552, 12}, shape{9, 160, 1}}) {
    problem<TestType> const given(s.m, s.n, s.k, false);
    exact<TestType> transposed(s.n * s.k);  // of which B is the transpose
    for (extent p = 0; p < s.k; ++p)
      for (extent j = 0; j < s.n; ++j) transposed[j * s.k + p] = given.b[p * s.n + j];
    product_shape const shape{s.m, s.n, s.k};
    on_every_isa([&](auto kernels) {
      exact<TestType> panels(s.n * s.k), c(s.m * s.n);
      for (int part = 0; part < 3; ++part)
        kernels.template transpose_in_panels<TestType>(transposed.data(), part_of(s.n, 16, part, 3),
                                                       s.n, s.k, panels.data());
      workspace space(contraction_workspace<TestType>(s.m, s.n, s.k));
      kernels.template contract<TestType>(shape, given.left(), given.b.data(), s.n,
                                          store<TestType>{c.data(), s.n}, space.at);
      extent const columns = kernels.template columns_of_tile<TestType>();
      for (blocking cut : {panel_blocking(s.m, s.n, s.k, columns, sizeof(TestType)),
                           blocking{s.m, s.n, s.k, false}, blocking{20, s.n, 7, false}}) {
        CAPTURE(kernels.name, s.m, s.n, s.k, cut.rows, cut.columns, cut.depth);
        workspace cut_space(contraction_workspace<TestType>(s.n, s.k, cut));
        exact<TestType> again(s.m * s.n);
        kernels.template contract<TestType>(shape, given.left(), panels.data(), in_panels,
                                            store<TestType>{again.data(), s.n}, no_prologue{},
                                            cut_space.at, cut);
        CHECK(again == c);
      }
    });
  }
}

TEMPLATE_TEST_CASE("transpose and column_sums", "", float, double) {
  for (extent rows : {1, 5, 16, 40})
    for (extent columns : {1, 7, 16, 64, 83}) {
      exact<TestType> const in(rows * columns, 4);
      on_every_isa([&](auto kernels) {
        CAPTURE(kernels.name, rows, columns);
        exact<TestType> out(rows * columns), sums(columns), twice(columns);
        kernels.template transpose<TestType>(in.data(), rows, columns, out.data());
        kernels.template column_sums<TestType>(in.data(), rows, columns, columns, sums.data(),
                                               false);
        kernels.template column_sums<TestType>(in.data(), rows, columns, columns, twice.data(),
                                               false);
        kernels.template column_sums<TestType>(in.data(), rows, columns, columns, twice.data(),
                                               true);
        bool transposed = true, summed = true;
        for (extent c = 0; c < columns; ++c) {
          TestType sum(0);
          for (extent r = 0; r < rows; ++r) {
            transposed = transposed && out[c * rows + r] == in[r * columns + c];
            sum += in[r * columns + c];
          }
          summed = summed && sums[c] == sum && twice[c] == sum + sum;
        }
        CHECK(transposed);
        CHECK(summed);
      });
    }
}
