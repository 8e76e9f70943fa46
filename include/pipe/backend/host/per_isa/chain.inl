// SPDX-License-Identifier: BSL-1.0
//
// The pointwise ops of a kernel group, on a piece of a row while the piece is in the L1 cache.
// Loops have constant trip counts where possible, so that scalar formulas become vector code. No
// product of one op is contracted with a sum of the next (PIPE_OPTIMIZED_BEGIN), and an op reads
// the result of the previous op as memory would hold it, so a fused chain gives the bits of its ops
// as separate kernels.

/// The sample of a row of group G, in the micro-batch, and the row's position in the sample.
template <class P, int G>
detail::row_place place_of([[maybe_unused]] arguments<typename P::element> const& a, extent row) {
  constexpr extent positions = P::group_at(G).rows;
  if constexpr (takes_lengths<P>)
    if (a.segments != nullptr) return a.segments->place_of(row);
  return {row / positions, row % positions};
}

/// Whether the results that a launch of group G writes, row by row, are too large to be in a cache
/// when they are read. Then they are written past the caches, since a normal store first reads its
/// line from memory.
template <class P, int G>
constexpr bool streams() {
  constexpr detail::group g = P::group_at(G);
  if (!in_place<typename P::element, typename P::value>) return false;
  if (g.anchor == op_kind::matmul || g.anchor == op_kind::matmul_input_gradient) return false;
  constexpr auto stores = [](auto const& ops) {
    long n = 0;
    for (detail::pointwise_op const& s : ops) n += s.store >= 0;
    return n;
  };
  long const written = (g.out[0] >= 0) + stores(g.prologue) + stores(g.epilogue);
  long const row = long(g.columns) * long(sizeof(typename P::element));
  return row % long(widest_vector_bytes) == 0 && written * row * g.rows * P::samples > cached_bytes;
}

/// to[0, n) = from[0, n). Streams: past the caches; n must be whole vectors.
template <bool Streams, class T>
void copy_row(T const* from, int n, T* to) {
  if constexpr (Streams)
    for (int c = 0; c < n; c += lanes<T>) stream(to + c, load(from + c));
  else
    std::memcpy(to, from, sizeof(T) * std::size_t(n));
}

/// The pointwise ops before (prologue) or after (epilogue) the anchor of group G of P, as one loop
/// over pieces of a row.
///
/// shape: x (rows, width) -> a matrix (rows, width) for each stored op; width is g.columns, or
///        `inner` for the prologue of a matmul
/// law:   the bits of the ops as separate kernels
/// cost:  each element is read once and written once per stored op: memory bounds it unless a
///        formula is long. Pieces are four vectors wide, so that a chain's operands stay in
///        registers and L1.
template <class P, int G, bool IsEpilogue>
struct chain {
  using T = typename P::element;
  using V = typename P::value;
  static constexpr detail::group g = P::group_at(G);
  static constexpr int length = int(IsEpilogue ? g.epilogue.size() : g.prologue.size());
  static constexpr int width =
      IsEpilogue || g.anchor != op_kind::matmul ? g.columns : g.attributes.contraction().inner;
  static constexpr int block = 4 * lanes<T>;

  static constexpr detail::pointwise_op at(int i) {
    return IsEpilogue ? g.epilogue[std::size_t(i)] : g.prologue[std::size_t(i)];
  }

  static constexpr bool drops() {
    for (int i = 0; i < length; ++i)
      if (at(i).kind == op_kind::dropout) return true;
    return false;
  }
  /// Room for the mask of one piece, if an op is a dropout.
  using mask = T[drops() ? mask_room<(block > tile_columns<T> ? block : tile_columns<T>), T> : 1];

