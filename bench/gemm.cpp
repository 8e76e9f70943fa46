// SPDX-License-Identifier: BSL-1.0
//
// The contraction kernel against MKL, oneDNN and OpenBLAS, one thread each, on one core:
// C[m, n] = A[m, k] B[k, n] in fp32, row-major; the gradient of a weight reads A from its
// transpose, as the kernel of a trainer does. All compute the same product from the same memory;
// results are compared before anything is timed. No side keeps a packed copy of B from call to
// call, nor of A. A second table has products of 16-bit numbers: fp32 in three slices (SplitFP32)
// against MKL's fp32, and bf16 against oneDNN's. It says whether AMX multiplied, or the processor
// has none: then fp32 in slices is emulated, which is no way to train, and bf16 is widened.
//
// Argument: rounds (default 21).
#include <cblas.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <unordered_map>
#include <vector>

#include <oneapi/dnnl/dnnl.hpp>

#include <pipe/backend/host/kernels.hpp>

#include "matrix.hpp"
#include "peer/machine.hpp"
#include "peer/pytorch.hpp"
#include "peer/turns.hpp"

namespace {

using pp::host::extent;

/// The layout of A in memory: row-major, or column-major.
enum order { rows, columns };

struct shape {
  extent m, n, k;
  order a;
  char const* what;
};

/// Squares, and what a GPT of width 768 multiplies.
constexpr shape ten[] = {{256, 256, 256, rows, "square"},
                         {512, 512, 512, rows, "square"},
                         {768, 768, 768, rows, "square, attention's projection"},
                         {1024, 1024, 1024, rows, "square"},
                         {2048, 2048, 2048, rows, "square"},
                         {256, 2304, 768, rows, "queries, keys, values"},
                         {256, 3072, 768, rows, "widening"},
                         {256, 768, 3072, rows, "narrowing"},
                         {1024, 3072, 768, rows, "widening, more rows"},
                         {768, 3072, 256, rows, "as a weight's gradient, A by rows"}};
/// Of the networks that are trained: gpt_step, gpt_768_step, mlp_step, mlp_1024_step.
constexpr shape of_models[] = {{256, 288, 96, rows, "GPT of 96: queries, keys, values"},
                               {256, 384, 96, rows, "GPT of 96: widening"},
                               {256, 96, 384, rows, "GPT of 96: narrowing"},
                               {2048, 288, 96, rows, "GPT of 96: a whole mini-batch"},
                               {96, 288, 256, columns, "GPT of 96: a weight's gradient"},
                               {96, 384, 256, columns, "GPT of 96: a weight's gradient"},
                               {384, 96, 256, columns, "GPT of 96: a weight's gradient"},
                               {512, 3072, 768, rows, "GPT of 768: widening"},
                               {512, 768, 3072, rows, "GPT of 768: narrowing"},
                               {768, 768, 512, columns, "GPT of 768: a weight's gradient"},
                               {768, 3072, 512, columns, "GPT of 768: a weight's gradient"},
                               {16, 512, 784, rows, "MLP of 512: a micro-batch"},
                               {64, 512, 784, rows, "MLP of 512: a mini-batch"},
                               {784, 512, 16, columns, "MLP of 512: a weight's gradient"},
                               {784, 512, 64, columns, "MLP of 512: a weight's gradient"},
                               {256, 1024, 1024, rows, "MLP of 1024"},
                               {1024, 1024, 256, columns, "MLP of 1024: a weight's gradient"}};

struct operands {
  matrix a, b;
  explicit operands(shape const& s) : a(s.m, s.k, 1), b(s.k, s.n, 2) {}
};
extent pitch(shape const& s) { return s.a == rows ? s.k : s.m; }

template <class V, int Slices>
pp::host::value_products<float, V> const& products() {
#ifdef __x86_64__
  if (pp::host::best_isa() == pp::host::isa::avx512)
    return pp::host::avx512::products_of<float, V, 1, Slices>;
  if (pp::host::best_isa() == pp::host::isa::avx2)
    return pp::host::avx2::products_of<float, V, 1, Slices>;
#endif
  return pp::host::portable::products_of<float, V, 1, Slices>;
}
/// What multiplies in a trainer of BF16 or SplitFP32, and its name.
pp::host::product_unit unit_of(int slices) {
  using enum pp::host::product_unit;
  if (slices == 0) return vectors;
  if (pp::host::has_amx()) return amx;
  if (slices > 1) return emulated_amx;
  return pp::host::has_fast_avx512_bf16() ? avx512_bf16 : vectors;
}
char const* name_of(pp::host::product_unit unit) {
  constexpr char const* names[]{"vectors of fp32", "emulated AVX-512-BF16", "AVX-512-BF16",
                                "emulated AMX", "AMX"};
  return names[int(unit)];
}

/// As a group with this product alone, of values V.
template <class V, int Slices>
std::function<void()> ours(shape const& s, V* a, V* b, matrix const& c) {
  pp::detail::group g;
  g.attributes = pp::detail::contraction_attributes{int(s.a == rows ? s.k : s.m)};
  g.columns = int(s.n);
  g.in[0] = 0, g.in[1] = 1, g.out[0] = 2;
  auto const workspace = std::make_shared<matrix>(
      1, extent(pp::host::product_workspace<float, V>(s.m, s.n, s.k, Slices)) / 4, 1u);
  pp::host::arguments<float> with;
  with.operand[0] = a, with.operand[1] = b, with.operand[2] = c.data();
  with.workspace = workspace->data();
  with.unit = unit_of(Slices);
  return [=] {
    (void)workspace;
    auto const& set = products<V, Slices>();
    if (s.a == rows) return pp::host::multiply<float, V>(set, with, g, s.m, {});
    pp::host::multiply_transposed<float, V>(set, with, g, s.k, nullptr);
  };
}

/// MKL's matrices are stored by columns: it computes C^T = B^T A^T.
std::function<void()> mkl(shape const& s, operands const& o, matrix const& c) {
  return [=, a = o.a.data(), b = o.b.data(), to = c.data()] {
    int const m = int(s.m), n = int(s.n), k = int(s.k), lda = int(pitch(s));
    float const one = 1, zero = 0;
    bench::load_pytorch().multiply("N", s.a == rows ? "N" : "T", &n, &m, &k, &one, b, &n, a, &lda,
                                   &zero, to, &n);
  };
}

/// oneDNN's matmul primitive, made once for its shape. A and B are of type `of_factors`.
std::function<void()> onednn(shape const& s, void* from_a, void* from_b, matrix const& c,
                             dnnl::memory::data_type of_factors = dnnl::memory::data_type::f32) {
  using namespace dnnl;
  using format = memory::format_tag;
  static engine const cpu(engine::kind::cpu, 0);
  static stream const queue(cpu);
  memory::desc const a({s.m, s.k}, of_factors, s.a == rows ? format::ab : format::ba),
      b({s.k, s.n}, of_factors, format::ab), to({s.m, s.n}, memory::data_type::f32, format::ab);
  matmul const product(matmul::primitive_desc(cpu, a, b, to));
  std::unordered_map<int, memory> const arguments{{DNNL_ARG_SRC, memory(a, cpu, from_a)},
                                                  {DNNL_ARG_WEIGHTS, memory(b, cpu, from_b)},
                                                  {DNNL_ARG_DST, memory(to, cpu, c.data())}};
  return [=] {
    product.execute(queue, arguments);
    stream(queue).wait();
  };
}

std::function<void()> openblas(shape const& s, operands const& o, matrix const& c) {
  return [=, a = o.a.data(), b = o.b.data(), to = c.data()] {
    cblas_sgemm(CblasRowMajor, s.a == rows ? CblasNoTrans : CblasTrans, CblasNoTrans, int(s.m),
                int(s.n), int(s.k), 1, a, int(pitch(s)), b, int(s.n), 0, to, int(s.n));
  };
}

void check_alike(shape const& s, matrix const& a, matrix const& b) {
  if (difference(a, b) < largest_difference) return;
  std::fprintf(stderr, "results differ at %td x %td x %td: no timing\n", s.m, s.n, s.k);
  std::exit(1);
}

/// Prints a row of the first table; returns seconds of the fastest peer over ours.
double compare(shape const& s, int rounds) {
  operands const o(s);
  std::vector<matrix> c;
  for (int side = 0; side < 4; ++side) c.emplace_back(s.m, s.n);
  std::vector<std::function<void()>> const sides{
      ours<float, 0>(s, o.a.data(), o.b.data(), c[0]), mkl(s, o, c[1]),
      onednn(s, o.a.data(), o.b.data(), c[2]), openblas(s, o, c[3])};
  for (auto const& side : sides) side();
  for (matrix const& of_peer : c) check_alike(s, of_peer, c[0]);
  bench::turns const seconds(sides, rounds, bench::thread_seconds);
  std::size_t best = 1;
  for (std::size_t side = 2; side < sides.size(); ++side)
    if (seconds.ratio(side, 0) < seconds.ratio(best, 0)) best = side;
  double const gflop = 2e-9 * double(s.m) * double(s.n) * double(s.k);
  auto const speed = [&](std::size_t side) { return gflop / seconds.median(side); };
  auto const [low, middle, high] = seconds.quartiles(best, 0);
  std::printf("%5td %5td %5td %8.1f %8.1f %8.1f %8.1f %7.3f [%.3f %.3f]  %s\n", s.m, s.n, s.k,
              speed(0), speed(1), speed(2), speed(3), middle, low, high, s.what);
  std::fflush(stdout);
  return middle;
}

/// Prints a row of the second table: fp32 in slices and MKL, bf16 and oneDNN. Adds the speeds of
/// ours over the peers'.
void compare_sliced(shape const& s, int rounds, std::vector<double>& split,
                    std::vector<double>& narrow) {
  operands const o(s);
  std::vector<matrix> c;
  for (int side = 0; side < 4; ++side) c.emplace_back(s.m, s.n);
  auto const rounded = [](matrix const& from) {
    std::vector<pp::bf16> to;
    for (extent i = 0; i < from.elements; ++i) to.push_back(pp::bf16(from.data()[i]));
    return to;
  };
  std::vector<pp::bf16> a = rounded(o.a), b = rounded(o.b);
  std::vector<std::function<void()>> const sides{
      ours<float, 3>(s, o.a.data(), o.b.data(), c[0]), mkl(s, o, c[1]),
      ours<pp::bf16, 1>(s, a.data(), b.data(), c[2]),
      onednn(s, a.data(), b.data(), c[3], dnnl::memory::data_type::bf16)};
  for (auto const& side : sides) side();
  check_alike(s, c[0], c[1]);
  check_alike(s, c[2], c[3]);
  bench::turns const seconds(sides, rounds, bench::thread_seconds);
  double const gflop = 2e-9 * double(s.m) * double(s.n) * double(s.k);
  auto const speed = [&](std::size_t side) { return gflop / seconds.median(side); };
  split.push_back(seconds.ratio(1, 0));
  narrow.push_back(seconds.ratio(3, 2));
  std::printf("%5td %5td %5td %8.1f %8.1f %7.3f %8.1f %8.1f %7.3f  %s\n", s.m, s.n, s.k, speed(0),
              speed(1), split.back(), speed(2), speed(3), narrow.back(), s.what);
  std::fflush(stdout);
}

}  // namespace

