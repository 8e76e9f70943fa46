// SPDX-License-Identifier: BSL-1.0
//
// Matrix products through their CUDA kernel bodies: every number format and way to cut them into
// tiles against fp64.
#include "catch.hpp"

#include <random>

#include "cuda/one_group.hpp"

using namespace pp;
using cuda::product_format;

namespace {

/// A pipeline of one group: a product, and the gradient of a bias if it is a weight's gradient.
/// IsTransposed: the second operand is in memory as [N, K].
template <class T, product_format Format, op_kind Kind, int R, int K, int N,
          bool IsTransposed = false>
struct one_product {
  using element = T;
  using leaves = void;
  static constexpr dtype product =
      Format == product_format::tf32 ? dtype::tf32 : detail::dtype_of<T>::value;
  static constexpr int samples = 1, rows = R, inner = K, columns = N;
  static constexpr bool is_transposed = IsTransposed;
  static constexpr detail::group group_at(int) {
    detail::group g;
    g.anchor = Kind;
    g.rows = R, g.attributes = detail::contraction_attributes{K, IsTransposed}, g.columns = N;
    g.in[0] = 0, g.in[1] = 1, g.out[0] = 2;
    if (Kind == op_kind::matmul_weight_gradient)
      g.prologue.push_back(detail::pointwise_op{op_kind::bias_gradient, 0, -1, 3, false});
    g.operands = 4;
    return g;
  }
};

template <class T>
std::vector<T> numbers(long count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<T> x;
  for (long i = 0; i < count; ++i) x.push_back(T(normal(random) + 0.25f));
  return x;
}

/// Tensor cores cut off bits where they add up; on the CPU every sum is rounded.
constexpr double fp32_products = detail::is_nvcc ? 1e-5 : 2e-6;

template <class P, cuda::tile_plan Plan>
void is_exact(double tolerance, bool accumulate = false) {
  using T = typename P::element;
  constexpr bool weight = P::group_at(0).anchor == op_kind::matmul_weight_gradient;
  constexpr long R = P::rows, K = P::inner, N = P::columns;
  using out = std::conditional_t<weight, float, T>;
  std::vector<T> x = numbers<T>(R * K, 1), w = numbers<T>((weight ? R : K) * N, 2);
  std::vector<double> expected(std::size_t((weight ? K : R) * N)), sums(weight ? N : 0);
  for (long r = 0; r < R; ++r)
    for (long k = 0; k < K; ++k)
      for (long n = 0; n < N; ++n)
        expected[std::size_t(weight ? k * N + n : r * N + n)] +=
            double(float(x[std::size_t(r * K + k)])) *
            double(float(w[std::size_t(P::is_transposed ? n * K + k : (weight ? r : k) * N + n)]));
  for (long r = 0; weight && r < R; ++r)
    for (long n = 0; n < N; ++n) sums[std::size_t(n)] += double(float(w[std::size_t(r * N + n)]));
  float const before = accumulate ? 0.5f : 0.0f;
  for (auto* list : {&expected, &sums})
    for (double& e : *list) e += double(before);

  std::vector<float> first;
  for (auto order : {cuda::thread_order::ascending, cuda::thread_order::descending,
                     cuda::thread_order::interleaved}) {
    float const poison = accumulate ? before : NAN;
    std::vector<out> y(expected.size(), out(poison));
    std::vector<float> bias(sums.size(), poison);
    constexpr auto kernels = cuda::lower_contraction<P, 0, Plan>();
    std::vector<float> workspace(std::size_t(cuda::workspace_of(kernels)) / sizeof(float), NAN);
    cuda::arguments a;
    a.operand[0] = x.data(), a.operand[1] = w.data(), a.operand[2] = y.data(),
    a.operand[3] = bias.data();
    a.workspace = workspace.data();
    a.accumulate = accumulate;
    on_host::order = order;
    on_host::run_bodies(kernels, a);
    std::vector<float> found;
    for (out v : y) found.push_back(float(v));
    CHECK(on_host::difference(expected, std::vector<double>(found.begin(), found.end())) <
          tolerance);
    if (weight)
      CHECK(on_host::difference(sums, std::vector<double>(bias.begin(), bias.end())) < 1e-5);
    found.insert(found.end(), bias.begin(), bias.end());
    if (first.empty()) first = found;
    CHECK(std::memcmp(first.data(), found.data(), found.size() * sizeof(float)) == 0);
  }
  on_host::order = cuda::thread_order::ascending;
}

template <class T, product_format F, int R, int K, int N>
using forward = one_product<T, F, op_kind::matmul, R, K, N>;
template <class T, product_format F, int R, int K, int N>
using turned = one_product<T, F, op_kind::matmul_input_gradient, R, K, N, true>;
template <class T, product_format F, int R, int K, int N>
using weight = one_product<T, F, op_kind::matmul_weight_gradient, R, K, N>;

}  // namespace