  /// The second operand of op Index at (row, column): an element of a matrix of the same shape, of
  /// a bias (width) or of a table of positions (T, width).
  template <int Index>
  static V const* operand(arguments<T> const& a, extent row, extent column) {
    constexpr detail::pointwise_op s = at(Index);
    if constexpr (detail::reads_matrix(s))
      return a.template values<V>(s.operand) + row * width + column;
    else if constexpr (s.kind == op_kind::bias)
      return a.template values<V>(s.operand) + column;
    else if constexpr (s.kind == op_kind::row_bias)
      return a.template values<V>(s.operand) + place_of<P, G>(a, row).position * width + column;
    else
      return nullptr;
  }
  /// The factors of op Index at (row, column) if it is a dropout, which are written to `room`.
  template <int Index, int Columns>
  static T const* factors(arguments<T> const& a, extent row, extent column,
                          [[maybe_unused]] mask& room) {
    constexpr detail::pointwise_op s = at(Index);
    if constexpr (s.kind == op_kind::dropout)
      return dropout_mask<detail::leaf_at<s.leaf, typename P::leaves>,
                          (Columns > 0 ? Columns : lanes<T>), T>(
          random_bits<detail::leaf_at<s.leaf, typename P::leaves>>(a, s.operand, row), column,
          a.training, room);
    else
      return nullptr;
  }
  /// Whether the value that enters op Index is rounded; Index == length: the value that leaves the
  /// chain. Values from memory are rounded already, and a value that leaves an epilogue is rounded
  /// when it is stored. The bias of a matmul is added to the sum as it is.
  template <int Index>
  static constexpr bool rounds() {
    if constexpr (in_place<T, V> || length == 0)
      return false;
    else if constexpr (Index == length)
      return !IsEpilogue;
    else if constexpr (Index > 0)
      return true;
    else
      return IsEpilogue && g.anchor != op_kind::pointwise &&
             !(g.anchor == op_kind::matmul && at(0).kind == op_kind::bias);
  }
  template <int Index>
  [[gnu::always_inline]] static inline T entering(T v) {
    if constexpr (rounds<Index>())
      return rounded_to<V>(v);
    else
      return v;
  }
  /// Whether op Index has slopes: a prelu, or its gradient; has_shared_slope: one for all columns.
  template <int Index>
  static constexpr bool has_slopes =
      at(Index).kind == op_kind::prelu || at(Index).kind == op_kind::prelu_gradient;
  template <int Index>
  static constexpr bool has_shared_slope = [] {
    if constexpr (has_slopes<Index>)
      return detail::leaf_at<at(Index).leaf, typename P::leaves>::is_shared;
    else
      return false;
  }();
  /// The slopes of op Index from a column on.
  template <int Index>
  static V const* slopes([[maybe_unused]] arguments<T> const& a, [[maybe_unused]] extent column) {
    constexpr detail::pointwise_op s = at(Index);
    if constexpr (has_slopes<Index>)
      return a.template values<V>(s.operand + detail::has_third(s.kind)) +
             (has_shared_slope<Index> ? 0 : column);
    else
      return nullptr;
  }
  /// The slope of all columns, read before a loop, which may then become vector code; else 0.
  template <int Index>
  static T shared_slope([[maybe_unused]] V const* slopes) {
    if constexpr (has_shared_slope<Index>)
      return T(*slopes);
    else
      return T(0);
  }
  /// Counters of the Philox blocks of a row. The counters have the sample's number in the
  /// mini-batch and the position, not the micro-batch or the thread, so a mask does not depend on
  /// how a mini-batch is cut. Where whole columns or samples are dropped, all rows of a sample have
  /// the counters of its first row.
  template <class Layer>
  static random_row random_bits(arguments<T> const& a, int index, extent row) {
    constexpr extent blocks = (width + 3) / 4;  // of a row
    detail::row_place const at = place_of<P, G>(a, row);
    return {a.seed, static_cast<std::uint32_t>(a.step),
            static_cast<std::uint32_t>(a.first_sample + at.segment),
            static_cast<std::uint32_t>(*a.ids(index)),
            Layer::all_rows ? 0u : static_cast<std::uint32_t>(at.position * blocks)};
  }
  template <int Index>
  static V* target(arguments<T> const& a, extent row, extent column) {
    constexpr detail::pointwise_op s = at(Index);
    if constexpr (s.store < 0)
      return nullptr;
    else
      return a.template values<V>(s.store) + row * width + column;
  }
  /// Op Index on one element: v is the result of the previous op, z[c] the second operand or, of a
  /// dropout, factor[c]; w[c] or, if all columns share it, `shared` is the slope.
  template <int Index>
  [[gnu::always_inline]] static inline T apply(T v, V const* z, T const* factor,
                                               [[maybe_unused]] V const* w,
                                               [[maybe_unused]] T shared, int c) {
    constexpr detail::pointwise_op s = at(Index);
    if constexpr (s.kind == op_kind::map)
      return forward_of<detail::leaf_at<s.leaf, typename P::leaves>>(v);
    else if constexpr (s.kind == op_kind::map_gradient)
      return v * derivative_of<detail::leaf_at<s.leaf, typename P::leaves>>(T(z[c]));
    else if constexpr (s.kind == op_kind::prelu)
      return detail::slope_formula::forward(v, has_shared_slope<Index> ? shared : T(w[c]));
    else if constexpr (s.kind == op_kind::prelu_gradient)
      return detail::slope_formula::input_gradient(v, T(z[c]),
                                                   has_shared_slope<Index> ? shared : T(w[c]));
    else if constexpr (s.kind == op_kind::dropout)
      return v * factor[c];
    else if constexpr (s.kind == op_kind::multiply)
      return v * T(z[c]);
    else
      return v + T(z[c]);
  }
  template <int Index>
  [[gnu::always_inline]] static inline void keep(V* to, T v, int c) {
    if constexpr (at(Index).store >= 0) to[c] = V(v);
  }

