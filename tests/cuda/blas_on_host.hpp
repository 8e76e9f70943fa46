// SPDX-License-Identifier: BSL-1.0
//
// A library's matrix product as it is described, executed literally on the CPU: element by element,
// in columns. And the lowering around it, whose own kernels run thread by thread: what cuBLASLt
// does on a GPU, but for speed.
#pragma once

#include <cmath>
#include <utility>
#include <vector>

#include "cuda/on_host.hpp"

namespace on_host {

/// D = activation(op(A) op(B) + beta D + C + bias), aux = the sum or what the derivative reads
template <class T, class Result>
void execute_as(pp::cuda::blas_product const& p, pp::cuda::arguments const& a) {
  T const* const left = a.at<T const>(p.a);
  T const* const right = p.b >= 0 ? a.at<T const>(p.b) : static_cast<T const*>(a.workspace);
  Result* const d = a.at<Result>(p.d);
  for (long j = 0; j < p.n; ++j)
    for (long i = 0; i < p.m; ++i) {
      float sum = 0;
      for (long k = 0; k < p.k; ++k)
        sum += float(left[p.transposes_a ? k + i * p.lda : i + k * p.lda]) *
               float(right[p.transposes_b ? j + k * p.ldb : k + j * p.ldb]);
      Result& to = d[i + j * p.ldd];
      if (p.accumulates && a.accumulate) sum += float(to);
      if (p.c >= 0) sum += float(a.at<Result const>(p.c)[i + j * p.ldd]);
      if (p.bias >= 0) sum += float(a.at<Result const>(p.bias)[i]);
      auto* const aux = static_cast<Result*>(p.aux >= 0 ? a.operand[p.aux] : a.workspace);
      switch (p.activation) {
        case pp::cuda::blas_activation::none: break;
        case pp::cuda::blas_activation::gelu:
          aux[i + j * p.ldd] = Result(sum);
          sum = pp::GELUTanh::forward(sum);
          break;
        case pp::cuda::blas_activation::gelu_gradient:
          sum *= pp::GELUTanh::derivative(float(aux[i + j * p.ldd]));
          break;
      }
      to = Result(sum);
    }
}

/// Group G of P as cuBLASLt and the kernels around it compute it.
template <class P, int G, bool TakesAll = true>
void run_blas_lowering(pp::cuda::arguments const& a) {
  using T = typename P::element;
  using lowering = pp::cuda::blas_lowering<P, G, TakesAll>;
  run_bodies(typename lowering::before{}, a);
  if constexpr (lowering::product.makes_fp32)
    execute_as<T, float>(lowering::product, a);
  else
    execute_as<T, T>(lowering::product, a);
  run_bodies(typename lowering::after{}, a);
}

/// The same in a pipeline, with a workspace of what the kernels around the call may use of it, full
/// of NaN.
template <class P, int G>
void run_by_blas(pp::host::arguments<typename P::element> const& from) {
  using source = pp::cuda::source_of<P>;
  using lowering = pp::cuda::blas_lowering<source, G>;
  std::vector<double> workspace(
      std::size_t(lowering::first_byte + lowering::after_bytes) / sizeof(double) + 1, NAN);
  pp::cuda::run_state state;
  pp::cuda::arguments a = translated(from, state);
  a.workspace = workspace.data();
  run_blas_lowering<source, G>(a);
}

/// Every product by its description, everything else by kernel bodies.
struct BlasKernels : Kernels {
  static constexpr char const* name = "cuda on the host, products by their descriptions";

  template <class P>
  static pp::host::kernels<P> kernels() {
    auto k = Kernels::kernels<P>();
    [&]<int... G>(std::integer_sequence<int, G...>) {
      (replace<P, G>(k), ...);
    }(std::make_integer_sequence<int, P::groups>{});
    return k;
  }

 private:
  template <class P, int G>
  static void replace(pp::host::kernels<P>& k) {
    if constexpr (pp::detail::is_contraction(
                      pp::cuda::group_of<pp::cuda::source_of<P>, G>::value.anchor))
      k.groups[G] = &run_by_blas<P, G>;
  }
};

}  // namespace on_host