TEST_CASE("a product is cut into tiles that fill the machine", "[cuda]") {
  constexpr auto fp32 = product_format::fp32, half = product_format::bf16;
  constexpr auto blocks = [](cuda::product_shape s, product_format f) {
    cuda::tile_plan const p = cuda::plan_for(s, f);
    return p.tiles(s) * p.splits;
  };
  STATIC_REQUIRE(cuda::plan_for({8192, 3072, 768}, half) == cuda::large_tiles(half));
  STATIC_REQUIRE(cuda::plan_for({8192, 50304, 768}, fp32) == cuda::large_tiles(fp32));
  STATIC_REQUIRE(blocks({768, 768, 8192}, half) > 132);
  STATIC_REQUIRE(blocks({2048, 512, 128}, fp32) > 132);
  STATIC_REQUIRE(blocks({128, 512, 2048}, fp32) > 132);
  STATIC_REQUIRE(blocks({64, 64, 131072}, half) > 64);
  STATIC_REQUIRE(blocks({1, 1, 1}, fp32) == 1);
}

TEST_CASE("matrix products are those of fp64, in every number format and shape", "[cuda]") {
  using cuda::small_tiles, cuda::middle_tiles, cuda::large_tiles;
  constexpr auto fp32 = product_format::fp32, tf32 = product_format::tf32;
  is_exact<forward<float, fp32, 37, 91, 45>, small_tiles(fp32)>(fp32_products);
  is_exact<forward<float, fp32, 64, 128, 96>, middle_tiles(fp32, 2)>(fp32_products);
  is_exact<weight<float, fp32, 91, 37, 45>, middle_tiles(fp32)>(fp32_products, true);
  is_exact<weight<float, fp32, 128, 64, 96>, small_tiles(fp32, 3)>(fp32_products);
  is_exact<weight<float, fp32, 300, 140, 132>, large_tiles(fp32, 9)>(fp32_products, true);
  is_exact<weight<float, fp32, 41, 140, 132>, large_tiles(fp32, 2)>(fp32_products, true);
  is_exact<one_product<float, tf32, op_kind::matmul_input_gradient, 135, 60, 260>,
           large_tiles(tf32)>(1e-3);
  is_exact<weight<float, tf32, 52, 70, 34>, small_tiles(tf32, 2)>(1e-3);
  is_exact<forward<float, fp32, 130, 304, 128>, large_tiles(fp32)>(fp32_products);
}

TEST_CASE("matrix products with the transpose of a parameter", "[cuda]") {
  using cuda::small_tiles, cuda::middle_tiles, cuda::large_tiles;
  constexpr auto fp32 = product_format::fp32, tf32 = product_format::tf32,
                 bf = product_format::bf16, half = product_format::fp16;
  is_exact<turned<float, fp32, 37, 91, 45>, small_tiles(fp32)>(fp32_products);
  is_exact<turned<float, fp32, 64, 128, 96>, middle_tiles(fp32, 2)>(fp32_products);
  is_exact<turned<float, fp32, 130, 304, 132>, large_tiles(fp32)>(fp32_products);
  is_exact<turned<float, tf32, 135, 60, 260>, large_tiles(tf32)>(1e-3);
  is_exact<turned<bf16, bf, 37, 91, 45>, small_tiles(bf)>(1e-2);
  is_exact<turned<bf16, bf, 135, 202, 144>, large_tiles(bf)>(1e-2);
  is_exact<turned<fp16, half, 66, 92, 36>, middle_tiles(half, 2)>(1e-3);
  is_exact<turned<fp16, half, 128, 416, 130>, large_tiles(half)>(1e-3);
}

