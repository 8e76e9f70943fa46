// SPDX-License-Identifier: BSL-1.0
//
// Lists of kernels that run one after the other: a group is lowered to a list, by the kind of its
// anchor.
#pragma once

#include <type_traits>

#include <pipe/backend/cuda/core/block.hpp>
#include <pipe/graph/op_kind.hpp>

namespace pp::cuda {

template <class... Body>
struct kernel_list {};
template <class... Body>
constexpr int count_of(kernel_list<Body...>) {
  return int(sizeof...(Body));
}

/// The kernels of groups with this anchor; the specialisation for a kind is beside its kernels:
///
///     template <> struct kernel_of<op_kind::some> {
///       template <class P, int G> using list = kernel_list<first_kernel<P, G>, second_kernel<P,
///       G>>;
///     };
template <op_kind Anchor>
struct kernel_of;

/// Base of kernel_of for kinds with one kernel.
template <template <class P, int G> class Kernel>
struct one_kernel {
  template <class P, int G>
  using list = kernel_list<Kernel<P, G>>;
};

/// The list, with Body in front of it if IsWanted.
template <bool IsWanted, class Body, class... Others>
constexpr auto maybe_before(kernel_list<Others...>) {
  return std::conditional_t<IsWanted, kernel_list<Body, Others...>, kernel_list<Others...>>{};
}

/// Whether the block of every kernel fits into the shared memory of every GPU. Kernels that a
/// user-defined layer launches are not counted.
template <class... Body>
constexpr bool fit_every_device(kernel_list<Body...>) {
  bool fit = true;
  [[maybe_unused]] auto const look = [&]<class B>(B const*) {
    if constexpr (requires { typename B::shared; })
      fit = fit && shared_bytes<B> <= least_shared_bytes;
  };
  (look(static_cast<Body const*>(nullptr)), ...);
  return fit;
}

/// Bytes of shared memory of the largest block.
template <class... Body>
constexpr long most_shared_bytes(kernel_list<Body...>) {
  long most = 0;
  for (long const bytes : {0L, long(shared_bytes<Body>)...}) most = bytes > most ? bytes : most;
  return most;
}

/// Bytes of workspace that the list needs: the maximum over its kernels, which share the workspace.
template <class... Body>
constexpr long workspace_of(kernel_list<Body...>) {
  long most = 0;
  [[maybe_unused]] auto const look = [&]<class B>(B const*) {
    if constexpr (requires { B::workspace_bytes; })
      if (B::workspace_bytes > most) most = B::workspace_bytes;
  };
  (look(static_cast<Body const*>(nullptr)), ...);
  return most;
}

}  // namespace pp::cuda
