// SPDX-License-Identifier: BSL-1.0
//
// Resampling of images and its gradient: pools, upsampling and padding. The channels of a cell are
// neighbours in memory, so the innermost loops go over vectors of channels. A part of the gradient
// owns rows of dx. It goes through the results that read these rows, in row-major order, and adds
// their gradients: each maximum is found once per part, and no bit depends on the number of
// threads.

/// A vector of neighbouring channels, or a single channel, of numbers or values in memory.
template <class V, class X>
[[gnu::always_inline]] inline V channels_at(X const* from) {
  if constexpr (std::is_arithmetic_v<V>)
    return V(*from);
  else
    return load(from);
}
template <class V, class X>
[[gnu::always_inline]] inline void set_channels(X* to, V value) {
  if constexpr (std::is_arithmetic_v<V>)
    *to = X(value);
  else
    save(to, value);
}
/// Calls F::run<V, Count>(arguments..., c) for all channels c < n, Count values of V at once.
template <class F, class T, class... Arguments>
[[gnu::always_inline]] inline void for_channels(int n, Arguments const&... a) {
  int c = 0;
  for (; c + 4 * lanes<T> <= n; c += 4 * lanes<T>) F::template run<vec<T>, 4, T>(a..., c);
  for (; c + lanes<T> <= n; c += lanes<T>) F::template run<vec<T>, 1, T>(a..., c);
  for (; c < n; ++c) F::template run<T, 1, T>(a..., c);
}

/// The cells of an image that one cell of a result reads.
template <class T>
struct read_cells {
  detail::axis_cells down, across;
  extent row, column;  // elements from a row of the image to the next, and from a cell to the next
  int divisor;

  /// Calls f(number, row, place in the image, weight) for each cell, row by row.
  template <class F>
  [[gnu::always_inline]] void each(F const& f) const {
    int number = 0;
    for (int u = 0; u < down.count; ++u) {
      int const r = down.first + u * down.stride;
      T const weight = down.template weight<T>(u);
      for (int v = 0; v < across.count; ++v, ++number)
        f(number, r, r * row + (across.first + v * across.stride) * column,
          weight * across.template weight<T>(v));
    }
  }
};

/// y = the largest of the cells; NaN is larger than all numbers.
struct largest_of_cells {
  template <class V, int Count, class T, class X>
  [[gnu::always_inline]] static void run(read_cells<T> const& cells, X const* x, X* y, int c) {
    V v[Count], chosen[Count];
    find<V, Count>(cells, x + c, v, chosen);
    for (int k = 0; k < Count; ++k) set_channels(y + c + k * lanes<T>, v[k]);
  }
  /// The largest cell and its number; of equal cells the first.
  template <class V, int Count, class T, class X>
  [[gnu::always_inline]] static void find(read_cells<T> const& cells, X const* x, V (&v)[Count],
                                          V (&chosen)[Count]) {
    for (int k = 0; k < Count; ++k) {
      v[k] = V{} - std::numeric_limits<T>::infinity();
      chosen[k] = V{};
    }
    cells.each([&](int number, int, extent at, T) {
      for (int k = 0; k < Count; ++k) {
        V const next = channels_at<V>(x + at + k * lanes<T>);
        auto const is_larger = (next > v[k]) | (next != next);
        v[k] = is_larger ? next : v[k];
        chosen[k] = is_larger ? V{} + T(number) : chosen[k];
      }
    });
  }
};
/// y = the weighted sum of the cells over the divisor.
struct sum_of_cells {
  template <class V, int Count, class T, class X>
  [[gnu::always_inline]] static void run(read_cells<T> const& cells, X const* x, X* y, int c) {
    V v[Count];
    for (int k = 0; k < Count; ++k) v[k] = V{};
    cells.each([&](int, int, extent at, T weight) {
      V const by = weight - V{};
      for (int k = 0; k < Count; ++k)
        v[k] = multiply_add(by, channels_at<V>(x + at + c + k * lanes<T>), v[k]);
    });
    for (int k = 0; k < Count; ++k)
      set_channels(y + c + k * lanes<T>, cells.divisor > 1 ? v[k] / T(cells.divisor) : v[k]);
  }
};
/// dx += dy at the largest of the cells, if this cell is in one of `rows`.
struct add_to_largest {
  template <class V, int Count, class T, class X>
  [[gnu::always_inline]] static void run(read_cells<T> const& cells, part_range const& rows,
                                         X const* dy, X const* x, T* dx, int c) {
    V v[Count], chosen[Count];
    largest_of_cells::find<V, Count>(cells, x + c, v, chosen);
    cells.each([&](int number, int r, extent at, T) {
      if (r < rows.begin || r >= rows.end) return;
      for (int k = 0; k < Count; ++k) {
        T* const to = dx + (at - rows.begin * cells.row) + c + k * lanes<T>;
        V const slope = channels_at<V>(dy + c + k * lanes<T>);
        set_channels(to, channels_at<V>(to) + (chosen[k] == V{} + T(number) ? slope : V{}));
      }
    });
  }
};
/// dx += dy * weight / divisor at each cell that is in one of `rows`.
struct add_to_cells {
  template <class V, int Count, class T, class X>
  [[gnu::always_inline]] static void run(read_cells<T> const& cells, part_range const& rows,
                                         X const* dy, X const*, T* dx, int c) {
    V slope[Count];
    for (int k = 0; k < Count; ++k)
      slope[k] = channels_at<V>(dy + c + k * lanes<T>) / T(cells.divisor);
    cells.each([&](int, int r, extent at, T weight) {
      if (r < rows.begin || r >= rows.end) return;
      for (int k = 0; k < Count; ++k) {
        T* const to = dx + (at - rows.begin * cells.row) + c + k * lanes<T>;
        set_channels(to, multiply_add(weight - V{}, slope[k], channels_at<V>(to)));
      }
    });
  }
};

