// SPDX-License-Identifier: BSL-1.0
//
// Conversion of rows between values in memory and the numbers that kernels compute with: see
// backend/host/values.hpp.

/// to[i] = from[i], i < n, converted to the type To.
template <class From, class To>
PIPE_ONE_COPY void convert_row(From const* from, extent n, To* to) {
  extent c = 0;
  for (; c + lanes<To> <= n; c += lanes<To>) save(to + c, load(from + c));
  for (; c < n; ++c) to[c] = To(from[c]);
}

/// The function of value_rows::widen.
template <class T, class V>
void widen_rows(V const* from, extent stride, extent rows, extent columns, extent padded, T* to,
                extent to_stride) {
  for (extent r = 0; r < rows; ++r, from += stride, to += to_stride) {
    convert_row(from, columns, to);
    for (extent c = columns; c < padded; ++c) to[c] = T(0);
  }
}
/// The function of value_rows::narrow.
template <class T, class V>
void narrow_rows(T const* from, extent stride, extent rows, extent columns, V* to,
                 extent to_stride) {
  for (extent r = 0; r < rows; ++r, from += stride, to += to_stride) convert_row(from, columns, to);
}

template <class T, class V>
constexpr value_rows<T, V> row_conversions() {
  if constexpr (in_place<T, V>)
    return {};
  else
    return {&widen_rows<T, V>, &narrow_rows<T, V>};
}
template <class T, class V>
inline constexpr value_rows<T, V> conversions = row_conversions<T, V>();

template <class T, class V, int Slices>
constexpr sliced_kernels<T, V> const* sliced_or_null() {
  if constexpr (Slices > 0)
    return &kernels_of_slices<T, V, Slices>;
  else
    return nullptr;
}

/// What products of values call; Least: see least_tile_rows; Slices: see slices_of.
template <class T, class V, int Least = 1, int Slices = 0>
inline constexpr value_products<T, V> products_of{tiles<T, Least>, row_conversions<T, V>(),
                                                  sliced_or_null<T, V, Slices>()};

/// n numbers as kernels compute with them: in place, or widened to `room`.
template <class T, class V>
[[gnu::always_inline]] inline T const* as_numbers(V const* x, extent n, T* room) {
  if constexpr (in_place<T, V>) {
    return (void)n, (void)room, x;
  } else {
    convert_row(x, n, room);
    return room;
  }
}
