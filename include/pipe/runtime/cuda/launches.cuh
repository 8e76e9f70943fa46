// SPDX-License-Identifier: BSL-1.0
//
// The launch of each kernel group of a pipeline: this library's kernels or, for a matrix product,
// cuBLASLt with this library's kernels before and after the call. The pipeline's options choose the
// launch once, at construction. A table's gradient may be sorted by another library in the same
// way.
#pragma once

#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <pipe/backend/cuda/matmul/cublaslt.cuh>
#include <pipe/backend/cuda/lowering/lowering.hpp>
#include <pipe/base/list.hpp>
#include <pipe/base/owner.hpp>
#include <pipe/runtime/cuda/attention_calls.cuh>
#include <pipe/runtime/cuda/kernel_list.cuh>
#include <pipe/runtime/cuda/executor.cuh>
#include <pipe/runtime/cuda/autotune.cuh>

namespace pp {

namespace cuda {

/// Launch arguments with a group's operands. Not inlined, as the loop would be unrolled for each
/// group.
[[gnu::noinline]] inline arguments with_operands(arguments a, void* const* operands, int count) {
  for (int k = 0; k < count; ++k) a.operand[k] = operands[k];
  return a;
}
/// cuda_group::launch by this library's kernels.
template <class P, int G, class Kernels = lowered<P, G>>
void launch_group(void const*, arguments const& a, void* const* operands, cudaStream_t stream) {
  launch_kernels(Kernels{}, with_operands(a, operands, group_of<P, G>::value.operands), stream);
}
/// cuda_group::launch of a chain. Kernels: a narrow_mlp.
template <class Kernels>
void launch_chain_of(void const*, arguments const& a, void* const* operands, cudaStream_t stream) {
  auto const launch = [&]<class... Body>(kernel_list<Body...>, auto const& packed) {
    (launch_body<Body>(packed, stream), ...);
  };
  launch(Kernels::kernels(), Kernels::pack(a, operands));
}
/// cuda_group::launch by cuBLASLt. made: a cublaslt_product.
template <class P, int G, bool TakesAll = true>
void launch_group_by_cublaslt(void const* made, arguments const& shared, void* const* operands,
                              cudaStream_t stream) {
  using lowering = blas_lowering<P, G, TakesAll>;
  arguments const a = with_operands(shared, operands, group_of<P, G>::value.operands);
  launch_kernels(typename lowering::before{}, a, stream);
  static_cast<cublaslt_product const*>(made)->enqueue(a, stream);
  launch_kernels(typename lowering::after{}, a, stream);
}

/// cuda_group::launch of a table's gradient whose rows another library sorts. Sort: an option's
/// row_sort.
template <class P, int G, class Sort>
void launch_group_by_sort(void const*, arguments const& shared, void* const* operands,
                          cudaStream_t stream) {
  using lowering = sort_lowering<P, G>;
  arguments const a = with_operands(shared, operands, group_of<P, G>::value.operands);
  launch_kernels(typename lowering::before{}, a, stream);
  Sort::enqueue(lowering::call(a), stream);
  launch_kernels(typename lowering::after{}, a, stream);
}

}  // namespace cuda

namespace detail {

/// The launches of compiled pipeline P. Construction selects them, and times the candidates if the
/// product option is `timed`.
template <class P>
class cuda_launches {
 public:
  [[gnu::cold]] explicit cuda_launches([[maybe_unused]] cudaDeviceProp const& device) {
    [&]<int... G>(std::integer_sequence<int, G...>) {
      (decide<G, P::is_launched_alone(G)>(), ...);
    }(std::make_integer_sequence<int, P::groups>{});
    [&]<int... C>(std::integer_sequence<int, C...>) {
      (prepare_chain<C>(device), ...);
    }(std::make_integer_sequence<int, chains>{});
  }
  /// By launch number: groups first, then chains.
  cuda_group const* groups() const { return groups_.items; }

  /// Summary for reports: ", cuBLASLt for 5 of 9 products", or the reason why cuBLASLt is not
  /// available, then the same for attentions, and ", CUB for 1 of 1 sorts"; empty if the pipeline
  /// uses no other library.
  [[gnu::cold]] std::string text() const {
    return products_text() + attentions_.text() + sorts_text();
  }

 private:
  using source = cuda::source_of<P>;
  static constexpr int chains = P::chain_kernels().count;

  [[gnu::cold]] std::string products_text() const {
    if (handle_ == nullptr) return "";
    if (!cuda::cublaslt_handle::missing().empty())
      return ", without cuBLASLt: " + cuda::cublaslt_handle::missing();
    return ", cuBLASLt for " + std::to_string(by_cublaslt_) + " of " + std::to_string(products_) +
           " products";
  }
  [[gnu::cold]] std::string sorts_text() const {
    if constexpr (std::is_void_v<typename P::row_sort>)
      return "";
    else
      return sorts_ == 0
                 ? ""
                 : std::string(", ") + P::row_sort::name + " for " + std::to_string(by_library_) +
                       " of " + std::to_string(sorts_) + " sorts";
  }

