// SPDX-License-Identifier: BSL-1.0
//
// Matrix multiplication: a sink and a prologue of any type, for the loops of
// contraction_loops.hpp.

/// Whether the width of a sink's matrix, if the sink has one, is a multiple of this number of
/// columns. Then functions for remaining columns are not compiled.
template <class Sink>
constexpr bool is_whole(int columns) {
  if constexpr (requires { Sink::width; })
    return Sink::width % columns == 0;
  else
    return false;
}

/// The sink and the prologue as pointers for contract_tiles. Both must outlive the call. Functions
/// for remaining columns are compiled only if the sink's width may need them.
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

/// C[m, n] = A[m, k] * B[k, n] into any sink, with blocking `cut`; see contract_tiles. m is a
/// multiple of Least.
template <class T, int Least = 1, class Sink, class Prologue>
void contract(product_shape const& shape, strided<T const> a, T const* b, extent ldb, Sink&& sink,
              Prologue&& prologue, void* workspace, blocking const& cut) {
  contract_tiles<T>(tiles<T, Least>, shape, a, b, ldb, ends_of<T>(sink, prologue), workspace, cut);
}

/// The same with the blocking that measured best; workspace: contraction_workspace<T>(m, n, k)
/// bytes.
template <class T, int Least = 1, class Sink, class Prologue = no_prologue>
void contract(product_shape const& shape, strided<T const> a, T const* b, extent ldb, Sink&& sink,
              void* workspace, Prologue&& prologue = Prologue{}) {
  contract_tiles<T>(tiles<T, Least>, shape, a, b, ldb, ends_of<T>(sink, prologue), workspace);
}