/// The cells that cell (row, column) of a result reads.
template <class T>
[[gnu::always_inline]] inline read_cells<T> cells_read(detail::resample_attributes const& by, int n,
                                                       detail::axis_cells const& down, int column) {
  detail::axis_cells const across = by.columns_of(column);
  return {down, across, extent(by.axis[1].in) * n, n, by.divisor(down, across)};
}

/// Row `row` of the result of one image.
///
/// shape: x (H, W, n) -> y (W', n)
template <class T, class V>
PIPE_ONE_COPY void resample_row(detail::resample_attributes const& by, int n, int row, V const* x,
                                V* y) {
  detail::axis_cells const down = by.rows_of(row);
  for (int j = 0; j < by.axis[1].out; ++j, y += n) {
    read_cells<T> const cells = cells_read<T>(by, n, down, j);
    if (by.reduction == detail::cell_reduction::largest)
      for_channels<largest_of_cells, T>(n, cells, x, y);
    else
      for_channels<sum_of_cells, T>(n, cells, x, y);
  }
}

/// Rows [rows.begin, rows.end) of the gradient of one image, as numbers at dx. Each result that
/// reads one of these rows adds its gradient, in row-major order of the results.
///
/// shape: dy (H', W', n), x (H, W, n) for a maximum, else null -> dx (rows.size(), W, n)
template <class T, class V>
PIPE_ONE_COPY void resample_gradient_rows(detail::resample_attributes const& by, int n,
                                          part_range rows, V const* dy, V const* x, T* dx) {
  extent const width = extent(by.axis[1].in) * n;
  std::memset(dx, 0, sizeof(T) * std::size_t(rows.size() * width));
  for (int i = 0; i < by.axis[0].out; ++i) {
    detail::axis_cells const down = by.rows_of(i);
    int const last = down.first + (down.count - 1) * down.stride;
    if (down.count == 0 || down.first >= rows.end || last < rows.begin) continue;
    V const* slope = dy + extent(i) * by.axis[1].out * n;
    for (int j = 0; j < by.axis[1].out; ++j, slope += n) {
      read_cells<T> const cells = cells_read<T>(by, n, down, j);
      if (x != nullptr)
        for_channels<add_to_largest, T>(n, cells, rows, slope, x, dx);
      else
        for_channels<add_to_cells, T>(n, cells, rows, slope, x, dx);
    }
  }
}

/// The cells of an image from the cells of another: pools, upsampling, padding.
///
/// shape: x (B, H, W, C) -> y (B, H', W', C)
/// work:  parts own rows of y
template <>
struct kernel_of<op_kind::resample> : row_facts {
  template <class P, int G>
  static void run(arguments<typename P::element> const& a) {
    constexpr detail::group g = P::group_at(G);
    constexpr detail::resample_attributes by = g.attributes.resample();
    constexpr int high = by.axis[0].out;
    constexpr extent row = extent(by.axis[1].out) * g.columns,
                     image = extent(by.axis[0].in) * by.axis[1].in * g.columns;
    part_range const own = own_part(extent(P::samples) * high, 1, a.part, a.parts);
    using V = typename P::value;
    for (extent r = own.begin; r < own.end; ++r)
      resample_row<typename P::element, V>(by, g.columns, int(r % high),
                                           a.template values<V>(g.in[0]) + r / high * image,
                                           a.template values<V>(g.out[0]) + r * row);
  }
};

/// The gradient of a resampling.
///
/// shape: dy (B, H', W', C), for a maximum also x (B, H, W, C) -> dx (B, H, W, C)
/// work:  parts own rows of dx; where values are narrower than numbers, a few rows at a time are
///        added up in the workspace
template <>
struct kernel_of<op_kind::resample_gradient> : resample_gradient_facts {
  template <class P, int G>
  static void run(arguments<typename P::element> const& a) {
    using T = typename P::element;
    using V = typename P::value;
    constexpr detail::group g = P::group_at(G);
    constexpr detail::resample_attributes by = g.attributes.resample();
    constexpr int high = by.axis[0].in;
    constexpr extent width = extent(by.axis[1].in) * g.columns, image = high * width,
                     most = in_place<T, V> ? high : rows_at_once<T>(by, g.columns),
                     result = extent(by.axis[0].out) * by.axis[1].out * g.columns;
    part_range const own = own_part(extent(P::samples) * high, 1, a.part, a.parts);
    for (extent r = own.begin; r < own.end;) {
      extent const s = r / high, first = r % high, rest = own.end - r,
                   left = rest < most ? rest : most;
      part_range const rows{first, first + left < high ? first + left : high};
      V const* x = nullptr;
      if constexpr (g.in[1] >= 0) x = a.template values<V>(g.in[1]) + s * image;
      V* const to = a.template values<V>(g.out[0]) + s * image + first * width;
      T* sums = static_cast<T*>(a.workspace);
      if constexpr (in_place<T, V>) sums = to;
      resample_gradient_rows<T, V>(by, g.columns, rows, a.template values<V>(g.in[0]) + s * result,
                                   x, sums);
      if constexpr (!in_place<T, V>) convert_row(sums, rows.size() * width, to);
      r += rows.size();
    }
  }
};
