// SPDX-License-Identifier: BSL-1.0
//
// Matrix products by cuBLASLt. The library is opened when a program uses it, so that no program has
// to link it; where it is not installed, kernels of this library run all products.
//
// The descriptors and the algorithm of a product are created once. The algorithm is cuBLASLt's
// first choice for the shape: the same in every run with one version of cuBLASLt on one kind of
// GPU, and so are the bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include <pipe/backend/cuda/matmul/blas_lowering.hpp>
#include <pipe/backend/cuda/matmul/cublaslt_interface.hpp>
#include <pipe/backend/cuda/core/check.cuh>
#include <pipe/base/owner.hpp>

#ifdef __CUDACC__

#include <dlfcn.h>

namespace pp::cuda {

/// cuBLASLt, opened by name.
class cublaslt : public lt::functions {
 public:
  /// The library, opened by the first call.
  static cublaslt const& library() {
    static cublaslt const one;
    return one;
  }
  /// The reason why the library cannot be used; empty if it can.
  std::string const& missing() const { return missing_; }

  /// Throws pp::error, "cuBLASLt, `what`: reason", if a call failed.
  void check(lt::status status, char const* what) const {
    if (status != lt::status::success)
      detail::throw_error<error>({"cuBLASLt, ", what, ": ", text_of(status)});
  }

 private:
  /// Opens the library, which stays open until the program ends.
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
    find(multiply, "cublasLtMatmul");
  }
  std::string missing_;
};

/// The library's handle: one for each engine, shared by all streams.
class cublaslt_handle {
 public:
  /// Null if there is no library.
  [[gnu::cold]] cublaslt_handle() {
    if (!missing().empty()) return;
    lt::context* made = nullptr;
    cublaslt const& library = cublaslt::library();
    library.check(library.create(&made), "a handle");
    handle_ = handle(made, library.destroy);
  }
  static std::string const& missing() { return cublaslt::library().missing(); }
  operator lt::context*() const { return handle_.get(); }

 private:
  using handle = detail::owner<lt::context, decltype(lt::functions::destroy)>;
  handle handle_;
};

/// A described product, ready to be enqueued.
class cublaslt_product {
 public:
  /// Null if the library has no algorithm for this product, or is missing.
  static detail::owner<cublaslt_product> make(cublaslt_handle const& handle, blas_product const& p,
                                              long first_byte) {
    if (!cublaslt_handle::missing().empty()) return nullptr;
    detail::owner<cublaslt_product> made(new cublaslt_product(handle, p, first_byte));
    if (!made->finds_algorithm()) return nullptr;
    return made;
  }

  /// Enqueues the product on a stream. needs: one host thread at a time, since the bias is a part
  /// of the descriptor
  void enqueue(arguments const& a, cudaStream_t stream) const {
    if (p_.bias >= 0) set(field::bias, static_cast<void const*>(a.operand[p_.bias]), "a bias");
    bool const adds = p_.c >= 0 || (p_.accumulates && a.accumulate);
    if (p_.activation != blas_activation::none)
      set(field::aux, p_.aux >= 0 ? a.operand[p_.aux] : static_cast<void*>(a.workspace),
          "an activation");
    float const one = 1, beta = adds ? 1.0f : 0.0f;
    void const* const c = a.operand[p_.c >= 0 ? p_.c : p_.d];
    void const* const b = p_.b >= 0 ? a.operand[p_.b] : a.workspace;
    lt_.check(
        lt_.multiply(handle_, operation_.get(), &one, a.operand[p_.a], layout_a_.get(), b,
                     layout_b_.get(), &beta, c, layout_d_.get(), a.operand[p_.d], layout_d_.get(),
                     &algorithm_, workspace_of(a), std::size_t(blas_bytes), stream),
        "a matrix product");
  }

 private:
  using field = lt::operation_field;
  using operation = detail::owner<lt::operation, decltype(lt::functions::destroy_operation)>;
  using layout = detail::owner<lt::layout, decltype(lt::functions::destroy_layout)>;
  using preference = detail::owner<lt::preference, decltype(lt::functions::destroy_preference)>;

