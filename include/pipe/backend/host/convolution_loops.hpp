// SPDX-License-Identifier: BSL-1.0
//
// Convolutions as products of gathered patches: loops that only count, address and copy. They are
// compiled once for all instruction sets, and call contraction_loops.hpp for the products.
#pragma once

#include <cstring>

#include <pipe/backend/host/convolution.hpp>
#include <pipe/backend/host/group_products.hpp>

PIPE_OPTIMIZED_BEGIN
namespace pp::host {

/// The patches of an image as a matrix: a row for each pixel of the result, a column for each
/// (tap, channel).
template <class T>
struct patches {
  read_axis vertical, horizontal;
  T const* image = nullptr;  ///< the first channel that is read, of the first pixel
  extent pitch = 0;          ///< elements from a pixel to the next
  extent channels = 0;       ///< channels that are read of each pixel

  extent rows() const { return extent(vertical.pixels) * horizontal.pixels; }  // of a sample
  extent columns() const { return extent(vertical.taps) * horizontal.taps * channels; }
  /// The pixel of a sample that result (i, j) reads at tap (u, v); null outside of the image.
  T const* at(extent sample, int i, int j, int u, int v) const {
    extent const y = extent(i) * vertical.stride + vertical.first + extent(u) * vertical.delta,
                 x = extent(j) * horizontal.stride + horizontal.first +
                     extent(v) * horizontal.delta;
    if (y < 0 || y >= vertical.source || x < 0 || x >= horizontal.source) return nullptr;
    return image + ((sample * vertical.source + y) * horizontal.source + x) * pitch;
  }
};

/// A row of patches, as sample and pixel.
struct patch_row {
  extent sample;
  int i, j;
  template <class T>
  patch_row(patches<T> const& of, extent row)
      : sample(row / of.rows()), i(int(row % of.rows() / of.horizontal.pixels)),
        j(int(row % of.horizontal.pixels)) {}
  template <class T>
  void next(patches<T> const& of) {
    if (++j < of.horizontal.pixels) return;
    j = 0;
    if (++i < of.vertical.pixels) return;
    i = 0;
    ++sample;
  }
};

/// to[k] = from[k], or 0 if `from` is null, k < n. Short copies, of a few pixels, are made without
/// a call of memcpy, which would take longer.
template <class T>
void copy_or_clear(T const* from, extent n, T* to) {
  constexpr extent piece = 32 / extent(sizeof(T)), long_run = 16 * piece;
  if (from == nullptr) {
    if (n > 0) std::memset(to, 0, sizeof(T) * std::size_t(n));
  } else if (n > long_run) {
    std::memcpy(to, from, sizeof(T) * std::size_t(n));
  } else if (n >= piece) {
    for (extent k = 0; k + piece <= n; k += piece) std::memcpy(to + k, from + k, 32);
    std::memcpy(to + n - piece, from + n - piece, 32);
  } else {
    for (extent k = 0; k < n; ++k) to[k] = from[k];
  }
}

/// to[r, k] = element (row + r, column + k) of the patches.
///
/// shape: to (rows, columns), row stride `stride`
/// cost:  a copy; where neighbouring taps read neighbouring whole pixels, each row of the window is
///        copied at once
template <class T>
PIPE_ONE_COPY void gather(patches<T> const& of, extent row, extent rows, extent column,
                          extent columns, T* to, extent stride) {
  read_axis const& wide = of.horizontal;
  extent const line = wide.taps * of.channels;  // elements of a row of the window
  bool const is_dense = wide.delta == 1 && of.pitch == of.channels;
  int const first_u = int(column / line), first_v = int(column % line / of.channels);
  extent const first_c = column % of.channels, all = wide.source * of.channels;
  patch_row at(of, row);
  for (extent r = 0; r < rows; ++r, at.next(of)) {
    T* out = to + r * stride;
    T* const end = out + columns;
    int v = first_v;
    extent c = first_c;
    for (int u = first_u; out < end; ++u, v = 0, c = 0) {
      extent const y =
          extent(at.i) * of.vertical.stride + of.vertical.first + extent(u) * of.vertical.delta;
      extent const left = line - (v * of.channels + c), n = end - out < left ? end - out : left;
      if (y < 0 || y >= of.vertical.source) {
        copy_or_clear<T>(nullptr, n, out);
        out += n;
      } else if (is_dense) {
        T const* const from = of.image + (at.sample * of.vertical.source + y) * all;
        extent const begin =
            (extent(at.j) * wide.stride + wide.first + v) * of.channels + c;  // in the image's row
        extent const before = begin < 0 ? (-begin < n ? -begin : n) : 0;
        extent const in = all - begin < n ? (all - begin > before ? all - begin : before) : n;
        copy_or_clear<T>(nullptr, before, out);
        if (in > before) copy_or_clear(from + begin + before, in - before, out + before);
        copy_or_clear<T>(nullptr, n - in, out + in);
        out += n;
      } else {
        for (T* const stop = out + n; out < stop; ++v, c = 0) {
          extent const some = stop - out < of.channels - c ? stop - out : of.channels - c;
          T const* const from = of.at(at.sample, at.i, at.j, u, v);
          copy_or_clear(from != nullptr ? from + c : nullptr, some, out);
          out += some;
        }
      }
    }
  }
}

/// The left factor of a product: patches from a row and a column on, or their transpose, gathered
/// to `block`; of values that are narrower than numbers by way of `narrow`.
template <class T, class V>
struct gathered_patches {
  value_rows<T, V> const& conversions;
  patches<V> const& of;
  extent row = 0, column = 0;
  V* narrow = nullptr;
  T* block = nullptr;
  extent stride = 0;

