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

namespace lt = pp::cuda::lt;

template <class T>
constexpr lt::number data_type = sizeof(T) == 4                ? lt::number::fp32
                                 : std::is_same_v<T, pp::bf16> ? lt::number::bf16
                                                               : lt::number::fp16;

/// c[M, N] = a[M, K] b[K, N] in rows, each operand possibly stored transposed, by the algorithm
/// that cuBLASLt thinks best.
template <class T, class Out = T>
class cublas_product {
 public:
  cublas_product(long m, long n, long k, lt::compute_type compute, bool a_is_transposed = false,
                 bool b_is_transposed = false, lt::epilogue epilogue = lt::epilogue::none,
                 void const* bias = nullptr)
      : workspace_(workspace_bytes) {
    lt_.check(lt_.create_operation(&what_, compute, lt::number::fp32), "a product");
    // Rows here are columns there: the operands change places.
    lt::transposition const turns[] = {lt::transposition::none, lt::transposition::transposed};
    set(lt::operation_field::transposition_a, turns[b_is_transposed]);
    set(lt::operation_field::transposition_b, turns[a_is_transposed]);
    set(lt::operation_field::epilogue, epilogue);
    if (bias != nullptr) set(lt::operation_field::bias, bias);
    layout(b_, data_type<T>, b_is_transposed ? k : n, b_is_transposed ? n : k);
    layout(a_, data_type<T>, a_is_transposed ? m : k, a_is_transposed ? k : m);
    layout(c_, data_type<Out>, n, m);
    lt::preference* wish = nullptr;
    lt_.check(lt_.create_preference(&wish), "a preference");
    std::uint64_t const most = workspace_bytes;
    lt_.check(lt_.set_preference(wish, lt::preference_field::workspace_bytes, &most, sizeof most),
              "a preference");
    lt::choice best{};
    int found = 0;
    lt_.check(lt_.choose(handle_, what_, b_, a_, c_, c_, wish, 1, &best, &found),
              "choice of an algorithm");
    lt_.destroy_preference(wish);
    if (found == 0)
      pp::detail::throw_error<pp::error>({"cuBLASLt has no algorithm for this product"});
    algorithm_ = best.algorithm;
  }
  cublas_product(cublas_product const&) = delete;
  cublas_product& operator=(cublas_product const&) = delete;
  ~cublas_product() {
    for (lt::layout* l : {a_, b_, c_}) lt_.destroy_layout(l);
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
  void set(lt::operation_field which, Value const& value) {
    lt_.check(lt_.set_operation(what_, which, &value, sizeof value), "a product");
  }
  void layout(lt::layout*& l, lt::number type, long rows, long columns) {
    lt_.check(lt_.create_layout(&l, type, std::uint64_t(rows), std::uint64_t(columns), rows),
              "a matrix");
  }

  pp::cuda::cublaslt const& lt_ = pp::cuda::cublaslt::library();
  pp::cuda::cublaslt_handle const handle_;
  lt::operation* what_ = nullptr;
  lt::layout *a_ = nullptr, *b_ = nullptr, *c_ = nullptr;
  lt::algorithm algorithm_{};
  device_buffer workspace_;
};

/// Microseconds of c[m, n] = a[m, k] b[k, n] by cuBLASLt; 0 where there is none.
template <class T, class Out = T>
double microseconds_of_cublaslt(long m, long n, long k, bool in_tf32, bool a_is_transposed,
                                bool b_is_transposed, void const* a, void const* b, void* c) {
  if (has_cublaslt()) {
    cublas_product<T, Out> const product(m, n, k,
                                         in_tf32 ? lt::compute_type::tf32 : lt::compute_type::fp32,
                                         a_is_transposed, b_is_transposed);
    return microseconds([&](cudaStream_t on) { product.run(a, b, c, on); });
  }
  return 0;
}

}  // namespace bench