  [[gnu::cold]] cublaslt_product(lt::context* handle, blas_product const& p, long first_byte)
      : p_(p), first_byte_(first_byte), handle_(handle),
        layout_a_(p.transposes_a ? layout_of(number(), p.k, p.m, p.lda)
                                 : layout_of(number(), p.m, p.k, p.lda)),
        layout_b_(p.transposes_b ? layout_of(number(), p.n, p.k, p.ldb)
                                 : layout_of(number(), p.k, p.n, p.ldb)),
        layout_d_(layout_of(p.makes_fp32 ? lt::number::fp32 : number(), p.m, p.n, p.ldd)) {
    lt::operation* made = nullptr;
    lt_.check(lt_.create_operation(&made,
                                   p.format == product_format::tf32 ? lt::compute_type::tf32
                                                                    : lt::compute_type::fp32,
                                   lt::number::fp32),
              "the description of a product");
    operation_ = operation(made, lt_.destroy_operation);
    constexpr lt::transposition transposed = lt::transposition::transposed;
    if (p.transposes_a) set(field::transposition_a, transposed, "a transposed operand");
    if (p.transposes_b) set(field::transposition_b, transposed, "a transposed operand");
    set(field::epilogue, epilogue_of(p), "an epilogue");
    // These addresses are not read before a product runs: the choice of an algorithm depends on
    // their alignment only.
    auto const aligned = reinterpret_cast<void*>(std::size_t(detail::alignment));
    if (p.bias >= 0) set(field::bias, aligned, "a bias");
    if (p.activation != blas_activation::none) {
      set(field::aux, aligned, "an activation");
      set(field::aux_leading, std::int64_t(p.ldd), "an activation");
    }
  }

  /// Takes the library's first choice within the workspace. Splits are added in fp32 for every type
  /// of D.
  [[gnu::cold]] bool finds_algorithm() {
    lt::preference* made = nullptr;
    lt_.check(lt_.create_preference(&made), "preferences");
    preference const owner(made, lt_.destroy_preference);
    auto const prefer = [&](lt::preference_field which, auto value) {
      lt_.check(lt_.set_preference(made, which, &value, sizeof value), "a preference");
    };
    using of = lt::preference_field;
    prefer(of::workspace_bytes, std::uint64_t(blas_bytes));
    prefer(of::reductions, lt::reduces_in_compute_type);
    std::uint32_t const d = row_alignment(p_.ldd, p_.makes_fp32 ? 4 : bytes_of(p_.format));
    prefer(of::alignment_a, row_alignment(p_.lda, bytes_of(p_.format)));
    prefer(of::alignment_b, row_alignment(p_.ldb, bytes_of(p_.format)));
    prefer(of::alignment_c, d);
    prefer(of::alignment_d, d);
    lt::choice found{};
    int count = 0;
    lt::status const status =
        lt_.choose(handle_, operation_.get(), layout_a_.get(), layout_b_.get(), layout_d_.get(),
                   layout_d_.get(), made, 1, &found, &count);
    if (status == lt::status::not_supported) return false;
    lt_.check(status, "the choice of an algorithm");
    if (count == 0 || found.state != lt::status::success) return false;
    algorithm_ = found.algorithm;
    return true;
  }
  /// The alignment of rows, which kernels need too: the largest access that divides a row.
  static std::uint32_t row_alignment(extent elements, int bytes) {
    std::uint32_t most = 16;
    while (elements * bytes % most != 0) most /= 2;
    return most;
  }

  lt::number number() const {
    return p_.format == product_format::bf16   ? lt::number::bf16
           : p_.format == product_format::fp16 ? lt::number::fp16
                                               : lt::number::fp32;
  }
  static lt::epilogue epilogue_of(blas_product const& p) {
    switch (p.activation) {
      case blas_activation::none: return p.bias >= 0 ? lt::epilogue::bias : lt::epilogue::none;
      case blas_activation::gelu:
        return p.bias >= 0 ? lt::epilogue::gelu_aux_bias : lt::epilogue::gelu_aux;
      case blas_activation::gelu_gradient: break;
    }
    return lt::epilogue::gelu_gradient;
  }
  [[gnu::cold]] layout layout_of(lt::number type, extent rows, extent columns,
                                 extent leading) const {
    lt::layout* made = nullptr;
    lt_.check(lt_.create_layout(&made, type, std::uint64_t(rows), std::uint64_t(columns), leading),
              "a layout");
    return layout(made, lt_.destroy_layout);
  }
  template <class Value>
  void set(field which, Value value, char const* what) const {
    lt_.check(lt_.set_operation(operation_.get(), which, &value, sizeof value), what);
  }
  /// The workspace of the call, behind the first_byte_ bytes in use.
  void* workspace_of(arguments const& a) const {
    return a.workspace_from(first_byte_, blas_alignment);
  }

  blas_product p_;
  long first_byte_;
  cublaslt const& lt_ = cublaslt::library();
  lt::context* handle_;
  operation operation_;
  layout layout_a_, layout_b_, layout_d_;
  lt::algorithm algorithm_{};
};

}  // namespace pp::cuda

#else

namespace pp::cuda {

struct cublaslt_handle {
  static std::string missing() { return "not compiled by nvcc"; }
};
struct cublaslt_product {
  static detail::owner<cublaslt_product> make(cublaslt_handle const&, blas_product const&, long) {
    return nullptr;
  }
  void enqueue(arguments const&, cudaStream_t) const {}
};

}  // namespace pp::cuda

#endif