  /// Runs the ops on x[0, n), numbers or values, at (row, column): writes the stored ops and, with
  /// HasResult, the end of the chain to `result`. n is Columns unless Columns is 0. Flattened, so
  /// that formulas, user-defined ones too, are compiled for this instruction set.
  template <int Columns, bool HasResult, class X, std::size_t... Is>
  [[gnu::flatten]] static void run(arguments<T> const& a, extent row, extent column, X const* x,
                                   T* result, int n, std::index_sequence<Is...>) {
    mask rooms[length + 1];
    V const* const in[] = {operand<int(Is)>(a, row, column)..., nullptr};
    T const* const factor[] = {factors<int(Is), Columns>(a, row, column, rooms[Is])..., nullptr};
    V const* const slope[] = {slopes<int(Is)>(a, column)..., nullptr};
    T const shared[] = {shared_slope<int(Is)>(slope[Is])..., T(0)};
    V* const to[] = {target<int(Is)>(a, row, column)..., nullptr};
    alignas(widest_vector_bytes) [[maybe_unused]] pieces<Columns> made;
    V* const out[] = {(streams_piece<Columns> ? made[Is] : to[Is])..., nullptr};
    int const count = Columns > 0 ? Columns : n;
    PIPE_INDEPENDENT
    for (int c = 0; c < count; ++c) {
      T v = T(x[c]);
      ((v = apply<int(Is)>(entering<int(Is)>(v), in[Is], factor[Is], slope[Is], shared[Is], c),
        keep<int(Is)>(out[Is], v, c)),
       ...);
      if constexpr (HasResult) result[c] = entering<length>(v);
    }
    if constexpr (streams_piece<Columns>) (stream_piece<int(Is), Columns>(to[Is], made[Is]), ...);
    if constexpr (stores_result) copy_row<true>(x, Columns, a.at(g.out[0]) + row * width + column);
    (void)in, (void)out, (void)to, (void)rooms, (void)slope, (void)shared, (void)factor;
  }
  /// Whether the anchor's result is streamed by the chain, piece by piece, so that reads and writes
  /// alternate.
  static constexpr bool stores_result = IsEpilogue && length > 0 && g.out[0] >= 0 &&
                                        streams<P, G>();
  /// Whether the stored ops of a piece are streamed: they are first written to `pieces`.
  template <int Columns>
  static constexpr bool streams_piece = Columns > 0 && Columns % lanes<T> == 0 && streams<P, G>();
  template <int Columns>
  using pieces = V[length + 1][streams_piece<Columns> ? Columns : 1];
  template <int Index, int Columns>
  static void stream_piece(V* to, V const* piece) {
    if constexpr (at(Index).store >= 0) copy_row<true>(piece, Columns, to);
  }
  template <int Columns, bool HasResult = false, class X>
  static void run(arguments<T> const& a, extent row, extent column, X const* x, T* result = nullptr,
                  int n = Columns) {
    run<Columns, HasResult>(a, row, column, x, result, n, std::make_index_sequence<length>{});
  }

  /// Runs the ops on a whole row.
  template <bool HasResult = false, class X>
  static void run_row(arguments<T> const& a, extent row, X const* x, T* result = nullptr) {
    constexpr int whole = width / block * block, rest = width - whole;
    for (int c = 0; c < whole; c += block)
      run<block, HasResult>(a, row, c, x + c, HasResult ? result + c : nullptr);
    if constexpr (rest > 0)
      run<rest, HasResult>(a, row, whole, x + whole, HasResult ? result + whole : nullptr);
  }
};

