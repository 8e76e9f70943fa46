// SPDX-License-Identifier: BSL-1.0
//
// The facts of the host's kernels (facts.hpp) by the anchor of a group, in tables that constant
// expressions look up: the memory plan, the threads of a rank and the choice of tiles ask for them.
// They are those of the portable kernels, as facts are the same on every instruction set.
#pragma once

#include <utility>

#include <pipe/backend/dispatch.hpp>
#include <pipe/backend/host/kernels.hpp>
#include <pipe/base/list.hpp>

namespace pp::host {

/// A fact of the kernel of each kind of anchor; null for the other kinds.
using bytes_facts = detail::list<long (*)(detail::group const&, int, int), detail::op_kinds>;
using parts_facts = detail::list<int (*)(detail::group const&, int, int), detail::op_kinds>;
using rows_facts = detail::list<int (*)(detail::group const&, int), detail::op_kinds>;

template <class T, int... Number>
constexpr bytes_facts workspaces(std::integer_sequence<int, Number...>) {
  using detail::anchors;
  bytes_facts all;
  ((all[int(anchors.kinds[Number])] =
        &portable::kernel_of<anchors.kinds[Number]>::template workspace_bytes<T>),
   ...);
  return all;
}
template <int... Number>
constexpr parts_facts all_parts(std::integer_sequence<int, Number...>) {
  using detail::anchors;
  parts_facts all;
  ((all[int(anchors.kinds[Number])] = &portable::kernel_of<anchors.kinds[Number]>::parts), ...);
  return all;
}
template <int... Number>
constexpr rows_facts all_tile_rows(std::integer_sequence<int, Number...>) {
  using detail::anchors;
  rows_facts all;
  ((all[int(anchors.kinds[Number])] = &portable::kernel_of<anchors.kinds[Number]>::tile_rows), ...);
  return all;
}
template <class T>
inline constexpr bytes_facts workspaces_of = workspaces<T>(detail::anchor_numbers{});
inline constexpr parts_facts parts_of_kinds = all_parts(detail::anchor_numbers{});
inline constexpr rows_facts tile_rows_of_kinds = all_tile_rows(detail::anchor_numbers{});

/// Bytes of workspace of each of `parts` threads, for micro-batches of `samples`.
template <class T>
constexpr long workspace_bytes(detail::group const& g, int samples, int parts = 1) {
  auto const fact = workspaces_of<T>[int(g.anchor)];
  return fact == nullptr ? 0 : fact(g, samples, parts);
}
/// In how many parts a group runs where a rank has this number of threads.
constexpr int parts_of(detail::group const& g, int samples, int threads) {
  auto const fact = parts_of_kinds[int(g.anchor)];
  return fact == nullptr ? 1 : fact(g, samples, threads);
}
template <class P>
constexpr int least_tile_rows() {
  auto all = unsigned(rows_step);
  for (int i = 0; i < P::groups; ++i) {
    detail::group const g = P::group_at(i);
    auto const fact = tile_rows_of_kinds[int(g.anchor)];
    if (fact != nullptr) all |= unsigned(fact(g, P::samples));
  }
  return int(all & -all);
}

}  // namespace pp::host
