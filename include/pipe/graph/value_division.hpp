// SPDX-License-Identifier: BSL-1.0
//
// The division of values and parameters among the planes of a stage: the types of tensor
// parallelism. A plane is one of T partners that run the same program on parts of the same samples.
#pragma once

#include <pipe/base/config.hpp>

namespace pp::detail {

/// How planes hold a value.
///
/// source: the types of DTensor and of spmd_types (invariant, replicated, shard, partial)
enum class division_type : unsigned char {
  whole,       // equal on all planes, and so is its gradient
  replicated,  // equal on all planes; its gradient is partial
  divided,     // each plane has a part; its gradient is divided likewise
  partial      // the sum over all planes is the value; its gradient is replicated
};

/// The type of the gradient of a value.
///
/// law: dual(dual(t)) == t
constexpr division_type dual(division_type t) {
  if (t == division_type::replicated) return division_type::partial;
  return t == division_type::partial ? division_type::replicated : t;
}

/// The name of a type, for plans and messages.
constexpr char const* name_of(division_type t) {
  switch (t) {
    case division_type::whole: return "whole";
    case division_type::replicated: return "replicated";
    case division_type::divided: return "divided";
    case division_type::partial: return "partial";
  }
  return "";
}

/// The part of `width` neighbouring numbers that a plane has. Where `planes` do not divide the
/// width, the parts of the last planes end in padding.
constexpr int part_of(int width, int planes) { return (width + planes - 1) / planes; }

/// Numbers in memory, or rows or columns of a matrix, as `count` equal blocks of up to four runs.
/// Of a divided value a plane has an equal part of each run of each block: the columns of queries,
/// keys and values, side by side in every row, are rows blocks of three runs.
///
/// law: blocks of one run with count 1 are a range of the memory
struct blocks {
  static constexpr int most = 4;  // runs of a block
  int count = 0;                  // 0: no blocks
  int runs = 0;
  int width[most]{};  // of each run, the parts of all planes together, without padding

  constexpr blocks() = default;
  constexpr blocks(int n, int first, int second = 0, int third = 0)
      : count(n), runs(third > 0    ? 3
                       : second > 0 ? 2
                                    : 1),
        width{first, second, third} {}

  constexpr bool exist() const { return count > 0; }
  constexpr bool is_one_run() const { return runs == 1; }
  /// The numbers of a block: of all planes, and of each.
  constexpr int total() const {
    int n = 0;
    for (int i = 0; i < runs; ++i) n += width[i];
    return n;
  }
  constexpr int total_of_part(int planes) const {
    int n = 0;
    for (int i = 0; i < runs; ++i) n += part_of(width[i], planes);
    return n;
  }
  constexpr long elements_of_part(int planes) const { return long(count) * total_of_part(planes); }
  /// Whether `planes` times `grain` divide each run.
  constexpr bool divide_into(int planes, int grain = 1) const {
    for (int i = 0; i < runs; ++i)
      if (width[i] % (long(planes) * grain) != 0) return false;
    return true;
  }
  /// The same blocks where each number stands for n / d numbers. needs: an integer for each run
  constexpr blocks scaled(int n, int d) const {
    blocks b = *this;
    for (int i = 0; i < runs; ++i) b.width[i] = int(long(width[i]) * n / d);
    return b;
  }
  /// The same runs in another number of blocks.
  constexpr blocks with_count(int n) const {
    blocks b = *this;
    b.count = n;
    return b;
  }
  /// The place in the whole of number e of a plane's part; -1 for padding.
  constexpr long place_of(long e, int plane, int planes) const {
    int const part = total_of_part(planes);
    long const block = e / part;
    int at = int(e % part), before = 0;
    for (int i = 0; i < runs; ++i) {
      int const own = part_of(width[i], planes);
      if (at < own) {
        int const in_run = plane * own + at;
        return in_run < width[i] ? block * total() + before + in_run : -1;
      }
      at -= own;
      before += width[i];
    }
    return -1;
  }
  friend constexpr bool operator==(blocks const& a, blocks const& b) {
    if (a.count != b.count || a.runs != b.runs) return false;
    for (int i = 0; i < a.runs; ++i)
      if (a.width[i] != b.width[i]) return false;
    return true;
  }
};

/// The type of a value, and of a divided value the blocks of a sample's numbers. Values have
/// no shape, so neither have blocks: each reader looks at them through its own rows and columns.
struct value_division {
  division_type where = division_type::whole;
  blocks of{};

  constexpr bool is(division_type t) const { return where == t; }
  constexpr bool is_divided() const { return where == division_type::divided; }
  /// The blocks of each row, if a reader of `rows` rows finds the same columns divided in every
  /// row; no blocks otherwise.
  constexpr blocks columns(int rows) const {
    return is_divided() && of.count % rows == 0 ? of.with_count(of.count / rows) : blocks{};
  }
  /// The blocks of the rows, if a plane has whole rows of `columns` numbers; no blocks otherwise.
  constexpr blocks rows(int columns, int planes) const {
    return is_divided() && of.divide_into(planes, columns) ? of.scaled(1, columns) : blocks{};
  }
  /// The division of the gradient.
  constexpr value_division of_gradient() const { return {dual(where), of}; }
  friend constexpr bool operator==(value_division const&, value_division const&) = default;
};
/// A value of which each plane has the numbers `of`.
constexpr value_division divided_by(blocks const& of) { return {division_type::divided, of}; }
inline constexpr value_division whole_value{}, replicated_value{division_type::replicated, {}},
    partial_value{division_type::partial, {}};

/// The box of a parameter that a plane has: rows or columns of the matrix that
/// parameter::rows() and columns() describe, or all of it.
struct parameter_division {
  enum class axis : unsigned char { none, rows, columns };
  axis along = axis::none;
  blocks of{};  // of the rows or columns
  /// Of a whole parameter: each plane has a part of its gradient, and the sum over planes is the
  /// gradient.
  bool has_partial_gradient = false;

  constexpr bool is_divided() const { return along != axis::none; }
  /// Rows or columns of all planes that are padding.
  constexpr int padding(int planes) const {
    int n = 0;
    for (int i = 0; i < of.runs; ++i) n += part_of(of.width[i], planes) * planes - of.width[i];
    return n * of.count;
  }
  /// The place in the whole parameter, of `columns` columns, of number e of a plane's box; -1 for
  /// padding.
  constexpr long place_of(long e, int columns, int plane, int planes) const {
    if (along == axis::none) return e;
    if (along == axis::rows) {
      long const row = of.place_of(e / columns, plane, planes);
      return row < 0 ? -1 : row * columns + e % columns;
    }
    int const own = int(of.elements_of_part(planes));
    long const column = of.place_of(e % own, plane, planes);
    return column < 0 ? -1 : e / own * columns + column;
  }
  friend constexpr bool operator==(parameter_division const&, parameter_division const&) = default;
};

}  // namespace pp::detail
