// SPDX-License-Identifier: BSL-1.0
//
// The facts of the host's kernels (facts.hpp) by the anchor of a group, in tables that constant
// expressions look up: the memory plan, the threads of a rank and the choice of tiles ask for them.
// The tables are of the portable kernels, since facts are equal on every instruction set.
#pragma once

#include <utility>

#include <pipe/backend/dispatch.hpp>
#include <pipe/backend/host/kernels.hpp>
#include <pipe/base/list.hpp>

namespace pp::host {

/// The facts of one kernel; are_there is false for a kind that is no anchor. (With
/// -fsanitize=undefined g++ does not compare a function's address with null in constant
/// expressions.)
struct kernel_facts {
  bool are_there = false;
  long (*workspace_bytes)(detail::group const&, int samples, int parts) = nullptr;
  int (*parts)(detail::group const&, int samples, int threads) = nullptr;
  int (*tile_rows)(detail::group const&, int samples) = nullptr;
};
template <class Kernel, class T, class V, int Slices>
constexpr auto workspace_function() {
  if constexpr (requires { &Kernel::template workspace_bytes<T, V, Slices>; })
    return &Kernel::template workspace_bytes<T, V, Slices>;
  else
    return &Kernel::template workspace_bytes<T, V>;
}
template <class T, class V, int Slices, int... Number>
constexpr auto facts_of_kinds(std::integer_sequence<int, Number...>) {
  using detail::anchors;
  detail::list<kernel_facts, detail::op_kinds> all;
  ((all[int(anchors.kinds[Number])] =
        {true, workspace_function<portable::kernel_of<anchors.kinds[Number]>, T, V, Slices>(),
         &portable::kernel_of<anchors.kinds[Number]>::parts,
         &portable::kernel_of<anchors.kinds[Number]>::tile_rows}),
   ...);
  return all;
}
/// The facts of all kernels for elements T, values V and products of Slices, by kind.
template <class T, class V = T, int Slices = 0>
inline constexpr auto facts_of = facts_of_kinds<T, V, Slices>(detail::anchor_numbers{});

/// Bytes of workspace for each of `parts` threads, for micro-batches of `samples`.
template <class T, class V = T, int Slices = 0>
constexpr long workspace_bytes(detail::group const& g, int samples, int parts = 1) {
  kernel_facts const& of = facts_of<T, V, Slices>[int(g.anchor)];
  return of.are_there ? of.workspace_bytes(g, samples, parts) : 0;
}
/// The most bytes of workspace of a product for any number of rows up to those of `samples`: fewer
/// rows may need more.
template <class T, class V = T, int Slices = 0>
constexpr long workspace_bytes_of_lengths(detail::group g, int samples, int parts) {
  extent const all = extent(g.rows) * samples;
  // A part has some of the rows, or all of them for some rows of a weight's gradient.
  bool const divides_rows = g.anchor != op_kind::matmul_weight_gradient;
  extent const most_rows = divides_rows ? largest_part(all, row_alignment, parts) : all;
  long most = 0;
  for_largest_workspaces(most_rows, g.columns, sizeof(T), [&](extent rows) {
    g.rows = int(rows);
    long const n = workspace_bytes<T, V, Slices>(g, 1, divides_rows ? 1 : parts);
    if (n > most) most = n;
  });
  return most;
}
/// The number of parts in which a group runs on a rank with this number of threads.
constexpr int parts_of(detail::group const& g, int samples, int threads) {
  kernel_facts const& of = facts_of<float>[int(g.anchor)];  // equal for all element types
  return of.are_there ? of.parts(g, samples, threads) : 1;
}
template <class P>
constexpr int least_tile_rows() {
  auto all = unsigned(row_alignment) | unsigned(block_rows<P>());
  for (int i = 0; i < P::groups; ++i) {
    detail::group const g = P::group_at(i);
    kernel_facts const& of = facts_of<typename P::element>[int(g.anchor)];
    if (of.are_there) all |= unsigned(of.tile_rows(g, P::samples));
  }
  return int(all & -all);
}

}  // namespace pp::host
