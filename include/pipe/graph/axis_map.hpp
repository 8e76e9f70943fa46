// SPDX-License-Identifier: BSL-1.0
//
// The cells that a cell of a result reads along one axis of an image. Pools, upsampling and padding
// treat the axes apart: along each, a result reads cells at equal distances and takes the largest
// or a weighted sum of them. A kernel takes this description at run time, so that one function for
// each instruction set and type runs all of these layers.
//
// The gradient of a maximum searches x for the maximum again. To store the maximum's place in
// forward would take a value as large as y for every micro-batch in flight, whereas x is kept
// anyway if a ReLU has made it.
#pragma once

#include <pipe/base/config.hpp>

namespace pp::detail {

/// The rules by which result o reads cells along an axis.
enum class axis_rule : unsigned char {
  window,          // o stride - before + k dilation, for k in [0, size), without cells outside
  adaptive,        // [floor(o in / out), ceil((o + 1) in / out))
  nearest,         // floor(o in / out)
  linear,          // the two around (o + 1/2) in / out - 1/2, the first from the edge on
  linear_corners,  // the two around o (in - 1) / (out - 1)
  reflect,         // o - before, mirrored at the first and the last cell
  replicate,       // o - before, or else the nearest cell
};

/// `count` cells along an axis, first, first + stride, ..., and their weights in a sum.
struct axis_cells {
  int first = 0, count = 0, stride = 1;
  int divisor = 1;       // the cells of a window, padding included
  int part = 0, of = 1;  // of two cells, the second has the weight part / of, the first the rest

  /// The weight of the k-th of these cells in a sum.
  template <class T>
  PIPE_HD constexpr T weight(int k) const {
    return of == 1 ? T(1) : T(k == 0 ? of - part : part) / T(of);
  }
  /// The number k in [0, count) of cell i among these cells, or -1.
  PIPE_HD constexpr int number_of(int i) const {
    int const k = (i - first) / stride;
    return i >= first && k < count && first + k * stride == i ? k : -1;
  }
};

/// One axis of a resampling: extents, and the numbers that its rule reads.
///
/// needs: in, out, size, stride, dilation >= 1; before is negative where a padding cuts cells off
struct axis_map {
  int in = 1, out = 1;
  int size = 1, stride = 1, before = 0, dilation = 1;
  friend constexpr bool operator==(axis_map const&, axis_map const&) = default;

  PIPE_HD constexpr axis_cells cells_of(axis_rule rule, int o) const {
    switch (rule) {
      case axis_rule::window: return window_of(o);
      case axis_rule::adaptive: {
        int const first = scaled(o, in, out);
        return between(first, scaled(o + 1, in, out, out - 1), in);
      }
      case axis_rule::nearest: return one(scaled(o, in, out));
      case axis_rule::linear: {
        long const at = (2L * o + 1) * in - out;
        return two(at < 0 ? 0 : at, 2 * out);
      }
      case axis_rule::linear_corners: return two(long(o) * (in - 1), out > 1 ? out - 1 : 1);
      case axis_rule::reflect: {
        int const at = o - before < 0 ? before - o : o - before;
        return one(at < in ? at : 2 * (in - 1) - at);
      }
      case axis_rule::replicate: return one(o < before ? 0 : least(o - before, in - 1));
    }
    return axis_cells{};
  }

  /// A range of results [first, first + count) that holds all results that read cell i, and few
  /// others.
  PIPE_HD constexpr axis_cells readers_of(axis_rule rule, int i) const {
    switch (rule) {
      case axis_rule::window: {
        int const from = i + before - (size - 1) * dilation;
        return between(from <= 0 ? 0 : (from + stride - 1) / stride,
                       i + before < 0 ? 0 : (i + before) / stride + 1, out);
      }
      case axis_rule::adaptive:
        return between(scaled(i, out, in), scaled(i + 1, out, in, in - 1), out);
      case axis_rule::nearest:
        return between(scaled(i, out, in, in - 1), scaled(i + 1, out, in, in - 1), out);
      case axis_rule::linear:
        return between(scaled(i - 1, out, in), scaled(i + 2, out, in) + 1, out);
      case axis_rule::linear_corners: {
        int const spaces = in > 1 ? in - 1 : 1;
        return between(scaled(i - 1, out - 1, spaces), scaled(i + 1, out - 1, spaces) + 2, out);
      }
      case axis_rule::reflect: {
        int const left = before - i, right = 2 * (in - 1) - i + before;
        return between(left >= 0 && left < i + before ? left : i + before,
                       (right < out && right > i + before ? right : i + before) + 1, out);
      }
      case axis_rule::replicate:
        return between(i == 0 ? 0 : i + before, i == in - 1 ? out : i + before + 1, out);
    }
    return axis_cells{};
  }

 private:
  PIPE_HD static constexpr int least(int a, int b) { return a < b ? a : b; }
  /// (i times + more) / by, rounded down; 0 for i < 0.
  PIPE_HD static constexpr int scaled(int i, int times, int by, int more = 0) {
    return i < 0 ? 0 : int((long(i) * times + more) / by);
  }
  /// The part of [first, end) that is in [0, all).
  PIPE_HD static constexpr axis_cells between(int first, int end, int all) {
    axis_cells c{};
    c.first = first < 0 ? 0 : first;
    if (end > all) end = all;
    c.count = end > c.first ? end - c.first : 0;
    c.divisor = c.count;
    return c;
  }
  PIPE_HD static constexpr axis_cells one(int first) {
    axis_cells c{};
    c.first = first;
    c.count = 1;
    return c;
  }
  /// The two cells around position at / by; one cell if the position is whole or beyond the last
  /// cell.
  PIPE_HD constexpr axis_cells two(long at, int by) const {
    axis_cells c = one(int(at / by));
    c.part = int(at % by);
    c.of = by;
    if (c.part > 0 && c.first + 1 < in)
      c.count = 2;
    else
      c.part = 0;
    return c;
  }
  PIPE_HD constexpr axis_cells window_of(int o) const {
    axis_cells c{};
    int const start = o * stride - before,
              missing = start < 0 ? (dilation - 1 - start) / dilation : 0;
    c.first = start + missing * dilation;
    c.stride = dilation;
    int const left = c.first < in ? (in - 1 - c.first) / dilation + 1 : 0;
    c.count = size - missing < left ? size - missing : left;
    if (c.count < 0) c.count = 0;
    c.divisor = least(size, in + before - start);
    return c;
  }
};

}  // namespace pp::detail