TEST_CASE("the transpose of a parameter gives the bits of a copy that is transposed", "[cuda]") {
  constexpr auto bf = product_format::bf16;
  constexpr long R = 70, K = 200, N = 140;
  std::vector<bf16> const x = numbers<bf16>(R * K, 1), w = numbers<bf16>(K * N, 2);
  std::vector<bf16> parameter(w.size());
  for (long k = 0; k < K; ++k)
    for (long n = 0; n < N; ++n) parameter[std::size_t(n * K + k)] = w[std::size_t(k * N + n)];
  auto const product_of = [&]<class P>(P, std::vector<bf16> const& right) {
    std::vector<bf16> y(std::size_t(R * N), bf16(NAN));
    cuda::arguments a;
    a.operand[0] = const_cast<bf16*>(x.data()), a.operand[1] = const_cast<bf16*>(right.data());
    a.operand[2] = y.data();
    on_host::run_bodies(cuda::lower_contraction<P, 0, cuda::large_tiles(bf)>(), a);
    std::vector<float> found;
    for (bf16 const v : y) found.push_back(float(v));
    return found;
  };
  CHECK(product_of(turned<bf16, bf, R, K, N>{}, parameter) ==
        product_of(forward<bf16, bf, R, K, N>{}, w));
}

TEST_CASE("matrix products of 16-bit numbers", "[cuda]") {
  using cuda::small_tiles, cuda::middle_tiles, cuda::large_tiles;
  constexpr auto bf = product_format::bf16, half = product_format::fp16;
  is_exact<forward<bf16, bf, 37, 91, 45>, small_tiles(bf)>(1e-2);
  is_exact<forward<bf16, bf, 135, 200, 144>, large_tiles(bf)>(1e-2);
  is_exact<forward<bf16, bf, 128, 416, 128>, large_tiles(bf)>(1e-2);
  is_exact<weight<bf16, bf, 331, 136, 130>, large_tiles(bf)>(1e-5, true);
  is_exact<weight<bf16, bf, 75, 136, 130>, large_tiles(bf)>(1e-5);
  is_exact<weight<bf16, bf, 91, 37, 45>, small_tiles(bf, 3)>(1e-5, true);
  is_exact<forward<fp16, half, 66, 92, 36>, middle_tiles(half, 2)>(1e-3);
  is_exact<weight<fp16, half, 136, 72, 40>, middle_tiles(half)>(1e-5);
}

namespace {

constexpr cuda::tile_plan in_turn(cuda::tile_plan p, int together) {
  p.together = together;
  return p;
}

/// dw and db of rows of x and dy, by Plan, added to `found`.
template <int Rows, int Inner, int Columns, cuda::tile_plan Plan>
void add_gradient(std::vector<float> x, std::vector<float> dy, std::vector<float>& found) {
  constexpr auto kernels =
      cuda::lower_contraction<weight<float, product_format::fp32, Rows, Inner, Columns>, 0, Plan>();
  std::vector<float> workspace(std::size_t(cuda::workspace_of(kernels)) / sizeof(float), NAN);
  cuda::arguments a;
  a.operand[0] = x.data(), a.operand[1] = dy.data(), a.operand[2] = found.data();
  a.operand[3] = found.data() + Inner * Columns;
  a.workspace = workspace.data();
  a.accumulate = true;
  on_host::run_bodies(kernels, a);
}

/// A product of six slabs in three splits against one product of the two slabs of each split.
template <int Together>
void takes_slabs_in_turn() {
  constexpr int inner = 36, columns = 44, slab = 16, slabs = 6, splits = 3;
  constexpr cuda::tile_plan one = cuda::small_tiles(product_format::fp32),
                            plan = cuda::small_tiles(product_format::fp32, splits);
  std::vector<float> const x = numbers<float>(slabs * slab * inner, 1),
                           dy = numbers<float>(slabs * slab * columns, 2);
  auto const of_split = [](std::vector<float> const& all, int width, int split) {
    std::vector<float> rows;
    for (int s = 0; s < slabs; ++s)
      if (s / Together % splits == split)
        rows.insert(rows.end(), all.begin() + s * slab * width,
                    all.begin() + (s + 1) * slab * width);
    return rows;
  };
  std::vector<float> expected((inner + 1) * columns), found = expected;
  for (int split = 0; split < splits; ++split)
    add_gradient<2 * slab, inner, columns, one>(of_split(x, inner, split),
                                                of_split(dy, columns, split), expected);
  add_gradient<slabs * slab, inner, columns, in_turn(plan, Together)>(x, dy, found);
  CHECK(found == expected);
}

}  // namespace

TEST_CASE("splits of a product take slabs in turn", "[cuda]") {
  takes_slabs_in_turn<1>();
  takes_slabs_in_turn<2>();
}

