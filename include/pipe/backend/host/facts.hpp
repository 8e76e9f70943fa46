// SPDX-License-Identifier: BSL-1.0
//
// Facts of host kernels, which the memory plan and the division among threads read; they are equal
// on every instruction set. Each kernel (kernel_of in per_isa/) inherits the facts of its family or
// has its own, as static constexpr functions:
//
//   long workspace_bytes<T, V>(group const&, int samples, int parts)
//   long workspace_bytes<T, V, Slices>(group const&, int samples, int parts)    of products
//   int parts(group const&, int samples, int threads)
//   int tile_rows(group const&, int samples)
//
// workspace_bytes: bytes for each of `parts` threads, for micro-batches of `samples`; V is the type
// of values, whose rows are widened to T in the workspace if it is narrower. parts: the
// number of parts in which a group runs on a rank with this number of threads. tile_rows: the
// numbers of rows of the kernel's products, combined by bitwise or. The lowest set bit divides all
// of them, so tiles of fewer rows are not compiled. 0 for a kernel without register tiles.
#pragma once

#include <pipe/backend/host/attention.hpp>
#include <pipe/backend/host/contraction.hpp>
#include <pipe/backend/host/parts.hpp>
#include <pipe/backend/host/values.hpp>
#include <pipe/base/bytes.hpp>
#include <pipe/passes/group.hpp>

namespace pp::host {

/// The parts of a group: one for each thread, or a single part for work of a few microseconds,
/// since waking the other threads takes a microsecond, and fetching their results takes longer.
///
/// work: the work of one element of the result, in units of an element of a norm
constexpr int parts_for(detail::group const& g, int samples, int threads, double work) {
  constexpr double worth_sharing = 32768;  // elements of a norm: about six microseconds
  return double(g.rows) * samples * g.columns * work < worth_sharing ? 1 : threads;
}
/// The work of a multiply-add of a product, in elements of a norm.
inline constexpr double product_work = 1.0 / 16;

/// Bytes of `count` rows for numbers, if rows of values are widened to them.
template <class T, class V>
constexpr long widened_bytes(long count, extent columns) {
  return in_place<T, V> ? 0 : count * detail::align_up(long(columns) * long(sizeof(T)));
}

/// Facts of kernels that compute row by row, with a workspace of two rows: before and after the
/// anchor. Rows of values are widened in four more rows.
struct row_facts {
  template <class T, class V = T>
  static constexpr long workspace_bytes(detail::group const& g, int, int) {
    return 2 * detail::align_up(long(g.columns) * long(sizeof(T))) +
           widened_bytes<T, V>(4, g.columns);
  }
  static constexpr int parts(detail::group const& g, int samples, int threads) {
    return parts_for(g, samples, threads, 1);
  }
  static constexpr int tile_rows(detail::group const&, int) { return 0; }
};

/// Facts of sums of products along rows, whose result has one number for each row.
struct dot_facts : row_facts {
  template <class T, class V = T>
  static constexpr long workspace_bytes(detail::group const& g, int samples, int parts) {
    return row_facts::workspace_bytes<T, V>(g, samples, parts) +
           widened_bytes<T, V>(2, g.attributes.contraction().inner);
  }
  static constexpr int parts(detail::group const& g, int samples, int threads) {
    return parts_for(g, samples, threads, double(g.attributes.contraction().inner) / 2);
  }
};

/// Facts of a contrast of all rows of a micro-batch with each other.
struct contrast_facts : row_facts {
  template <class T, class V = T>
  static constexpr long workspace_bytes(detail::group const& g, int samples, int) {
    return detail::align_up(5 * long(g.rows) * samples * long(sizeof(T))) +
           widened_bytes<T, V>(long(g.rows) * samples + 2, g.columns);
  }
  static constexpr int parts(detail::group const& g, int samples, int threads) {
    return parts_for(g, samples, threads, double(g.rows) * samples * product_work);
  }
};

/// Facts of lookups, of bags of rows of a table, and of their gradients.
struct lookup_facts : row_facts {
  static constexpr int parts(detail::group const& g, int samples, int threads) {
    return parts_for(g, samples, threads, g.attributes.lookup().ids);
  }
};

/// The fewest rows of a register tile that pipeline P needs, a power of two: the numbers of rows of
/// all its products are multiples of it, so smaller tiles are not compiled. Defined in
/// kernel_facts.hpp, from the facts of all kernels.
template <class P>
constexpr int least_tile_rows();

/// Facts of user-defined layers, each of whose functions is called once for a whole micro-batch.
struct custom_facts : row_facts {
  static constexpr int parts(detail::group const&, int, int) { return 1; }
};
/// Facts of those functions of user-defined layers that are called for the samples of each thread
/// if the layer's samples are independent. One operation of a layer counts as an element of a norm.
struct custom_sample_facts : row_facts {
  static constexpr int parts(detail::group const& g, int samples, int threads) {
    detail::custom_attributes const of = g.attributes.custom();
    double const elements = double(g.rows) * g.columns, work = double(of.flops) / elements;
    return of.samples_are_independent && samples > 1
               ? parts_for(g, samples, threads, work > 1 ? work : 1)
               : 1;
  }
};

/// Facts of norms that keep numbers for each column as well, with a workspace of five rows. Rows of
/// values are widened in two more.
struct column_facts : row_facts {
  template <class T, class V = T>
  static constexpr long workspace_bytes(detail::group const& g, int, int) {
    return 5 * detail::align_up(long(g.columns) * long(sizeof(T))) +
           widened_bytes<T, V>(2, g.columns);
  }
};

/// Rows of an image of gradients that are added up together in L1 or L2, where these are numbers
/// beside values of 16 bits.
template <class T>
constexpr int rows_at_once(detail::resample_attributes const& by, int columns) {
  constexpr long room = 64 * 1024;
  long const row = long(by.axis[1].in) * columns * long(sizeof(T)), rows = room / row;
  return rows < 1 ? 1 : rows < by.axis[0].in ? int(rows) : by.axis[0].in;
}
/// Facts of the gradient of a resampling.
struct resample_gradient_facts : row_facts {
  template <class T, class V = T>
  static constexpr long workspace_bytes(detail::group const& g, int samples, int parts) {
    detail::resample_attributes const by = g.attributes.resample();
    return row_facts::workspace_bytes<T, V>(g, samples, parts) +
           widened_bytes<T, V>(rows_at_once<T>(by, g.columns), by.axis[1].in * extent(g.columns));
  }
};

/// Facts of sums over the rows of a micro-batch, whose parts own columns.
struct batch_facts : row_facts {
  static constexpr int parts(detail::group const& g, int samples, int threads) {
    detail::group whole = g;
    whole.rows = g.attributes.batch().rows;
    return parts_for(whole, samples, threads, 1);
  }
};

/// Facts of c = a b, a (rows, inner), b (inner, columns), whose parts own rows of c.
struct contraction_facts {
  template <class T, class V = T, int Slices = 0>
  static constexpr long workspace_bytes(detail::group const& g, int samples, int parts) {
    extent const rows = extent(g.rows) * samples;
    extent const inner = g.attributes.contraction().inner;
    bool const makes_rows = !g.prologue.empty() && (!in_place<T, V> || g.prologue.back().store < 0);
    return shared_workspace<T, V>(rows, g.columns, inner, parts, Slices, false) +
           (makes_rows ? detail::align_up(largest_part(rows, row_alignment, parts) * inner *
                                          long(sizeof(T)))
                       : 0);
  }
  static constexpr int parts(detail::group const& g, int samples, int threads) {
    return parts_for(g, samples, threads, 1 + g.attributes.contraction().inner * product_work);
  }
  static constexpr int tile_rows(detail::group const& g, int samples) {
    return g.rows * samples | (is_narrow_product(g.columns) ? g.columns : 0);
  }