/// The end of a row of the anchor: stores the row if another group reads it, then runs the epilogue
/// on it.
///
/// x: numbers, or values
template <class P, int G, class X>
void finish_row(arguments<typename P::element> const& a, extent row, X const* x) {
  using epilogue = chain<P, G, true>;
  using V = typename P::value;
  constexpr detail::group g = P::group_at(G);
  if constexpr (g.out[0] >= 0 && !epilogue::stores_result) {
    V* const out = a.template values<V>(g.out[0]) + row * g.columns;
    if constexpr (!in_place<X, V>)
      convert_row(x, g.columns, out);
    else if (out != x)
      copy_row<streams<P, G>()>(x, g.columns, out);
  }
  if constexpr (epilogue::length > 0) epilogue::run_row(a, row, x);
}

/// finish_row for loops that are compiled once for all groups; null if the group has no epilogue
/// and rows are computed in place.
template <class P, int G>
constexpr row_finish<typename P::element> finish_of() {
  if constexpr (P::group_at(G).epilogue.size() > 0 ||
                !in_place<typename P::element, typename P::value>)
    return &finish_row<P, G>;
  else
    return nullptr;
}

/// The epilogue on register tiles: functions of contraction_ends, whose sink is a product_part.
template <class P, int G>
struct tile_epilogue {
  using T = typename P::element;
  using V = typename P::value;
  using epilogue = chain<P, G, true>;
  static constexpr detail::group g = P::group_at(G);

  template <int Columns>
  static void whole(void* part, extent i, extent j, int rows, T* sums, extent stride) {
    finish<Columns>(part, i, j, rows, Columns, sums, stride);
  }
  static void rest(void* part, extent i, extent j, int rows, int columns, T* sums, extent stride) {
    finish<0>(part, i, j, rows, columns, sums, stride);
  }

 private:
  template <int Columns>
  static void finish(void* part, extent i, extent j, int rows, int columns, T* sums,
                     extent stride) {
    product_part<T> const& of = *static_cast<product_part<T> const*>(part);
    for (int r = 0; r < rows; ++r) {
      T const* const from = sums + r * stride;
      if constexpr (g.out[0] >= 0) {
        V* const to = of.a.template values<V>(g.out[0]) + (of.first + i + r) * g.columns + j;
        if constexpr (in_place<T, V>)
          std::memcpy(to, from, sizeof(T) * std::size_t(columns));
        else
          convert_row(from, columns, to);
      }
      if constexpr (epilogue::length > 0)
        epilogue::template run<Columns>(of.a, of.first + i + r, j, from, nullptr, columns);
    }
  }
};

/// The prologue on rows of the left factor, just before the product reads them.
template <class P, int G>
struct row_prologue {
  using T = typename P::element;
  using before = chain<P, G, false>;
  static void make(void* part, extent i, extent rows) {
    product_part<T> const& of = *static_cast<product_part<T> const*>(part);
    auto const* const x =
        of.a.template values<typename P::value>(before::g.in[0]) + of.first * before::width;
    for (extent r = i; r < i + rows; ++r)
      before::template run_row<true>(of.a, of.first + r, x + r * before::width,
                                     of.left_rows + r * before::width);
  }
};

/// The ops around the product of group G, and the rounding of its result. Functions for remaining
/// columns are compiled only if columns remain.
template <class P, int G>
constexpr contraction_ends<typename P::element> product_ends() {
  using T = typename P::element;
  constexpr detail::group g = P::group_at(G);
  contraction_ends<T> ops;
  if constexpr (g.epilogue.size() > 0 || !in_place<T, typename P::value>) {
    using epilogue = tile_epilogue<P, G>;
    ops.tile = &epilogue::template whole<tile_columns<T>>;
    if constexpr (g.columns % tile_columns<T> != 0)
      ops.vector = &epilogue::template whole<lanes<T>>;
    if constexpr (g.columns % lanes<T> != 0) ops.rest = &epilogue::rest;
  }
  if constexpr (g.prologue.size() > 0) ops.make_rows = &row_prologue<P, G>::make;
  return ops;
}
template <class P, int G>
inline constexpr contraction_ends<typename P::element> ends_around = product_ends<P, G>();