  static void rows(void* self, extent i, extent count, extent p, extent depth) {
    auto const& g = *static_cast<gathered_patches const*>(self);
    if constexpr (in_place<T, V>) {
      gather(g.of, g.row + i, count, g.column + p, depth, g.block, g.stride);
    } else {
      gather(g.of, g.row + i, count, g.column + p, depth, g.narrow, depth);
      g.conversions.widen(g.narrow, depth, count, depth, depth, g.block, g.stride);
    }
  }
  static void columns(void* self, extent i, extent count, extent p, extent depth) {
    rows(self, p, depth, i, count);
  }
};

/// The right factor of an input gradient, with rows (tap, filter) and columns (channel), gathered
/// from the transpose of the weight, [filters, taps, channels].
template <class T, class V>
struct transposed_weight {
  value_products<T, V> const& set;
  patches<V> const& of;
  V const* weight;  // of the group's first filter
  extent channels, kernel_width, row;

  static void panel(void* self, extent p, extent depth, extent j, int columns, int padded, T* to) {
    auto const& w = *static_cast<transposed_weight const*>(self);
    for (extent const end = p + depth; p < end;) {
      extent const filters = w.of.channels, tap = p / filters, filter = p % filters;
      extent const u = w.of.vertical.tap + tap / w.of.horizontal.taps * w.of.vertical.tap_stride,
                   v = w.of.horizontal.tap +
                       tap % w.of.horizontal.taps * w.of.horizontal.tap_stride;
      extent const rows = end - p < filters - filter ? end - p : filters - filter;
      V const* const from = w.weight + filter * w.row + (u * w.kernel_width + v) * w.channels + j;
      if constexpr (in_place<T, V>)
        w.set.tiles.copy_rows(from, w.row, rows, columns, padded, to, padded);
      else
        w.set.rows.widen(from, w.row, rows, columns, padded, to, padded);
      to += rows * padded;
      p += rows;
    }
  }
};

/// Functions of an instruction set that a convolution calls: the epilogue of a row, and y[c] +=
/// x[c] w[c], c < n.
template <class T, class V = T>
struct convolution_calls {
  row_finish<T> finish = nullptr;
  void (*add_products)(V const* x, V const* w, extent n, T* y) = nullptr;
};

/// Rows [row, row + rows) of a depthwise convolution.
template <class T, class V>
void convolve_channels(patches<V> const& of, convolution_calls<T, V> const& calls, extent row,
                       extent rows, V const* weight, extent kernel_width, T* to) {
  patch_row at(of, row);
  for (extent r = 0; r < rows; ++r, at.next(of), to += of.channels) {
    copy_or_clear<T>(nullptr, of.channels, to);
    for (int u = 0; u < of.vertical.taps; ++u)
      for (int v = 0; v < of.horizontal.taps; ++v) {
        V const* const from = of.at(at.sample, at.i, at.j, u, v);
        extent const tap = (of.vertical.tap + extent(u) * of.vertical.tap_stride) * kernel_width +
                           of.horizontal.tap + extent(v) * of.horizontal.tap_stride;
        if (from != nullptr) calls.add_products(from, weight + tap * of.channels, of.channels, to);
      }
  }
}

/// Patches that are gathered to the start of a workspace; `space` becomes the end of their blocks.
template <class T, class V>
gathered_patches<T, V> gather_to(char*& space, value_rows<T, V> const& rows, patches<V> const& of,
                                 extent row, extent column, extent depth, extent stride) {
  gathered_patches<T, V> left{rows, of, row, column, nullptr, nullptr, stride};
  if constexpr (!in_place<T, V>) left.narrow = reinterpret_cast<V*>(space);
  long const all = patch_block_bytes<T, V>(depth);
  left.block = reinterpret_cast<T*>(space + all - patch_block_bytes<T, T>(depth));
  space += all;
  return left;
}

/// The unit that multiplies gathered patches with n filters of a group: tiles of patches cost more
/// than AVX-512-BF16 gains with few filters.
constexpr product_unit unit_of_patches(product_unit unit, extent n) {
  constexpr extent few = 48;
  return multiplies_pairs(unit) && n < few ? product_unit::vectors : unit;
}

/// A product of gathered patches as slices.
template <class T, class V>
void contract_patches(value_products<T, V> const& set, product_unit unit,
                      product_shape const& shape, strided<T const> patches, T const* b, extent ldb,
                      contraction_ends<T> const& with, void* workspace) {
  V const* right = nullptr;  // made, where values are not numbers
  if constexpr (in_place<T, V>) right = b;
  set.sliced->contract(set, unit, {shape, {}, right, ldb, patches, patch_depth}, with, workspace);
}

/// y = epilogue(conv(x, w)), or dx = epilogue(the input gradient of dy): the rows that part
/// `a.part` owns.
///
/// shape: the source (samples, pixels, channels), w (taps, channels / groups, filters) or its
///        transpose -> y (samples, pixels, columns)
/// law:   an element is one chain of multiply-adds over ascending (tap, channel), for any number of
///        parts and any blocks
/// needs: a.workspace: convolution_facts::workspace_bytes
template <class T, class V = T>
PIPE_ONE_COPY void convolve(value_products<T, V> const& set, arguments<T> const& a,
                            detail::group const& g, int samples,
                            convolution_calls<T, V> const& calls) {
  detail::convolution_attributes const of = g.attributes.convolution();
  bool const is_transposed = g.anchor == op_kind::convolution_input_gradient;
  int const phases_down = is_transposed ? of.vertical.stride : 1,
            phases_across = is_transposed ? of.horizontal.stride : 1;
  extent const columns = g.columns, n = columns / of.groups,
               pitch = is_transposed ? of.filters : of.channels,
               kernel_width = of.horizontal.kernel;
  bool const is_in_place = calls.finish == nullptr && phases_down * phases_across == 1;
  V const *const source = a.template values<V>(g.in[0]), *const weight =
                                                             a.template values<V>(g.in[1]);
  bool const is_sliced = set.slices(unit_of_patches(a.unit, n));
  char* memory = static_cast<char*>(a.workspace);
  T* const results = reinterpret_cast<T*>(memory);
  memory += detail::align_up(patch_rows * columns * long(sizeof(T)));
  for (int phase = 0; phase < phases_down * phases_across; ++phase) {
    int const down = phase / phases_across, across = phase % phases_across;
    patches<V> read{
        is_transposed ? gradient_axis(of.vertical, down) : forward_axis(of.vertical),
        is_transposed ? gradient_axis(of.horizontal, across) : forward_axis(of.horizontal), source,
        pitch, pitch / of.groups};
    extent const k = read.columns(), pixels = read.rows();
    part_range const own = part_of(pixels * samples, row_alignment, a.part, a.parts);
    for (extent row = own.begin; row < own.end; row += patch_rows) {
      extent const m = own.end - row < patch_rows ? own.end - row : patch_rows;
      T* const to = is_in_place ? a.at(g.out[0]) + row * columns : results;
      if (of.is_depthwise()) {
        read.channels = pitch;
        convolve_channels(read, calls, row, m, weight, kernel_width, to);
      } else if (k == 0) {
        copy_or_clear<T>(nullptr, m * columns, to);
      } else {
        blocking const cut =
            patch_blocking<T>(m, n, k, set.tiles.columns(), is_transposed || !in_place<T, V>);
        for (int group = 0; group < of.groups; ++group) {
          read.image = source + group * read.channels;
          char* space = memory;
          extent const depth = is_sliced ? patch_depth : cut.depth;
          gathered_patches<T, V> left =
              gather_to<T, V>(space, set.rows, read, row, 0, depth, depth);
          transposed_weight<T, V> right{
              set, read,         weight + group * read.channels * of.taps() * n,
              n,   kernel_width, n * of.taps()};
          [[maybe_unused]] widened_factors<T, V> widened{
              set.rows, {}, weight + group * n, columns, {}};
          contraction_ends<T> ends;
          ends.c = to + group * n;
          ends.ldc = columns;
          ends.left = &left;
          ends.make_left = &gathered_patches<T, V>::rows;
          T const* in_memory = nullptr;
          if constexpr (in_place<T, V>)
            in_memory = weight + group * n;
          else
            ends.right = &widened, ends.make_right = &widened_factors<T, V>::right;
          if (is_transposed) ends.right = &right, ends.make_right = &transposed_weight<T, V>::panel;
          if (is_sliced)
            contract_patches(set, a.unit, {m, n, k}, {left.block, left.stride, 1}, in_memory,
                             columns, ends, space);
          else
            contract_tiles<T>(set.tiles, {m, n, k}, {left.block, left.stride, 1}, in_memory,
                              columns, ends, space, cut);
        }
      }
      if (is_in_place) continue;
      patch_row at(read, row);
      for (extent r = 0; r < m; ++r, at.next(read)) {
        extent const i = at.i * read.vertical.pixel_stride + read.vertical.pixel,
                     j = at.j * read.horizontal.pixel_stride + read.horizontal.pixel,
                     width = is_transposed ? of.horizontal.in : of.horizontal.out,
                     all = is_transposed ? of.in_rows() : of.out_rows();
        extent const result = at.sample * all + i * width + j;
        if (calls.finish != nullptr)
          calls.finish(a, result, to + r * columns);
        else  // numbers are in place
          copy_or_clear<T>(to + r * columns, columns, a.at(g.out[0]) + result * columns);
      }
    }
  }
}

/// dw (+)= patches(x)^T dy. If group g has a prologue, which is the gradient of the bias: db (+)=
/// sum over rows of dy.
///
/// shape: x (samples, pixels, channels), dy (samples, pixels, filters) -> dw (taps, channels /
///        groups, filters), db (filters)
/// law:   sums run over ascending pixels of dy, for any number of parts; accumulate adds the
///        finished sum once
template <class T, class V = T>
PIPE_ONE_COPY void convolve_weights(value_products<T, V> const& set, arguments<T> const& a,
                                    detail::group const& g, int samples,
                                    convolution_calls<T, V> const& calls, column_adder<T, V> add) {
  detail::convolution_attributes const of = g.attributes.convolution();
  V const *const x = a.template values<V>(g.in[0]), *const dy = a.template values<V>(g.in[1]);
  extent const columns = g.columns, pixels = extent(g.rows) * samples, n = columns / of.groups;
  if (!g.prologue.empty())
    sum_columns<T, V>(add, a, dy, pixels, columns, a.at(g.prologue[0].store));
  patches<V> read{forward_axis(of.vertical), forward_axis(of.horizontal), x, of.channels,
                  of.channels / of.groups};
  T* const dw = a.at(g.out[0]);
  char* const memory = static_cast<char*>(a.workspace);
  if (of.is_depthwise()) {
    part_range const own = part_of(columns, column_alignment<T>, a.part, a.parts);
    T* const sums = static_cast<T*>(a.workspace);
    copy_or_clear<T>(nullptr, own.size() * of.taps(), sums);
    patch_row at(read, 0);
    for (extent r = 0; r < pixels; ++r, at.next(read))
      for (int tap = 0; tap < of.taps(); ++tap) {
        V const* const from =
            read.at(at.sample, at.i, at.j, tap / of.horizontal.kernel, tap % of.horizontal.kernel);
        if (from != nullptr)
          calls.add_products(from + own.begin, dy + r * columns + own.begin, own.size(),
                             sums + tap * own.size());
      }
    for (int tap = 0; tap < of.taps(); ++tap)
      for (extent c = 0; c < own.size(); ++c) {
        T& to = dw[tap * columns + own.begin + c];
        to = a.accumulate ? to + sums[tap * own.size() + c] : sums[tap * own.size() + c];
      }
    return;
  }
  part_range const own = part_of(of.inner(), row_alignment, a.part, a.parts);
  if (own.size() == 0) return;
  bool const is_sliced = set.slices(unit_of_patches(a.unit, n));
  blocking const cut =
      patch_blocking<T>(own.size(), n, pixels, set.tiles.columns(), !in_place<T, V>);
  for (int group = 0; group < of.groups; ++group) {
    read.image = x + group * read.channels;
    char* space = memory;
    gathered_patches<T, V> left = gather_to<T, V>(space, set.rows, read, 0, own.begin,
                                                  is_sliced ? patch_depth : cut.depth, patch_rows);
    [[maybe_unused]] widened_factors<T, V> right{set.rows, {}, dy + group * n, columns, {}};
    contraction_ends<T> ends;
    ends.c = dw + own.begin * columns + group * n;
    ends.ldc = columns;
    ends.adds = a.accumulate;
    ends.left = &left;
    ends.make_left = &gathered_patches<T, V>::columns;
    T const* in_memory = nullptr;
    if constexpr (in_place<T, V>)
      in_memory = dy + group * n;
    else
      ends.right = &right, ends.make_right = &widened_factors<T, V>::right;
    if (is_sliced)
      contract_patches(set, a.unit, {own.size(), n, pixels}, {left.block, 1, patch_rows}, in_memory,
                       columns, ends, space);
    else
      contract_tiles<T>(set.tiles, {own.size(), n, pixels}, {left.block, 1, patch_rows}, in_memory,
                        columns, ends, space, cut);
  }
}

}  // namespace pp::host
PIPE_OPTIMIZED_END
