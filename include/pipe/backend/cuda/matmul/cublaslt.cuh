// SPDX-License-Identifier: BSL-1.0
//
// Matrix products by cuBLASLt. The library is opened when a program asks for it, so that no program
// has to link it; where it is not, or where <cublasLt.h> was not when the program was compiled,
// everything runs by our own kernels.
//
// A product's descriptors and its algorithm are made once. The algorithm is the library's first
// choice for the shape: the same on every run of one version of the library on one kind of GPU, and
// so are the bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include <pipe/backend/cuda/matmul/blas_lowering.hpp>
#include <pipe/backend/cuda/block/check.cuh>
#include <pipe/base/owner.hpp>

#if defined(__CUDACC__) && __has_include(<cublasLt.h>)

#include <cublasLt.h>
#include <dlfcn.h>

namespace pp::cuda {

/// The functions of the library that are used.
class cublaslt {
 public:
  /// Opened by the first call.
  static cublaslt const& library() {
    static cublaslt const one;
    return one;
  }
  /// Why the library cannot be used; empty if it can.
  std::string const& missing() const { return missing_; }

  /// Throws pp::error, "cuBLASLt, `what`: reason", if a call failed.
  void check(cublasStatus_t status, char const* what) const {
    if (status != CUBLAS_STATUS_SUCCESS)
      detail::throw_error<error>({"cuBLASLt, ", what, ": ", text_of(status)});
  }

  decltype(cublasLtCreate)* create = nullptr;
  decltype(cublasLtDestroy)* destroy = nullptr;
  decltype(cublasLtGetStatusString)* text_of = nullptr;
  decltype(cublasLtMatmulDescCreate)* create_operation = nullptr;
  decltype(cublasLtMatmulDescDestroy)* destroy_operation = nullptr;
  decltype(cublasLtMatmulDescSetAttribute)* set_operation = nullptr;
  decltype(cublasLtMatrixLayoutCreate)* create_layout = nullptr;
  decltype(cublasLtMatrixLayoutDestroy)* destroy_layout = nullptr;
  decltype(cublasLtMatmulPreferenceCreate)* create_preference = nullptr;
  decltype(cublasLtMatmulPreferenceDestroy)* destroy_preference = nullptr;
  decltype(cublasLtMatmulPreferenceSetAttribute)* set_preference = nullptr;
  decltype(cublasLtMatmulAlgoGetHeuristic)* choose = nullptr;
  decltype(cublasLtMatmulAlgoCheck)* check_algorithm = nullptr;
  decltype(cublasLtMatmul)* multiply = nullptr;

 private:
  /// It stays open until the program ends.
  [[gnu::cold]] cublaslt() {
    void* opened = nullptr;
    for (char const* name : {"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"})
      if (opened == nullptr) opened = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (opened == nullptr) {
      missing_ = dlerror();
      return;
    }
    auto const find = [&]<class F>(F*& f, char const* name) {
      f = reinterpret_cast<F*>(dlsym(opened, name));
      if (f == nullptr && missing_.empty())
        missing_ = std::string("no ") + name + " in libcublasLt";
    };
    find(create, "cublasLtCreate");
    find(destroy, "cublasLtDestroy");
    find(text_of, "cublasLtGetStatusString");
    find(create_operation, "cublasLtMatmulDescCreate");
    find(destroy_operation, "cublasLtMatmulDescDestroy");
    find(set_operation, "cublasLtMatmulDescSetAttribute");
    find(create_layout, "cublasLtMatrixLayoutCreate");
    find(destroy_layout, "cublasLtMatrixLayoutDestroy");
    find(create_preference, "cublasLtMatmulPreferenceCreate");
    find(destroy_preference, "cublasLtMatmulPreferenceDestroy");
    find(set_preference, "cublasLtMatmulPreferenceSetAttribute");
    find(choose, "cublasLtMatmulAlgoGetHeuristic");
    find(check_algorithm, "cublasLtMatmulAlgoCheck");
    find(multiply, "cublasLtMatmul");
  }
  std::string missing_;
};

/// One per engine. The library's own state, shared by all streams.
class cublaslt_handle {
 public:
  /// Null where there is no library.
  [[gnu::cold]] cublaslt_handle() {
    if (!missing().empty()) return;
    cublasLtHandle_t made = nullptr;
    cublaslt const& lt = cublaslt::library();
    lt.check(lt.create(&made), "a handle");
    handle_ = handle(made, lt.destroy);
  }
  static std::string const& missing() { return cublaslt::library().missing(); }
  operator cublasLtHandle_t() const { return handle_.get(); }

