// SPDX-License-Identifier: BSL-1.0
//
// A chain of launches lowered to kernels of its own: Linear and activation layers of up to 128
// channels are one kernel forward, and two kernels backward; the second adds up the splits of the
// weights' gradients.
#pragma once

#include <type_traits>
#include <utility>

#include <pipe/backend/cuda/core/kernel_list.hpp>
#include <pipe/backend/cuda/narrow_mlp/backward.hpp>
#include <pipe/backend/cuda/narrow_mlp/forward.hpp>
#include <pipe/backend/cuda/narrow_mlp/recomputing.hpp>
#include <pipe/base/bytes.hpp>
#include <pipe/passes/chains.hpp>

namespace pp::cuda {

/// The kernels of a chain of groups G of P, of which the first Recomputed are forward launches that
/// a chain of gradients recomputes. Rows: rows of the batch per tile. Dropped: bit k is set if the
/// result of launch k has no place in memory, since only the chain reads this result. ForBackward:
/// chain_kernel::for_backward.
template <class P, int Rows, unsigned Dropped, unsigned ForBackward, int Recomputed, int... G>
struct narrow_mlp {
  static_assert(!detail::has_segments<P>, "chains have the planned rows");
  static constexpr int launches = sizeof...(G);
  static constexpr bool is_forward =
      Recomputed == 0 && group_of<P, launch_at<0, G...>>::value.anchor == op_kind::matmul;
  using arguments = chain_arguments<launches>;
  /// The group of the loss, which is the last of the recomputed launches; -1: none.
  static constexpr int loss = [] {
    constexpr int last = launch_at<(Recomputed > 0 ? Recomputed - 1 : 0), G...>;
    return detail::is_loss(group_of<P, last>::value.anchor) ? last : -1;
  }();

  static constexpr auto kernels() {
    if constexpr (is_forward)
      return kernel_list<narrow_forward_kernel<P, Rows, Dropped, G...>>{};
    else
      return gradients_of(std::make_integer_sequence<int, Recomputed - (loss >= 0)>{},
                          std::make_integer_sequence<int, launches - Recomputed>{});
  }

  template <int H>
  static constexpr long workspace_of_group() {
    if constexpr (group_of<P, H>::value.anchor == op_kind::matmul_weight_gradient)
      return detail::align_up(narrow_weight_sums<P, H>::tiles::workspace_bytes);
    return 0;
  }
  /// The workspaces of the launches follow each other.
  static constexpr long workspace_bytes = (0L + ... + workspace_of_group<G>());

  /// The arguments of the kernels: `each` with the operands of all launches one after the other,
  /// and a workspace of `workspace_bytes`. Results that only backward reads have a place in
  /// training alone.
  static arguments pack(cuda::arguments const& each, void* const* operand) {
    constexpr long bytes[] = {workspace_of_group<G>()...};
    constexpr int counts[] = {group_of<P, G>::value.operands...};
    arguments a;
    char* at = static_cast<char*>(each.workspace);
    for (int i = 0; i < launches; ++i) {
      a.of[i] = each;
      a.of[i].workspace = at;
      if (at != nullptr) at += bytes[i];
      for (int k = 0; k < counts[i]; ++k) a.of[i].operand[k] = *operand++;
    }
    if constexpr (ForBackward != 0)
      if (!each.training) forget(a, std::make_integer_sequence<int, launches>{});
    return a;
  }

 private:
  template <int... Is>
  static void forget(arguments& a, std::integer_sequence<int, Is...>) {
    (forget_of<Is>(a.of[Is]), ...);
  }
  template <int Index>
  static void forget_of(cuda::arguments& a) {
    constexpr narrow_chain_rule rule{};
    constexpr detail::group g = group_of<P, launch_at<Index, G...>>::value;
    for (int k = 0; k < g.operands; ++k)
      if (rule.is_optional(g, k) &&
          (ForBackward >> (k == rule.handed(g) ? Index : Index + detail::chain_kernel::most) & 1))
        a.operand[k] = nullptr;
  }
  template <int... F, int... B>
  static constexpr auto gradients_of(std::integer_sequence<int, F...>,
                                     std::integer_sequence<int, B...>) {
    using sums = narrow_sums_kernel<P, Recomputed, launch_at<Recomputed + B, G...>...>;
    auto const with_sums = []<class Body>(std::type_identity<Body>) {
      if constexpr (sums::blocks_in_all > 0)
        return kernel_list<Body, sums>{};
      else
        return kernel_list<Body>{};
    };
    if constexpr (Recomputed > 0)
      return with_sums(
          std::type_identity<narrow_recomputing_kernel<
              P, Rows, Dropped, loss, std::integer_sequence<int, launch_at<F, G...>...>,
              launch_at<Recomputed + B, G...>...>>{});
    else
      return with_sums(std::type_identity<narrow_backward_kernel<P, Rows, Dropped, G...>>{});
  }
};

/// The narrow_mlp of a chain_kernel, a constant of type `Constant`.
template <class P, class Constant, int... Is>
constexpr auto narrow_mlp_of(std::integer_sequence<int, Is...>) {
  constexpr detail::chain_kernel k = Constant::value;
  return narrow_mlp<P, k.form, k.dropped, k.for_backward, k.recomputed, k.groups[Is]...>{};
}
template <class P, class Constant>
using lowered_narrow_chain =
    decltype(narrow_mlp_of<P, Constant>(std::make_integer_sequence<int, Constant::value.count>{}));

}  // namespace pp::cuda