int main(int count, char** arguments) {
  bench::restart_on_one_core(arguments);
  int const rounds = count > 1 ? std::max(1, std::atoi(arguments[1])) : 21;
  std::printf(
      "pipe with %s; %s; %s; %s\none thread each, on one core, fp32; GF/s, medians of %d rounds in "
      "turns\n",
      bench::instruction_set(), bench::load_pytorch().mkl.c_str(),
      bench::load_pytorch().onednn.c_str(), openblas_get_config(), rounds);
  std::printf("%5s %5s %5s %8s %8s %8s %8s %7s %-13s  %s\n", "m", "n", "k", "pipe", "MKL", "oneDNN",
              "OpenBLAS", "ratio", "[quartiles]", "what");
  std::vector<double> ratios;
  for (shape const& s : ten) ratios.push_back(compare(s, rounds));
  double const of_ten = bench::geometric_mean(ratios);
  for (shape const& s : of_models) ratios.push_back(compare(s, rounds));
  std::printf("figure gemm_fp32_over_best %.3f\n", bench::geometric_mean(ratios));
  std::printf("figure gemm_fp32_over_best_ten %.3f\n", of_ten);
  std::printf(
      "\nfp32 in three slices by %s and MKL's fp32; bf16 by %s and oneDNN's bf16; GF/s of the "
      "product\n%5s %5s %5s %8s %8s %7s %8s %8s %7s  %s\n",
      name_of(unit_of(3)), name_of(unit_of(1)), "m", "n", "k", "split", "MKL", "ratio", "bf16",
      "oneDNN", "ratio", "what");
  std::vector<double> split, narrow;
  for (shape const& s : ten) compare_sliced(s, rounds, split, narrow);
  for (shape const& s : of_models) compare_sliced(s, rounds, split, narrow);
  std::printf("figure gemm_split_over_mkl%s %.3f\n", pp::host::has_amx() ? "" : "_emulated",
              bench::geometric_mean(split));
  std::printf("figure gemm_bf16_over_onednn%s %.3f\n", pp::host::has_amx() ? "" : "_without_amx",
              bench::geometric_mean(narrow));
}
