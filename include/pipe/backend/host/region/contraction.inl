// SPDX-License-Identifier: BSL-1.0
//
// Matrix multiplication around the register tile: cuts C into tiles, B into panels and the shared dimension into
// blocks, carries partial sums between blocks, and hands finished tiles to the sink. Weights of the usual layers fit in
// L2 and are read in place. At the right edge a vector of B reaches into the next row, whose sums are thrown away; only
// the last row or so, where it would leave the matrix, is read from a zero-padded copy.

namespace pp::host::PIPE_ISA {

/// Copies b[depth, columns] to panel[depth, padded], zero beyond `columns`.
template <class T>
void pack_panel(T const* b, extent ldb, extent depth, extent columns, extent padded, T* panel) {
  constexpr int Lanes = lanes<T>;
  for (extent p = 0; p < depth; ++p, b += ldb, panel += padded) {
    extent c = 0;
    for (; c + Lanes <= columns; c += Lanes) save(panel + c, load(b + c));
    for (; c < columns; ++c) panel[c] = b[c];
    for (; c < padded; ++c) panel[c] = T(0);
  }
}

/// A sink and a prologue without their types, so that the loops over tiles are compiled once, not for every kernel group: a
/// call through a pointer is nothing against a tile.
template <class T>
struct contraction_ends {
  T* c = nullptr;  ///< direct sinks: the tile writes there, or adds
  extent ldc = 0;
  bool adds = false;
  void* sink = nullptr;  ///< others: called with a whole tile, a vector of columns, or the columns that are left
  void (*tile)(void* sink, extent i, extent j, int rows, T* sums, extent stride) = nullptr;
  void (*vector)(void* sink, extent i, extent j, int rows, T* sums, extent stride) = nullptr;
  void (*rest)(void* sink, extent i, extent j, int rows, int columns, T* sums, extent stride) = nullptr;
  void* prologue = nullptr;  ///< null: none
  void (*make_rows)(void* prologue, extent i, extent rows) = nullptr;
};

/// Whether every row of a sink's matrix, if it says how wide that is, is made of whole pieces of so many columns. Then nothing
/// is compiled for what would be left.
template <class Sink>
constexpr bool is_whole(int columns) {
  if constexpr (requires { Sink::width; })
    return Sink::width % columns == 0;
  else
    return false;
}

template <class T, class Sink, class Prologue>
contraction_ends<T> ends_of(Sink& sink, Prologue& prologue) {
  contraction_ends<T> e;
  if constexpr (direct_sink<Sink>) {
    e.c = sink.c;
    e.ldc = sink.ldc;
    e.adds = sink.adds;
  } else {
    e.sink = &sink;
    e.tile = [](void* s, extent i, extent j, int rows, T* sums, extent stride) {
      static_cast<Sink*>(s)->template full<tile_columns<T>>(i, j, rows, sums, stride);
    };
    if constexpr (!is_whole<Sink>(tile_columns<T>))
      e.vector = [](void* s, extent i, extent j, int rows, T* sums, extent stride) {
        static_cast<Sink*>(s)->template full<lanes<T>>(i, j, rows, sums, stride);
      };
    if constexpr (!is_whole<Sink>(lanes<T>))
      e.rest = [](void* s, extent i, extent j, int rows, int columns, T* sums, extent stride) {
        static_cast<Sink*>(s)->part(i, j, rows, columns, sums, stride);
      };
  }
  if constexpr (!std::is_same_v<std::remove_const_t<Prologue>, no_prologue>) {
    e.prologue = &prologue;
    e.make_rows = [](void* p, extent i, extent rows) { (*static_cast<Prologue*>(p))(i, rows); };
  }
  return e;
}

/// Hands a finished rectangle that lies in the tile buffer to the sink.
template <class T>
void deliver(contraction_ends<T> const& to, extent i, extent j, int rows, int columns, T* sums, extent stride) {
  constexpr int Lanes = lanes<T>;
  if (to.sink == nullptr) {
    for (int r = 0; r < rows; ++r)
      for (int c = 0; c < columns; ++c) {
        T& element = to.c[(i + r) * to.ldc + j + c];
        element = to.adds ? element + sums[r * stride + c] : sums[r * stride + c];
      }
    return;
  }
  if (columns == tile_columns<T>) return to.tile(to.sink, i, j, rows, sums, stride);
  int const whole = columns - columns % Lanes;
  for (int c = 0; c < whole; c += Lanes) to.vector(to.sink, i, j + c, rows, sums + c, stride);
  if (whole < columns) to.rest(to.sink, i, j + whole, rows, columns - whole, sums + whole, stride);
}

/// C[m, n] = A[m, k] * B[k, n], with the loops cut as told.
///
/// shape:     A is a(i, p) through its two strides; B row-major with row stride ldb; m, n, k >= 1
/// law:       element (i, j) is one chain of fused multiply-adds over ascending p: the same bits for every blocking,
///            tile and m. Reads B inside [b, b + (k - 1) * ldb + n) only.
/// workspace: contraction_workspace<T>(n, k, cut) bytes, aligned to widest_vector_bytes
template <class T>
PIPE_ONE_COPY void contract_tiles(extent m, extent n, extent k, strided<T const> a, T const* b, extent ldb,
                                  contraction_ends<T> const& with, void* workspace, blocking const& cut) {
  constexpr int Lanes = lanes<T>;
  T* const finished = static_cast<T*>(workspace);           // one tile's sums on their way to the sink
  T* const panel = finished + tile_rows * tile_columns<T>;  // depth x tile_columns of B
  T* const partial =
      panel + (cut.pack || cut.depth < Lanes ? cut.depth : Lanes) * tile_columns<T>;  // sums between blocks
  for (extent i0 = 0; i0 < m; i0 += cut.rows) {
    extent const i1 = i0 + cut.rows < m ? i0 + cut.rows : m;
    for (extent j0 = 0; j0 < n; j0 += cut.columns) {
      extent const j1 = j0 + cut.columns < n ? j0 + cut.columns : n;
      for (extent p0 = 0; p0 < k; p0 += cut.depth) {
        extent const depth = p0 + cut.depth < k ? cut.depth : k - p0;
        bool const first = p0 == 0, last = p0 + depth == k;
        T* sums = partial;
        int vectors = 0;
        for (extent j = j0; j < j1; j += vectors * Lanes) {
          vectors = next_tile_vectors((j1 - j + Lanes - 1) / Lanes);
          int const padded = vectors * Lanes;
          int const columns = static_cast<int>(j1 - j < padded ? j1 - j : padded);
          T const* const right = b + p0 * ldb + j;
          // Rows of this panel that are read in place, and the rest, read from the copy.
          extent in_place = cut.pack ? 0 : depth;
          while (in_place > 0 && (p0 + in_place - 1) * ldb + j + padded > (k - 1) * ldb + n) --in_place;
          if (in_place < depth) pack_panel<T>(right + in_place * ldb, ldb, depth - in_place, columns, padded, panel);
          int rows = 0;
          for (extent i = i0; i < i1; i += rows) {
            rows = next_tile_rows(i1 - i);
            if (j == 0 && first && with.prologue != nullptr) with.make_rows(with.prologue, i, extent(rows));
            T const* const left = a.data + i * a.row + p0 * a.column;
            tile_ends<T> ends{first ? nullptr : sums, padded, sums, padded, false};
            if (last) {
              ends.to = finished;
              if (with.sink == nullptr && columns == padded)
                ends = tile_ends<T>{ends.from, padded, with.c + i * with.ldc + j, with.ldc, with.adds};
            }
            if (in_place == depth) {
              tile_of(rows, vectors, depth, left, a.row, a.column, right, ldb, ends);
            } else if (in_place == 0) {
              tile_of(rows, vectors, depth, left, a.row, a.column, panel, extent{padded}, ends);
            } else {
              tile_ends<T> const half{ends.from, padded, finished, padded, false};
              tile_of(rows, vectors, in_place, left, a.row, a.column, right, ldb, half);
              ends.from = finished;
              tile_of(rows, vectors, depth - in_place, left + in_place * a.column, a.row, a.column, panel,
                      extent{padded}, ends);
            }
            if (last && ends.to == finished) deliver<T>(with, i, j, rows, columns, finished, padded);
            sums += rows * padded;
          }
        }
      }
    }
  }
}

/// The same into any sink.
template <class T, class Sink, class Prologue>
void contract(extent m, extent n, extent k, strided<T const> a, T const* b, extent ldb, Sink&& sink,
              Prologue&& prologue, void* workspace, blocking const& cut) {
  contract_tiles<T>(m, n, k, a, b, ldb, ends_of<T>(sink, prologue), workspace, cut);
}

/// The same with the blocking that measured best; workspace: contraction_workspace<T>(m, n, k) bytes.
template <class T, class Sink, class Prologue = no_prologue>
void contract(extent m, extent n, extent k, strided<T const> a, T const* b, extent ldb, Sink&& sink, void* workspace,
              Prologue&& prologue = Prologue{}) {
  contract<T>(m, n, k, a, b, ldb, sink, prologue, workspace, best_blocking(m, n, k, tile_columns<T>, sizeof(T)));
}

}  // namespace pp::host::PIPE_ISA
