// SPDX-License-Identifier: BSL-1.0
//
// Resampling of images and its gradient: pools, upsampling and padding. The channels of a cell are
// neighbours in memory, so the inner loops go over channels.

/// y = the larger of x and y, and where it is x, chosen = number; NaN is larger than all. chosen
/// may be null.
template <class T>
PIPE_ONE_COPY void take_larger(int n, T const* x, T* y, T number, T* chosen) {
  if (chosen == nullptr) {
    PIPE_INDEPENDENT
    for (int c = 0; c < n; ++c) y[c] = x[c] > y[c] || x[c] != x[c] ? x[c] : y[c];
    return;
  }
  PIPE_INDEPENDENT
  for (int c = 0; c < n; ++c) {
    bool const is_larger = x[c] > y[c] || x[c] != x[c];
    y[c] = is_larger ? x[c] : y[c];
    chosen[c] = is_larger ? number : chosen[c];
  }
}
template <class T>
PIPE_ONE_COPY void set_elements(int n, T value, T* y) {
  for (int c = 0; c < n; ++c) y[c] = value;
}
/// y += w x; adds: or y = w x
template <class T>
PIPE_ONE_COPY void add_weighted(int n, bool adds, T w, T const* x, T* y) {
  if (!adds && w == T(1)) {
    std::memcpy(y, x, sizeof(T) * std::size_t(n));
  } else if (!adds) {
    PIPE_INDEPENDENT
    for (int c = 0; c < n; ++c) y[c] = w * x[c];
  } else {
    PIPE_INDEPENDENT
    for (int c = 0; c < n; ++c) y[c] += w * x[c];
  }
}

/// The cells of a result in an image, row by row: f(number, row, column, weight).
template <class T, class F>
PIPE_INLINE void each_cell(detail::axis_cells const& down, detail::axis_cells const& across,
                           F const& f) {
  int number = 0;
  for (int u = 0; u < down.count; ++u)
    for (int v = 0; v < across.count; ++v, ++number)
      f(number, down.first + u * down.step, across.first + v * across.step,
        down.template weight<T>(u) * across.template weight<T>(v));
}
/// Row `row` of the result of one image.
///
/// shape: x (H, W, n) -> y (W', n)
template <class T>
PIPE_ONE_COPY void resample_row(detail::resample_attributes const& by, int n, int row, T const* x,
                                T* y) {
  detail::axis_cells const down = by.rows_of(row);
  bool const is_largest = by.reduction == detail::cell_reduction::largest;
  for (int j = 0; j < by.axis[1].out; ++j, y += n) {
    detail::axis_cells const across = by.columns_of(j);
    if (down.count * across.count == 0)
      set_elements(n, is_largest ? -std::numeric_limits<T>::infinity() : T(0), y);
    each_cell<T>(down, across, [&](int number, int r, int c, T weight) {
      T const* const cell = x + (extent(r) * by.axis[1].in + c) * n;
      if (is_largest && number > 0)
        take_larger<T>(n, cell, y, T(0), nullptr);
      else
        add_weighted<T>(n, number > 0, weight, cell, y);
    });
    if (int const d = by.divisor(down, across); d > 1) {
      PIPE_INDEPENDENT
      for (int c = 0; c < n; ++c) y[c] /= T(d);
    }
  }
}

/// Rows [rows.begin, rows.end) of the gradient of one image. Each result that reads one of them
/// adds its part, in row-major order of the results.
///
/// shape: dy (H', W', n), of a maximum x (H, W, n), space (2, n) -> dx (H, W, n)
template <class T>
PIPE_ONE_COPY void resample_gradient_rows(detail::resample_attributes const& by, int n, share rows,
                                          T const* dy, T const* x, T* dx, T* space) {
  extent const width = extent(by.axis[1].in) * n;
  std::memset(dx + rows.begin * width, 0, sizeof(T) * std::size_t(rows.size() * width));
  T *const largest = space, *const chosen = space + n;
  for (int i = 0; i < by.axis[0].out; ++i) {
    detail::axis_cells const down = by.rows_of(i);
    int const last = down.first + (down.count - 1) * down.step;
    if (down.count == 0 || down.first >= rows.end || last < rows.begin) continue;
    for (int j = 0; j < by.axis[1].out; ++j) {
      detail::axis_cells const across = by.columns_of(j);
      T const* const from = dy + (extent(i) * by.axis[1].out + j) * n;
      auto const cell = [&](auto* image, int r, int c) {
        return image + r * width + extent(c) * n;
      };
      if (x != nullptr) {
        each_cell<T>(down, across, [&](int number, int r, int c, T) {
          if (number > 0) return take_larger<T>(n, cell(x, r, c), largest, T(number), chosen);
          std::memcpy(largest, cell(x, r, c), sizeof(T) * std::size_t(n));
          set_elements(n, T(0), chosen);
        });
        each_cell<T>(down, across, [&](int number, int r, int c, T) {
          if (r < rows.begin || r >= rows.end) return;
          T* const to = cell(dx, r, c);
          PIPE_INDEPENDENT
          for (int k = 0; k < n; ++k) to[k] += chosen[k] == T(number) ? from[k] : T(0);
        });
      } else {
        int const d = by.divisor(down, across);
        each_cell<T>(down, across, [&](int, int r, int c, T weight) {
          if (r >= rows.begin && r < rows.end)
            add_weighted<T>(n, true, weight / T(d), from, cell(dx, r, c));
        });
      }
    }
  }
}

/// The cells of an image from those of another: pools, upsampling, padding.
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
    share const own = part_of(extent(P::samples) * high, 1, a.part, a.parts);
    for (extent r = own.begin; r < own.end; ++r)
      resample_row<typename P::element>(by, g.columns, int(r % high),
                                        a.at(g.in[0]) + r / high * image, a.at(g.out[0]) + r * row);
  }
};

/// The gradient of a resampling.
///
/// shape: dy (B, H', W', C), of a maximum x (B, H, W, C) -> dx (B, H, W, C)
/// work:  parts own rows of dx
template <>
struct kernel_of<op_kind::resample_gradient> : row_facts {
  template <class P, int G>
  static void run(arguments<typename P::element> const& a) {
    using T = typename P::element;
    constexpr detail::group g = P::group_at(G);
    constexpr detail::resample_attributes by = g.attributes.resample();
    constexpr int high = by.axis[0].in;
    constexpr extent image = extent(high) * by.axis[1].in * g.columns,
                     result = extent(by.axis[0].out) * by.axis[1].out * g.columns;
    share const own = part_of(extent(P::samples) * high, 1, a.part, a.parts);
    for (extent r = own.begin; r < own.end;) {
      extent const s = r / high, first = r % high, left = own.end - r;
      share const rows{first, first + left < high ? first + left : high};
      resample_gradient_rows<T>(by, g.columns, rows, a.at(g.in[0]) + s * result,
                                g.in[1] < 0 ? nullptr : a.at(g.in[1] < 0 ? 0 : g.in[1]) + s * image,
                                a.at(g.out[0]) + s * image, static_cast<T*>(a.workspace));
      r += rows.size();
    }
  }
};