namespace {

/// x + z, multiplied, + a bias and a residual: what the prologue makes is stored, or is in the
/// workspace.
template <class T, product_format Format, bool Stored, int R, int K, int N>
struct chained_product {
  using element = T;
  using leaves = void;
  static constexpr dtype product =
      Format == product_format::tf32 ? dtype::tf32 : detail::dtype_of<T>::value;
  static constexpr int samples = 1;
  static constexpr detail::group group_at(int) {
    detail::group g;
    g.anchor = op_kind::matmul;
    g.rows = R, g.attributes = detail::contraction_attributes{K}, g.columns = N;
    g.in[0] = 0, g.in[1] = 1;
    g.prologue.push_back(detail::pointwise_op{op_kind::bias, 0, 2, -1, false});
    g.prologue.push_back(detail::pointwise_op{op_kind::add, 0, 3, Stored ? 4 : -1, false});
    g.epilogue.push_back(detail::pointwise_op{op_kind::bias, 0, 5, 6, false});
    g.epilogue.push_back(detail::pointwise_op{op_kind::add, 0, 7, 8, false});
    g.operands = 9;
    return g;
  }
};

template <class T, product_format F, bool Stored, int R, int K, int N, cuda::tile_plan Plan>
void chains_are_exact(double tolerance) {
  using P = chained_product<T, F, Stored, R, K, N>;
  std::vector<T> x = numbers<T>(R * K, 1), w = numbers<T>(K * N, 2), b = numbers<T>(K, 3),
                 z = numbers<T>(R * K, 4), made(Stored ? R * K : 0, T(NAN)), c = numbers<T>(N, 5),
                 first(R * N, T(NAN)), residual = numbers<T>(R * N, 6), y(R * N, T(NAN));
  constexpr auto kernels = cuda::lower_contraction<P, 0, Plan>();
  std::vector<float> workspace(std::size_t(cuda::workspace_of(kernels)) / sizeof(float), NAN);
  cuda::arguments a;
  int index = 0;
  for (std::vector<T>* v : {&x, &w, &b, &z, &made, &c, &first, &residual, &y})
    a.operand[index++] = v->data();
  a.workspace = workspace.data();
  on_host::run_bodies(kernels, a);
  bool stored = true;
  std::vector<double> expected, expected_first, found, found_first;
  for (int r = 0; r < R; ++r)
    for (int n = 0; n < N; ++n) {
      double sum = double(float(c[std::size_t(n)]));
      for (int k = 0; k < K; ++k) {
        auto const i = std::size_t(r * K + k);
        float const left = cuda::as_stored<T>(float(x[i]) + float(b[std::size_t(k)])) + float(z[i]);
        sum += double(float(T(left))) * double(float(w[std::size_t(k * N + n)]));
        if (Stored) stored = stored && float(made[i]) == float(T(left));
      }
      auto const i = std::size_t(r * N + n);
      expected_first.push_back(sum), expected.push_back(sum + double(float(residual[i])));
      found_first.push_back(double(float(first[i]))), found.push_back(double(float(y[i])));
    }
  CHECK(stored);
  CHECK(on_host::difference(expected_first, found_first) < tolerance);
  CHECK(on_host::difference(expected, found) < tolerance);
}

}  // namespace

TEST_CASE("chains before and after a product", "[cuda]") {
  constexpr auto fp32 = product_format::fp32, half = product_format::fp16;
  chains_are_exact<float, fp32, true, 35, 44, 50, cuda::small_tiles(fp32)>(fp32_products);
  chains_are_exact<float, fp32, false, 35, 43, 51, cuda::small_tiles(fp32, 2)>(fp32_products);
  chains_are_exact<fp16, half, true, 35, 71, 50, cuda::middle_tiles(half, 2)>(1e-3);
  chains_are_exact<fp16, half, false, 35, 72, 48, cuda::small_tiles(half, 3)>(1e-3);
}

TEST_CASE("tf32 numbers have zeros in the bits that tensor cores do not read", "[cuda]") {
  for (unsigned high = 0; high < 1u << 16; ++high) {
    unsigned const bits = high << 16 | 0x1001u, rounded = cuda::to_tf32(math::from_bits(bits));
    bool const is_finite = (bits & 0x7f800000u) != 0x7f800000u;
    if (rounded != ((is_finite ? bits + 0x1000u : bits) & ~0x1fffu))
      FAIL("of " << bits << ": " << rounded);
  }
  for (unsigned nan : {0x7fc00000u, 0xffc00000u, 0x7fffffffu, 0xffc01fffu}) {
    float const x = math::from_bits(cuda::to_tf32(math::from_bits(nan)));
    CHECK(x != x);
    CHECK((math::bits(x) & 0x1fffu) == 0);
  }
}
