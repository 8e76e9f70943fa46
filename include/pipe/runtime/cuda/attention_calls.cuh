// SPDX-License-Identifier: BSL-1.0
//
// The attentions of a pipeline that a library computes, chosen once, at construction, by the
// pipeline's attention option.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <pipe/backend/cuda/attention/attention_call.hpp>
#include <pipe/backend/cuda/core/kernel_list.hpp>
#include <pipe/base/owner.hpp>
#include <pipe/runtime/cuda/group_launch.cuh>
#include <pipe/runtime/cuda/kernel_list.cuh>

namespace pp::detail {

/// The calls of a library for the attentions of a pipeline. Library: an option's attention_library,
/// which has
///
///     static constexpr char const* name;
///     static std::string missing();  // why the library cannot be used; empty if it can
///     struct session;                // one for all calls of an engine
///     static owner<Library> make(session const&, cuda::attention_call const&);
///     void enqueue(cuda::arguments const&, cudaStream_t) const;
template <class Library>
class attention_calls {
 public:
  /// The launch of group G of P becomes a call if the library takes it.
  template <class P, int G>
  void decide(cuda_group& launch) {
    if constexpr (cuda::group_of<P, G>::value.anchor == op_kind::attention) {
      ++attentions_;
      if constexpr (cuda::is_attention_call<P, G>()) {
        if (!Library::missing().empty()) return;
        if (session_ == nullptr)
          session_ = owner<typename Library::session>(new typename Library::session);
        constexpr cuda::attention_call call = cuda::describe_attention_call<P, G>();
        auto made = Library::make(*session_, call);
        if (made == nullptr) return;
        cuda::prepare_kernels(cuda::before_attention<P, G>());
        cuda::prepare_kernels(cuda::after_attention<P, G>());
        launch = {&enqueue<P, G>, made.get(),
                  cuda::count_of(cuda::before_attention<P, G>()) +
                      cuda::count_of(cuda::after_attention<P, G>()) +
                      2};  // the call: a kernel, and the clearing of its workspace
        made_.push_back(std::move(made));
      }
    }
  }
  /// For reports: ", cuDNN for 12 of 12 attentions", or why the library is not used; empty for a
  /// pipeline without attention.
  std::string text() const {
    if (attentions_ == 0) return "";
    if (std::string const why = Library::missing(); !why.empty())
      return std::string(", without ") + Library::name + ": " + why;
    return std::string(", ") + Library::name + " for " + std::to_string(made_.size()) + " of " +
           std::to_string(attentions_) + " attentions";
  }

 private:
  template <class P, int G>
  static void enqueue(void const* made, cuda::arguments const& shared, void* const* operands,
                      cudaStream_t stream) {
    cuda::arguments a = shared;
    for (int k = 0; k < cuda::group_of<P, G>::value.operands; ++k) a.operand[k] = operands[k];
    cuda::launch_kernels(cuda::before_attention<P, G>(), a, stream);
    static_cast<Library const*>(made)->enqueue(a, stream);
    cuda::launch_kernels(cuda::after_attention<P, G>(), a, stream);
  }

  owner<typename Library::session> session_;
  std::vector<owner<Library>> made_;  // destroyed before the session
  int attentions_ = 0;
};

/// Without a library the pipeline's own kernels compute all attentions.
template <>
class attention_calls<void> {
 public:
  template <class P, int G>
  void decide(cuda_group&) {}
  std::string text() const { return ""; }
};

}  // namespace pp::detail