  /// Prepares the kernels of chain C.
  ///
  /// throws: pp::error if the device has too little shared memory, which is known at run time only
  template <int C>
  [[gnu::cold]] void prepare_chain(cudaDeviceProp const& device) {
    using kernels = cuda::chain_kernels<P, C>;
    long const needed = cuda::most_shared_bytes(kernels::kernels());
    if (needed > long(device.sharedMemPerBlockOptin))
      throw_error<error>({"a kernel of ", kernels::launches, " narrow layers needs ", needed,
                          " bytes of shared memory and ", device.name, " has ",
                          long(device.sharedMemPerBlockOptin),
                          ": compile the program for this device too (nvcc -arch=native)"});
    cuda::prepare_kernels(kernels::kernels());
    groups_[P::groups + C] = {&cuda::launch_chain_of<kernels>, nullptr,
                              cuda::count_of(kernels::kernels())};
  }

  /// Chooses the launch of group G. cuBLASLt is used if the option asks for it and it is installed,
  /// supports the product and, for `timed`, is faster; otherwise this library's kernels are used. A
  /// group that only chains run has no launch.
  template <int G, bool IsLaunched>
  [[gnu::cold]] void decide() {
    products_ += is_contraction(cuda::group_of<source, G>::value.anchor);
    if constexpr (IsLaunched) prepare_group<G>();
  }
  /// Prepares this library's kernels of group G, and the call of another library if that takes the
  /// group. What another library takes depends on its version and on the device, so this library's
  /// kernels are always prepared.
  template <int G>
  [[gnu::cold]] void prepare_group() {
    constexpr product_policy policy = cuda::policy_of<source, G, P::products>();
    using kernels = decltype(cuda::kernels_under<source, G, P::products>());
    if constexpr (policy == product_policy::wgmma)
      static_assert(cuda::most_shared_bytes(kernels{}) <= cuda::wgmma_shared_bytes);
    else
      static_assert(cuda::fit_every_device(kernels{}));
    cuda::prepare_kernels(kernels{});
    groups_[G] = {&cuda::launch_group<source, G, kernels>, nullptr, cuda::count_of(kernels{})};
    if constexpr (may_call_cublaslt(policy)) {
      if (handle_ == nullptr) handle_ = owner<cuda::cublaslt_handle>(new cuda::cublaslt_handle);
      bool const takes_all = use_cublaslt<G, true>();
      // cuBLASLt may support only the bare product, or be faster at it.
      constexpr cuda::blas_product product = cuda::blas_lowering<source, G>::product;
      if constexpr (product.activation != cuda::blas_activation::none)
        if (!takes_all || policy == product_policy::timed) use_cublaslt<G, false>();
      if (groups_[G].made != nullptr) {
        ++by_cublaslt_;
        return;
      }
    }
    attentions_.template decide<source, G>(groups_[G]);
    if constexpr (cuda::is_for_library_sort<source, G, typename P::row_sort>()) decide_sort<G>();
  }

  /// Lets another library sort the rows of group G, if the plan has the memory that this library
  /// asks for.
  template <int G>
  void decide_sort() {
    using sort = typename P::row_sort;
    using lowering = cuda::sort_lowering<source, G>;
    ++sorts_;
    if (sort::temporary_bytes(lowering::rows, lowering::bits) >
        std::size_t(lowering::temporary_bytes))
      return;
    cuda::prepare_kernels(typename lowering::before{});
    groups_[G] = {&cuda::launch_group_by_sort<source, G, sort>, nullptr,
                  cuda::count_of(typename lowering::before{}) + sort::nodes(lowering::bits) +
                      cuda::count_of(typename lowering::after{})};
    ++by_library_;
  }
  /// Takes cuBLASLt for group G. False if cuBLASLt has no such product; then the launch stays as it
  /// is.
  template <int G, bool TakesAll>
  bool use_cublaslt() {
    using lowering = cuda::blas_lowering<source, G, TakesAll>;
    static_assert(cuda::fit_every_device(typename lowering::before{}));
    static_assert(cuda::fit_every_device(typename lowering::after{}));
    auto made = cuda::cublaslt_product::make(*handle_, lowering::product, lowering::first_byte);
    if (made == nullptr) return false;
    cuda::prepare_kernels(typename lowering::before{});
    cuda::prepare_kernels(typename lowering::after{});
    cuda_group const other{&cuda::launch_group_by_cublaslt<source, G, TakesAll>, made.get(),
                           cuda::count_of(typename lowering::before{}) + 1 +
                               cuda::count_of(typename lowering::after{})};
    if constexpr (cuda::policy_of<source, G, P::products>() == product_policy::timed) {
      cuda::autotuner tuner(cuda::operand_bytes<source, G>(),
                            cuda::workspace_of<source, G, P::products>());
      if (!tuner.is_faster(other, groups_[G])) return true;
    }
    groups_[G] = other;
    made_.push_back(std::move(made));
    return true;
  }

  list<cuda_group, P::groups + chains> groups_;
  owner<cuda::cublaslt_handle> handle_;  // null: no product may use cuBLASLt
  /// Owners of cuda_group::made; destroyed before handle_, with which the products were made.
  std::vector<owner<cuda::cublaslt_product>> made_;
  /// Groups that are matrix products, and how many of them cuBLASLt computes.
  int products_ = 0, by_cublaslt_ = 0;
  attention_calls<typename P::attention_library> attentions_;
  /// Groups with a sort, and how many of them the library of an option sorts.
  int sorts_ = 0, by_library_ = 0;
};

}  // namespace detail

}  // namespace pp
