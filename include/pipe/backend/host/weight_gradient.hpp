// SPDX-License-Identifier: BSL-1.0
//
// The gradient of a matrix product's weight: no formula of the model's is in it, so one function
// serves all groups.
#pragma once

#include <pipe/backend/host/arguments.hpp>
#include <pipe/backend/host/contraction_loops.hpp>
#include <pipe/backend/host/isa.hpp>
#include <pipe/backend/host/parts.hpp>
#include <pipe/backend/host/tiles.hpp>
#include <pipe/base/config.hpp>
#include <pipe/passes/group.hpp>

PIPE_OPTIMIZED_BEGIN
namespace pp::host {

/// Reads n elements of each row once, in order, so that a kernel which then reads them crosswise
/// finds them in L2: the prefetcher follows rows, not columns.
template <class T>
void warm(T const* x, extent rows, extent n, extent stride) {
  constexpr extent line = 64 / static_cast<extent>(sizeof(T));
  T sum(0);
  for (extent r = 0; r < rows; ++r, x += stride)
    for (extent i = 0; i < n; i += line) sum += x[i];
  asm volatile("" : : "m"(sum));
}

/// dw[inner, columns] (+)= x^T dy over `rows` rows of x[rows, inner] and dy[rows, columns], as
/// group g says.
template <class T>
PIPE_ONE_COPY void weight_gradient(tile_set<T> const& tiles, arguments<T> const& a, group const& g,
                                   extent rows) {
  constexpr long near_cache = 32 * 1024;  // L1
  extent const inner = g.attributes.contraction().inner;
  share const own =
      share_of(inner, rows_step, a.part, a.parts);  // a row of dw belongs to a column of x
  if (own.size() == 0) return;
  strided<T const> const x{a.at(g.in[0]) + own.begin, 1, inner};
  if (rows * inner * long(sizeof(T)) > near_cache) warm(x.data, rows, own.size(), inner);
  contraction_ends<T> dw;
  dw.c = a.at(g.out[0]) + own.begin * g.columns;
  dw.ldc = g.columns;
  dw.adds = a.accumulate;
  contract_tiles<T>(tiles, own.size(), g.columns, rows, x, a.at(g.in[1]), g.columns, dw,
                    a.workspace);
}

}  // namespace pp::host
PIPE_OPTIMIZED_END