 protected:
  /// Bytes for the part that needs most of a product whose result has `rows` rows; by_columns: its
  /// left factor is stored by columns.
  template <class T, class V>
  static constexpr long shared_workspace(extent rows, extent columns, extent inner, int parts,
                                         int slices, bool by_columns) {
    long most = 0;
    for (int part = 0; part < parts; ++part) {
      part_range const mine = part_of(rows, row_alignment, part, parts);
      if (mine.size() == 0) continue;
      long needed = product_workspace<T, V>(mine.size(), columns, inner, slices, by_columns);
      if (needed > most) most = needed;
      if (by_columns && is_narrow_gradient(columns))
        needed = product_workspace<T, V>(columns, mine.size(), inner, 0, true);
      if (!by_columns && is_narrow_product(columns))
        needed = long(contraction_workspace<T>(
            mine.size(), inner,
            narrow_product_blocking(columns, inner, widest_vector_bytes / sizeof(T) * 3)));
      if (needed > most) most = needed;
    }
    return most;
  }
};

/// Facts of dw = x^T dy, x (rows, inner), dy (rows, columns), whose parts own rows of dw.
struct weight_gradient_facts : contraction_facts {
  template <class T, class V = T, int Slices = 0>
  static constexpr long workspace_bytes(detail::group const& g, int samples, int parts) {
    return shared_workspace<T, V>(g.attributes.contraction().inner, g.columns,
                                  extent(g.rows) * samples, parts, Slices, true);
  }
  static constexpr int tile_rows(detail::group const& g, int) {
    return g.attributes.contraction().inner | (is_narrow_gradient(g.columns) ? g.columns : 0);
  }
};

/// Facts of an attention and its gradient, whose parts own heads of keys and values.
struct attention_facts {
  static constexpr int parts(detail::group const& g, int samples, int threads) {
    extent const keys = attention_shape_of(g, samples).keys;
    return parts_for(g, samples, threads, 1 + 2.0 * double(keys) * product_work);
  }
  static constexpr int tile_rows(detail::group const& g, int) {
    return g.rows | g.attributes.attention().keys;
  }
};
struct attention_forward_facts : attention_facts {
  template <class T, class V = T>
  static constexpr long workspace_bytes(detail::group const& g, int samples, int) {
    return long(attention_forward_workspace<T, V>(attention_shape_of(g, samples)));
  }
};
struct attention_backward_facts : attention_facts {
  template <class T, class V = T>
  static constexpr long workspace_bytes(detail::group const& g, int samples, int) {
    return long(attention_backward_workspace<T, V>(attention_shape_of(g, samples)));
  }
};

}  // namespace pp::host
