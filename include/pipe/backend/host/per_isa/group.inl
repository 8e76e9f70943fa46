// SPDX-License-Identifier: BSL-1.0
//
// A kernel group as one function: the anchor's kernel with its prologue and epilogue built in. A
// launch calls `run<P, G>`; P has the distinct groups of a pipeline, G is the number of one of
// them.

/// The kernel of groups with this anchor, specialised for each kind:
///
///     template <> struct kernel_of<op_kind::softmax> : row_facts {      // see facts.hpp
///       template <class P, int G>
///       static void run(arguments<typename P::element> const& a);
///     };
///
/// run computes part a.part of the group on one micro-batch.
template <op_kind Anchor>
struct kernel_of;

/// Runs part a.part of group G of P on one micro-batch.
template <class P, int G>
void run(arguments<typename P::element> const& a) {
  kernel_of<P::group_at(G).anchor> const kernel{};
  kernel.template run<P, G>(a);
  if constexpr (streams<P, G>()) finish_streaming();
}

/// Group G of P for its kernel: a matrix of `rows` x g.columns, of which each part computes some
/// rows or columns.
template <class P, int G>
struct group_rows {
  using T = typename P::element;
  using V = typename P::value;
  using args = arguments<T>;
  static constexpr detail::group g = P::group_at(G);
  static constexpr extent planned_rows = extent(g.rows) * P::samples;
  static constexpr bool whole = g.columns % lanes<T> == 0;  // whether rows are whole vectors

  /// The rows of the micro-batch: as planned or, with Lengths, those of its segments.
  static extent rows([[maybe_unused]] args const& a) {
    if constexpr (takes_lengths<P>)
      if (a.segments != nullptr)  // of several rows for each position, too
        return a.segments->rows * (planned_rows / a.segments->planned_rows);
    return planned_rows;
  }
  /// The rows, or the columns, that this part owns.
  static part_range own_rows(args const& a, extent alignment = 1) {
    return own_part(rows(a), alignment, a.part, a.parts);
  }
  static part_range own_columns(args const& a, extent columns) {
    return own_part(columns, column_alignment<T>, a.part, a.parts);
  }

  /// Row r of the anchor's main operand; if there is a prologue, it writes the row to `buffer`.
  static T const* main_row(args const& a, extent r, [[maybe_unused]] T* buffer) {
    V const* const x = a.template values<V>(g.in[0]) + r * g.columns;
    if constexpr (g.prologue.size() > 0) {
      chain<P, G, false>::template run_row<true>(a, r, x, buffer);
      return buffer;
    } else {
      return as_numbers(x, g.columns, buffer);
    }
  }
  /// Row r of operand `operand`, a matrix of values with n columns: in place, or in `room`.
  static T const* row_of(args const& a, int operand, extent r, extent n, T* room) {
    return as_numbers(a.template values<V>(operand) + r * n, n, room);
  }
  /// The memory for row r of the anchor's result: its final place if there is no epilogue and
  /// nothing is rounded, else `buffer`.
  static T* result_row(args const& a, extent r, T* buffer) {
    return in_place<T, V> && g.epilogue.size() == 0
               ? a.at(g.out[0] < 0 ? 0 : g.out[0]) + r * g.columns
               : buffer;
  }
};
