// SPDX-License-Identifier: BSL-1.0
//
// The backend option, and the backend's checks of the options that depend on it.
#pragma once

#include <type_traits>

#include <pipe/backend/backend.hpp>
#include <pipe/backend/cuda/backend.hpp>
#include <pipe/backend/host/backend.hpp>
#include <pipe/base/constant.hpp>
#include <pipe/plan/options/gradient_accumulation.hpp>
#include <pipe/plan/options/optimizer.hpp>
#include <pipe/plan/options/overlap.hpp>
#include <pipe/plan/options/precision.hpp>
#include <pipe/plan/options/products.hpp>
#include <pipe/plan/options/transport.hpp>

namespace pp {

namespace option_family {

/// The family of backends: every compute_backend. A backend checks by itself whether it supports
/// the other options and the model.
struct backend : detail::any_family {
  using fallback = Host;
  template <class O>
  static constexpr bool holds() {
    return detail::compute_backend<O>;
  }

  /// The options that a backend's checks may read.
  template <class Options>
  struct chosen {
    using precision = typename Options::template get<option_family::precision>;
    using optimizer = typename Options::template get<option_family::optimizer>;
    using products = typename Options::template get<option_family::products>;
    using transport = typename Options::template get<option_family::transport>;
    using sum = typename Options::template get<option_family::sum>;
    static constexpr bool needs_cublaslt = detail::needs_cublaslt(products::products);
  };

  /// The backend's own checks, then whether the optimizer's workspace is a constant expression.
  template <class Options>
  static constexpr auto diagnose() {
    using option = typename Options::template get<backend>;
    using beside = chosen<Options>;
    using update = typename beside::optimizer;
    using by = detail::replicated_by<typename Options::template get<stages>,
                                     typename Options::template get<schedule>>;
    using found = decltype(option::template diagnose<beside>());
    using overlap = decltype(detail::diagnose_overlap<Options, option>());
    if constexpr (!detail::is_accepted<typename found::type>)
      return found{};
    else if constexpr (!detail::is_accepted<typename overlap::type>)
      return overlap{};
    else if constexpr (!std::is_void_v<by> && option::has_own_memory)
      return detail::diagnosis_of<wrong::replicas_of_a_stage_are_on_the_host, by, option>();
    else if constexpr (!detail::is_constant<detail::workspace_call<
                           update, option, typename beside::precision::element>>)
      return detail::diagnosis_of<wrong::function_must_be_constexpr, update,
                                  wrong::Function<wrong::member::workspace_elements>>();
    else
      return std::type_identity<detail::nothing_wrong>{};
  }

  template <class M, class Options>
  static constexpr auto diagnose_for() {
    using overlap = decltype(detail::diagnose_overlap_of_model<M, Options>());
    if constexpr (!detail::is_accepted<typename overlap::type>)
      return overlap{};
    else
      return Options::template get<backend>::template diagnose_model<M, chosen<Options>>();
  }
};

}  // namespace option_family

}  // namespace pp