 private:
  using handle = detail::owner<cublasLtContext, decltype(cublasLtDestroy)*>;
  handle handle_;
};

/// A described product, ready to be enqueued.
class cublaslt_product {
 public:
  /// Null if the library cannot do this one, or is not there.
  static detail::owner<cublaslt_product> make(cublaslt_handle const& handle, blas_product const& p,
                                              long first_byte) {
    if (!cublaslt_handle::missing().empty()) return nullptr;
    detail::owner<cublaslt_product> made(new cublaslt_product(handle, p, first_byte));
    if (!made->finds_algorithm()) return nullptr;
    return made;
  }

  /// On one host thread at a time: the bias is a part of the descriptor.
  void enqueue(arguments const& a, cudaStream_t stream) const {
    if (p_.bias >= 0)
      set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, static_cast<void const*>(a.slot[p_.bias]), "a bias");
    if (p_.sums >= 0) set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, a.workspace, "a bias's gradient");
    bool const adds = p_.c >= 0 || (p_.accumulates && a.accumulate);
    if (p_.activation != blas_activation::none)
      set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER,
          p_.aux >= 0 ? a.slot[p_.aux] : static_cast<void*>(a.workspace), "an activation");
    float const one = 1, beta = adds ? 1.0f : 0.0f;
    void const* const c = a.slot[p_.c >= 0 ? p_.c : p_.d];
    void const* const b = p_.b >= 0 ? a.slot[p_.b] : a.workspace;
    lt_.check(
        lt_.multiply(handle_, operation_.get(), &one, a.slot[p_.a], layout_a_.get(), b,
                     layout_b_.get(), &beta, c, layout_d_.get(), a.slot[p_.d], layout_d_.get(),
                     &algorithm_, workspace_of(a), std::size_t(blas_bytes), stream),
        "a matrix product");
  }

 private:
  using operation = detail::owner<cublasLtMatmulDescOpaque_t, decltype(cublasLtMatmulDescDestroy)*>;
  using layout =
      detail::owner<cublasLtMatrixLayoutOpaque_t, decltype(cublasLtMatrixLayoutDestroy)*>;

  [[gnu::cold]] cublaslt_product(cublasLtHandle_t handle, blas_product const& p, long first_byte)
      : p_(p), first_byte_(first_byte), handle_(handle),
        layout_a_(p.transposes_a ? layout_of(number(), p.k, p.m, p.lda)
                                 : layout_of(number(), p.m, p.k, p.lda)),
        layout_b_(p.transposes_b ? layout_of(number(), p.n, p.k, p.ldb)
                                 : layout_of(number(), p.k, p.n, p.ldb)),
        layout_d_(layout_of(p.makes_fp32 ? CUDA_R_32F : number(), p.m, p.n, p.ldd)) {
    cublasLtMatmulDesc_t made = nullptr;
    lt_.check(lt_.create_operation(&made,
                                   p.format == product_format::tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32
                                                                    : CUBLAS_COMPUTE_32F,
                                   CUDA_R_32F),
              "the description of a product");
    operation_ = operation(made, lt_.destroy_operation);
    if (p.transposes_a) set(CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_T, "a transposed operand");
    if (p.transposes_b) set(CUBLASLT_MATMUL_DESC_TRANSB, CUBLAS_OP_T, "a transposed operand");
    set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue_of(p), "an epilogue");
    // Not read before a product runs: here the library looks at its detail::alignment only.
    auto const aligned = reinterpret_cast<void*>(std::size_t(detail::alignment));
    if (p.bias >= 0 || p.sums >= 0) set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, aligned, "a bias");
    if (p.activation != blas_activation::none) {
      set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, aligned, "an activation");
      set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, std::int64_t(p.ldd), "an activation");
    }
  }

  /// The library's first choice within the workspace. Splits are added up in fp32, in an order of
  /// their own, whatever D is.
  [[gnu::cold]] bool finds_algorithm() {
    cublasLtMatmulPreference_t made = nullptr;
    lt_.check(lt_.create_preference(&made), "preferences");
    detail::owner<cublasLtMatmulPreferenceOpaque_t,
                  decltype(cublasLtMatmulPreferenceDestroy)*> const
        preference(made, lt_.destroy_preference);
    auto const prefer = [&](cublasLtMatmulPreferenceAttributes_t which, auto value) {
      lt_.check(lt_.set_preference(made, which, &value, sizeof value), "a preference");
    };
    prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, std::uint64_t(blas_bytes));
    prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
           std::uint32_t(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
    std::uint32_t const d = row_alignment(p_.ldd, p_.makes_fp32 ? 4 : bytes_of(p_.format));
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, row_alignment(p_.lda, bytes_of(p_.format)));
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, row_alignment(p_.ldb, bytes_of(p_.format)));
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, d);
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, d);
    cublasLtMatmulHeuristicResult_t found{};
    int count = 0;
    cublasStatus_t const status =
        lt_.choose(handle_, operation_.get(), layout_a_.get(), layout_b_.get(), layout_d_.get(),
                   layout_d_.get(), made, 1, &found, &count);
    if (status == CUBLAS_STATUS_NOT_SUPPORTED) return false;
    lt_.check(status, "the choice of an algorithm");
    if (count == 0 || found.state != CUBLAS_STATUS_SUCCESS) return false;
    algorithm_ = found.algo;
    return true;
  }
  /// What our own kernels need of operands, too: a row is whole accesses.
  static std::uint32_t row_alignment(extent elements, int bytes) {
    std::uint32_t most = 16;
    while (elements * bytes % most != 0) most /= 2;
    return most;
  }

  cudaDataType_t number() const {
    return p_.format == product_format::bf16   ? CUDA_R_16BF
           : p_.format == product_format::fp16 ? CUDA_R_16F
                                               : CUDA_R_32F;
  }
  static cublasLtEpilogue_t epilogue_of(blas_product const& p) {
    switch (p.activation) {
      case blas_activation::none:
        if (p.sums >= 0) return CUBLASLT_EPILOGUE_BGRADA;
        return p.bias >= 0 ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
      case blas_activation::gelu:
        return p.bias >= 0 ? CUBLASLT_EPILOGUE_GELU_AUX_BIAS : CUBLASLT_EPILOGUE_GELU_AUX;
      case blas_activation::gelu_gradient: break;
    }
    return CUBLASLT_EPILOGUE_DGELU;
  }
  [[gnu::cold]] layout layout_of(cudaDataType_t type, extent rows, extent columns,
                                 extent leading) const {
    cublasLtMatrixLayout_t made = nullptr;
    lt_.check(lt_.create_layout(&made, type, std::uint64_t(rows), std::uint64_t(columns), leading),
              "a layout");
    return layout(made, lt_.destroy_layout);
  }
  template <class Value>
  void set(cublasLtMatmulDescAttributes_t which, Value value, char const* what) const {
    lt_.check(lt_.set_operation(operation_.get(), which, &value, sizeof value), what);
  }
  /// After what is already in the workspace, where the library wants it.
  void* workspace_of(arguments const& a) const {
    return a.workspace_from(first_byte_, blas_alignment);
  }

  blas_product p_;
  long first_byte_;
  cublaslt const& lt_ = cublaslt::library();
  cublasLtHandle_t handle_;
  operation operation_;
  layout layout_a_, layout_b_, layout_d_;
  cublasLtMatmulAlgo_t algorithm_{};
};

}  // namespace pp::cuda

#else

namespace pp::cuda {

struct cublaslt_handle {
  static std::string missing() { return "compiled without cublasLt.h"; }
};
struct cublaslt_product {
  static detail::owner<cublaslt_product> make(cublaslt_handle const&, blas_product const&, long) {
    return nullptr;
  }
  void enqueue(arguments const&, cudaStream_t) const {}
};

}  // namespace pp::cuda

#endif
