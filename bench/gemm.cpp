// SPDX-License-Identifier: BSL-1.0
//
// The contraction kernel against oneDNN and OpenBLAS, one thread each: C[m, n] = A[m, k] B[k, n] in
// fp32, row-major. All compute the same product from the same memory; results are compared before
// anything is timed. No side may keep a packed copy of B from call to call.
//
// Argument: rounds (default 21).
#include <cblas.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <unordered_map>

#include <oneapi/dnnl/dnnl.hpp>

#include <pipe/backend/host/kernels.hpp>

#include "matrix.hpp"
#include "peer/machine.hpp"
#include "peer/turns.hpp"

namespace {

using pp::host::extent;

struct shape {
  extent m, n, k;
  char const* what;
};

/// Squares, and what a GPT of width 768 multiplies.
constexpr shape shapes[] = {{256, 256, 256, "square"},
                            {512, 512, 512, "square"},
                            {768, 768, 768, "square, attention's projection"},
                            {1024, 1024, 1024, "square"},
                            {2048, 2048, 2048, "square"},
                            {256, 2304, 768, "queries, keys, values"},
                            {256, 3072, 768, "widening"},
                            {256, 768, 3072, "narrowing"},
                            {1024, 3072, 768, "widening, more rows"},
                            {768, 3072, 256, "a weight's gradient"}};

void ours(shape const& s, matrix const& a, matrix const& b, matrix const& c, void* workspace) {
  pp::host::strided<float const> const left{a.data(), s.k, 1};
  pp::host::store<float> const to{c.data(), s.n};
  switch (pp::host::best_isa()) {
#ifdef __x86_64__
    case pp::host::isa::avx512:
      return pp::host::avx512::contract<float>({s.m, s.n, s.k}, left, b.data(), s.n, to, workspace);
    case pp::host::isa::avx2:
      return pp::host::avx2::contract<float>({s.m, s.n, s.k}, left, b.data(), s.n, to, workspace);
#else
    case pp::host::isa::avx512:
    case pp::host::isa::avx2:
#endif
    case pp::host::isa::portable:
      return pp::host::portable::contract<float>({s.m, s.n, s.k}, left, b.data(), s.n, to,
                                                 workspace);
  }
}

/// oneDNN's matmul primitive, made once for its shape.
std::function<void()> onednn(shape const& s, matrix const& a, matrix const& b, matrix const& c) {
  using namespace dnnl;
  static engine const cpu(engine::kind::cpu, 0);
  static stream const queue(cpu);
  auto const described = [](extent rows, extent columns) {
    return memory::desc({rows, columns}, memory::data_type::f32, memory::format_tag::ab);
  };
  auto const in_place = [](memory::desc const& d, matrix const& x) {
    return memory(d, cpu, x.data());
  };
  memory::desc const da = described(s.m, s.k), db = described(s.k, s.n), dc = described(s.m, s.n);
  matmul const product(matmul::primitive_desc(matmul::desc(da, db, dc), cpu));
  std::unordered_map<int, memory> const arguments{{DNNL_ARG_SRC, in_place(da, a)},
                                                  {DNNL_ARG_WEIGHTS, in_place(db, b)},
                                                  {DNNL_ARG_DST, in_place(dc, c)}};
  return [=] {
    product.execute(queue, arguments);
    stream(queue).wait();
  };
}

/// The peers read their settings when they are loaded: one thread, and OpenBLAS's AVX-512 kernels,
/// as a processor that is newer than it is otherwise taken for an old one.
void set_peers_up(char** arguments) {
  if (std::getenv("PIPE_BENCH_PEERS_ARE_SET_UP") != nullptr) return;
  setenv("PIPE_BENCH_PEERS_ARE_SET_UP", "1", 1);
  setenv("OPENBLAS_NUM_THREADS", "1", 1);
  setenv("OMP_NUM_THREADS", "1", 1);
  if (pp::host::best_isa() == pp::host::isa::avx512) setenv("OPENBLAS_CORETYPE", "SkylakeX", 1);
  execv("/proc/self/exe", arguments);
}

}  // namespace

int main(int count, char** arguments) {
  set_peers_up(arguments);
  int const rounds = count > 1 ? std::atoi(arguments[1]) : 21;
  dnnl_version_t const* const version = dnnl_version();
  std::printf("pipe with %s; oneDNN %d.%d.%d; %s; one thread each, fp32\n",
              bench::instruction_set(), version->major, version->minor, version->patch,
              openblas_get_config());
  std::printf("GF/s, medians of %d rounds in turns\n", rounds);
  std::printf("%5s %5s %5s %8s %8s %9s %6s  %s\n", "m", "n", "k", "pipe", "oneDNN", "OpenBLAS",
              "ratio", "what");
  std::vector<double> ratios;
  for (shape const& s : shapes) {
    matrix const a(s.m, s.k, 1), b(s.k, s.n, 2), c(s.m, s.n), c_onednn(s.m, s.n),
        c_openblas(s.m, s.n);
    matrix const workspace(extent(pp::host::contraction_workspace<float>(s.m, s.n, s.k)) / 4, 1);
    std::vector<std::function<void()>> const sides{
        [&] { ours(s, a, b, c, workspace.data()); }, onednn(s, a, b, c_onednn),
        [&] {
          cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, int(s.m), int(s.n), int(s.k), 1,
                      a.data(), int(s.k), b.data(), int(s.n), 0, c_openblas.data(), int(s.n));
        }};
    for (auto const& side : sides) side();
    if (!(difference(c_onednn, c) < largest_difference &&
          difference(c_openblas, c) < largest_difference)) {
      std::fprintf(stderr, "results differ at %td x %td x %td: no timing\n", s.m, s.n, s.k);
      return 1;
    }
    bench::turns const seconds(sides, rounds);
    double const flops = 2e-9 * double(s.m) * double(s.n) * double(s.k);
    ratios.push_back(std::min(seconds.ratio(1, 0), seconds.ratio(2, 0)));
    std::printf("%5td %5td %5td %8.1f %8.1f %9.1f %6.3f  %s\n", s.m, s.n, s.k,
                flops / seconds.median(0), flops / seconds.median(1), flops / seconds.median(2),
                ratios.back(), s.what);
    std::fflush(stdout);
  }
  std::printf("figure gemm_fp32_over_best %.3f\n", bench::geometric_mean(ratios));
}
