// SPDX-License-Identifier: BSL-1.0
//
// A product as cuBLASLt makes it: the peer of the library's own. Nothing is linked: the library is
// opened where it is.
#pragma once

#include <pipe/backend/cuda/matmul/cublaslt.cuh>

#include "measure.cuh"

namespace bench {

/// Whether there is cuBLASLt; prints why not.
inline bool has_cublaslt() {
  static bool const has = [] {
    std::string const missing = pp::cuda::cublaslt_handle::missing();
    if (!missing.empty()) std::printf("without cuBLASLt: %s\n", missing.c_str());
    return missing.empty();
  }();
  return has;
}

#if __has_include(<cublasLt.h>)

template <class T>
constexpr cudaDataType_t data_type = sizeof(T) == 4                ? CUDA_R_32F
                                     : std::is_same_v<T, pp::bf16> ? CUDA_R_16BF
                                                                   : CUDA_R_16F;

/// c[M, N] = a[M, K] b[K, N] in rows, each operand possibly stored transposed, by the algorithm
/// that cuBLASLt thinks best.
template <class T, class Out = T>
class cublas_product {
 public:
  cublas_product(long m, long n, long k, cublasComputeType_t compute, bool a_is_transposed = false,
                 bool b_is_transposed = false,
                 cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT,
                 void const* bias = nullptr)
      : workspace_(workspace_bytes) {
    lt_.check(lt_.create_operation(&what_, compute, CUDA_R_32F), "a product");
    // Rows here are columns there: the operands change places.
    cublasOperation_t const turns[] = {CUBLAS_OP_N, CUBLAS_OP_T};
    set(CUBLASLT_MATMUL_DESC_TRANSA, turns[b_is_transposed]);
    set(CUBLASLT_MATMUL_DESC_TRANSB, turns[a_is_transposed]);
    set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue);
    if (bias != nullptr) set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
    layout(b_, data_type<T>, b_is_transposed ? k : n, b_is_transposed ? n : k);
    layout(a_, data_type<T>, a_is_transposed ? m : k, a_is_transposed ? k : m);
    layout(c_, data_type<Out>, n, m);
    cublasLtMatmulPreference_t wish = nullptr;
    lt_.check(lt_.create_preference(&wish), "a preference");
    std::uint64_t const most = workspace_bytes;
    lt_.check(
        lt_.set_preference(wish, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &most, sizeof most),
        "a preference");
    cublasLtMatmulHeuristicResult_t best{};
    int found = 0;
    lt_.check(lt_.choose(handle_, what_, b_, a_, c_, c_, wish, 1, &best, &found),
              "choice of an algorithm");
    lt_.destroy_preference(wish);
    if (found == 0)
      pp::detail::throw_error<pp::error>({"cuBLASLt has no algorithm for this product"});
    algorithm_ = best.algo;
  }
  cublas_product(cublas_product const&) = delete;
  cublas_product& operator=(cublas_product const&) = delete;
  ~cublas_product() {
    for (cublasLtMatrixLayout_t l : {a_, b_, c_}) lt_.destroy_layout(l);
    lt_.destroy_operation(what_);
  }

  void run(void const* a, void const* b, void* c, cudaStream_t on) const {
    float const one = 1, zero = 0;
    lt_.check(lt_.multiply(handle_, what_, &one, b, b_, a, a_, &zero, c, c_, c, c_, &algorithm_,
                           workspace_.data(), workspace_bytes, on),
              "a product");
  }

 private:
  static constexpr long workspace_bytes = 32 << 20;

  template <class Value>
  void set(cublasLtMatmulDescAttributes_t which, Value const& value) {
    lt_.check(lt_.set_operation(what_, which, &value, sizeof value), "a product");
  }
  void layout(cublasLtMatrixLayout_t& l, cudaDataType_t type, long rows, long columns) {
    lt_.check(lt_.create_layout(&l, type, std::uint64_t(rows), std::uint64_t(columns), rows),
              "a matrix");
  }

  pp::cuda::cublaslt const& lt_ = pp::cuda::cublaslt::library();
  pp::cuda::cublaslt_handle const handle_;
  cublasLtMatmulDesc_t what_ = nullptr;
  cublasLtMatrixLayout_t a_ = nullptr, b_ = nullptr, c_ = nullptr;
  cublasLtMatmulAlgo_t algorithm_{};
  device_buffer workspace_;
};

#endif

/// Microseconds of c[m, n] = a[m, k] b[k, n] by cuBLASLt; 0 where there is none.
template <class T, class Out = T>
double microseconds_of_cublaslt(long m, long n, long k, bool in_tf32, bool a_is_transposed,
                                void const* a, void const* b, void* c) {
#if __has_include(<cublasLt.h>)
  if (has_cublaslt()) {
    cublas_product<T, Out> const product(
        m, n, k, in_tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F, a_is_transposed);
    return microseconds([&](cudaStream_t on) { product.run(a, b, c, on); });
  }
#endif
  has_cublaslt();  // says why
  return 0;
}

}  // namespace bench
