// SPDX-License-Identifier: BSL-1.0
//
// A product as cuBLASLt makes it: the peer of the library's own.
#pragma once

#include <cublasLt.h>

#include "measure.cuh"

namespace bench {

inline void check(cublasStatus_t status, char const* what) {
  if (status != CUBLAS_STATUS_SUCCESS) pp::complain<pp::error>({what, ": ", cublasLtGetStatusString(status)});
}

template <class T>
constexpr cudaDataType_t data_type = sizeof(T) == 4                ? CUDA_R_32F
                                     : std::is_same_v<T, pp::bf16> ? CUDA_R_16BF
                                                                   : CUDA_R_16F;

/// c[M, N] = a[M, K] b[K, N] in rows, each operand possibly stored transposed, by the algorithm that cuBLASLt thinks best.
template <class T, class Out = T>
class cublas_product {
 public:
  cublas_product(long m, long n, long k, cublasComputeType_t compute, bool a_is_transposed = false,
                 bool b_is_transposed = false, cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT,
                 void const* bias = nullptr)
      : workspace_(workspace_bytes) {
    check(cublasLtCreate(&handle_), "cuBLASLt");
    check(cublasLtMatmulDescCreate(&what_, compute, CUDA_R_32F), "a product");
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
    check(cublasLtMatmulPreferenceCreate(&wish), "a preference");
    std::size_t const most = workspace_bytes;
    check(cublasLtMatmulPreferenceSetAttribute(wish, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &most, sizeof most),
          "a preference");
    cublasLtMatmulHeuristicResult_t best{};
    int found = 0;
    check(cublasLtMatmulAlgoGetHeuristic(handle_, what_, b_, a_, c_, c_, wish, 1, &best, &found),
          "choice of an algorithm");
    cublasLtMatmulPreferenceDestroy(wish);
    if (found == 0) pp::complain<pp::error>({"cuBLASLt has no algorithm for this product"});
    algorithm_ = best.algo;
  }
  cublas_product(cublas_product const&) = delete;
  cublas_product& operator=(cublas_product const&) = delete;
  ~cublas_product() {
    for (cublasLtMatrixLayout_t l : {a_, b_, c_}) cublasLtMatrixLayoutDestroy(l);
    cublasLtMatmulDescDestroy(what_);
    cublasLtDestroy(handle_);
  }

  void run(void const* a, void const* b, void* c, cudaStream_t on = nullptr) const {
    float const one = 1, zero = 0;
    check(cublasLtMatmul(handle_, what_, &one, b, b_, a, a_, &zero, c, c_, c, c_, &algorithm_, workspace_.data(),
                         workspace_bytes, on),
          "a product");
  }

 private:
  static constexpr long workspace_bytes = 32 << 20;

  template <class Value>
  void set(cublasLtMatmulDescAttributes_t which, Value const& value) {
    check(cublasLtMatmulDescSetAttribute(what_, which, &value, sizeof value), "a product");
  }
  static void layout(cublasLtMatrixLayout_t& l, cudaDataType_t type, long rows, long columns) {
    check(cublasLtMatrixLayoutCreate(&l, type, std::uint64_t(rows), std::uint64_t(columns), rows), "a matrix");
  }

  cublasLtHandle_t handle_ = nullptr;
  cublasLtMatmulDesc_t what_ = nullptr;
  cublasLtMatrixLayout_t a_ = nullptr, b_ = nullptr, c_ = nullptr;
  cublasLtMatmulAlgo_t algorithm_{};
  device_buffer workspace_;
};

}  // namespace bench
