// SPDX-License-Identifier: BSL-1.0
//
// How each kernel group of a pipeline is launched: by its own kernels, or, if it is a matrix
// product, by cuBLASLt with its own kernels around the call. Decided once, at construction, as the
// pipeline's option says.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <pipe/backend/cuda/matmul/cublaslt.cuh>
#include <pipe/backend/cuda/lowering.hpp>
#include <pipe/base/list.hpp>
#include <pipe/runtime/cuda/bodies.cuh>
#include <pipe/runtime/cuda/machine.cuh>
#include <pipe/runtime/cuda/autotune.cuh>

namespace pp {

namespace cuda {

template <class P, int G>
void launch_group(void const*, arguments const& a, cudaStream_t stream) {
  launch_bodies(lowered<P, G>{}, a, stream);
}
/// made: a cublaslt_product
template <class P, int G>
void launch_group_by_cublaslt(void const* made, arguments const& a, cudaStream_t stream) {
  using lowering = blas_lowering<P, G>;
  launch_bodies(typename lowering::before{}, a, stream);
  static_cast<cublaslt_product const*>(made)->enqueue(a, stream);
  launch_bodies(typename lowering::after{}, a, stream);
}

}  // namespace cuda

/// P: a compiled pipeline.
template <class P>
class cuda_launches {
 public:
  cuda_launches() {
    [&]<int... G>(std::integer_sequence<int, G...>) {
      (decide<G>(), ...);
    }(std::make_integer_sequence<int, P::groups>{});
  }
  cuda_group const* groups() const { return groups_.items; }

  /// What a reader wants to know of it: ", cuBLASLt for 5 of 9 products", or why there is none;
  /// nothing if it was not asked for.
  std::string text() const {
    if (handle_ == nullptr) return "";
    if (!cuda::cublaslt_handle::missing().empty())
      return ", without cuBLASLt: " + cuda::cublaslt_handle::missing();
    return ", cuBLASLt for " + std::to_string(by_cublaslt_) + " of " + std::to_string(products_) +
           " products";
  }

 private:
  using source = cuda::source_of<P>;

  template <int G>
  void decide() {
    constexpr product_policy policy = cuda::policy_of<source, G, P::products>();
    static_assert(cuda::fit_every_device(cuda::lowered<source, G>{}));
    cuda::prepare_bodies(cuda::lowered<source, G>{});
    groups_[G] = {&cuda::launch_group<source, G>, nullptr};
    products_ += is_contraction(cuda::group_of<source, G>::value.anchor);
    if constexpr (policy != product_policy::own) {
      using lowering = cuda::blas_lowering<source, G>;
      static_assert(cuda::fit_every_device(typename lowering::before{}));
      static_assert(cuda::fit_every_device(typename lowering::after{}));
      if (handle_ == nullptr) handle_ = std::make_unique<cuda::cublaslt_handle>();
      auto made = cuda::cublaslt_product::make(*handle_, lowering::product, lowering::first_byte);
      if (made == nullptr) return;
      cuda::prepare_bodies(typename lowering::before{});
      cuda::prepare_bodies(typename lowering::after{});
      cuda_group const other{&cuda::launch_group_by_cublaslt<source, G>, made.get()};
      if constexpr (policy == product_policy::timed) {
        cuda::race_track track(cuda::operand_bytes<source, G>(),
                               cuda::workspace_of<source, G, P::products>());
        if (!track.is_faster(other, groups_[G])) return;
      }
      groups_[G] = other;
      made_.push_back(std::move(made));
      ++by_cublaslt_;
    }
  }

  list<cuda_group, P::groups> groups_;
  std::unique_ptr<cuda::cublaslt_handle> handle_;  // of who may use cuBLASLt
  std::vector<std::unique_ptr<cuda::cublaslt_product>> made_;
  int products_ = 0, by_cublaslt_ = 0;
};

}  // namespace pp
