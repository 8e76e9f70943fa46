// SPDX-License-Identifier: BSL-1.0
//
// Convolutions as matrix products whose left factor is gathered: the tiles of contraction_tiles,
// with slabs copied from the places of patches in an image.
#pragma once

#include <pipe/backend/cuda/convolution/patches.hpp>
#include <pipe/backend/cuda/matmul/contraction_tile.hpp>

namespace pp::cuda {

/// The product of a convolution, or of one of its gradients, in each group of channels.
constexpr product_shape shape_of_convolution(detail::group const& g, int samples) {
  detail::convolution_attributes const of = g.attributes.convolution();
  int const channels = of.channels / of.groups, filters = of.filters / of.groups;
  extent const pixels = extent(of.out_rows()) * samples;
  return g.anchor == op_kind::convolution_weight_gradient
             ? product_shape{of.inner(), filters, pixels}
         : g.anchor == op_kind::convolution_input_gradient
             ? product_shape{extent(of.in_rows()) * samples, channels, of.taps() * filters}
             : product_shape{pixels, filters, of.inner()};
}

/// The products c = a b of group G for the kernel of tiles, one product for each group of channels.
///
/// shape: convolution: a = patches of x (pixels, taps * C / groups), b = w (taps * C / groups, N)
///        -> c (pixels, N)
/// shape: input gradient: a = patches of dy (pixels, taps * N / groups), b from w -> c (pixels, C)
/// shape: weight gradient: a = transposed patches of x, b = dy -> c (taps * C / groups, N), and db
///        as one more row
template <class P, int G>
struct convolution
    : product_end<P, G, group_of<P, G>::value.anchor == op_kind::convolution_weight_gradient,
                  shape_of_convolution(group_of<P, G>::value, P::samples).rows> {
  using T = typename P::element;
  static constexpr op_kind anchor = group_of<P, G>::value.anchor;
  static constexpr bool makes_weight = anchor == op_kind::convolution_weight_gradient,
                        transposes_right = anchor == op_kind::convolution_input_gradient;
  static constexpr product_format format = product_of<P>();
  static constexpr product_shape shape = shape_of_convolution(group_of<P, G>::value, P::samples);
  static constexpr int products = convolution_of<P, G>::value.groups;
  static constexpr long left_bytes = 0;
  static constexpr int each =
      makes_weight ? access_width<float>(int(shape.columns)) : access_width<T>(int(shape.columns));

  using image = patches<P, G, transposes_right>;
  /// The numbers of channels and of filters of a group: multiples of a piece of both factors.
  static constexpr int channels = convolution_of<P, G>::value.channels / products,
                       filters = convolution_of<P, G>::value.filters / products;

  using end = product_end<P, G, makes_weight, shape.rows>;
  /// fetch and take of product_end, for a row of the matrix of patches.
  template <int Count>
  PIPE_HD PIPE_INLINE static void fetch(arguments const& a, extent row, int column,
                                        typename end::template before<Count>& z) {
    end::template fetch<Count>(a, row_of(row), column, z);
  }
  template <int Count>
  PIPE_HD PIPE_INLINE static void take(arguments const& a, extent row, int column,
                                       float (&v)[Count],
                                       typename end::template before<Count> const& z) {
    end::template take<Count>(a, row_of(row), column, v, z);
  }
  template <int Count>
  PIPE_HD PIPE_INLINE static void take(arguments const& a, extent row, int column,
                                       float (&v)[Count]) {
    end::template take<Count>(a, row_of(row), column, v);
  }
  /// The operands that the epilogue can read ahead, if rows of c follow each other in memory: rows
  /// in phases of a stride do not.
  template <class Read>
  PIPE_HD PIPE_INLINE static void each_matrix_read([[maybe_unused]] arguments const& a,
                                                   [[maybe_unused]] Read read) {
    if constexpr (image::phases == 1) end::each_matrix_read(a, read);
  }

  /// Piece (k, column) of b in a group.
  PIPE_HD PIPE_INLINE static T const* right_at(arguments const& a, int group, int k, int column) {
    constexpr int in = group_of<P, G>::value.in[1], pitch = filters * products;
    T const* const from = a.at<T const>(in) + group * filters;
    if constexpr (transposes_right)
      return from + extent(k / filters * channels + column) * pitch + k % filters;
    else
      return from + extent(k) * pitch + column;
  }
  /// The first channel of a group in the image that is read.
  PIPE_HD PIPE_INLINE static T const* left(arguments const& a, int group) {
    constexpr int in = group_of<P, G>::value.in[0];
    return a.at<T const>(in) + group * image::channels;
  }

 private:
  /// The row in memory of a row of c: rows of an input gradient are in the order of phases.
  PIPE_HD PIPE_INLINE static extent row_of(extent row) {
    if constexpr (makes_weight)
      return row;
    else
      return image::row_of(row);
  }
};

/// The plan of a convolution: the plan of a product with the rows of all groups.
template <class P, int G>
constexpr tile_plan plan_for_convolution() {
  product_shape s = convolution<P, G>::shape;
  s.rows *= convolution<P, G>::products;
  return plan_for(s, convolution<P, G>::format);
}

/// The tiles of a convolution, or of one of its gradients.
///
/// shape: x (B, H, W, C), w (kh, kw, C / groups, N) -> y (B, Y, X, N), or as `convolution` says
/// law:   as contraction_tiles, over ascending (tap, channel), of a weight's gradient over
///        ascending pixels; pixels outside are zeros in the sum
/// work:  a block has a tile of c within one group of channels; a thread keeps the windows of the
///        rows that it copies, in pieces of up to 16 bytes along channels
/// cost:  2 * pixels * inner * N FLOPs, of an input gradient with a stride up to stride^2 times as
///        many if the filters of a group are no multiple of a slab's depth; a pixel of the image is
///        read from L2 once for each tap and each tile of columns
template <class P, int G, tile_plan Plan>
struct convolution_tiles : contraction_tiles<P, G, Plan, convolution<P, G>> {
  using base = contraction_tiles<P, G, Plan, convolution<P, G>>;
  using base::shape, base::threads;
  using typename base::place, typename base::product, typename base::stage, typename base::T;
  using image = typename product::image;
  using left_plan = typename stage::left_slab::template copy_plan<image::channels, threads>;
  using right_plan = typename stage::right_slab::template copy_plan<product::filters, threads>;
  static constexpr int windows = product::makes_weight ? 1 : Plan.rows / left_plan::down;

  struct state : base::state {
    typename image::window window[windows];  // of the rows of a that the thread copies
  };

  template <class Block>
  PIPE_HD static void run(Block& block, arguments const& a) {
    place at = base::place_of(block.position());
    hold(at.slabs);
    int const group = product::products == 1 ? 0 : at.column / int(shape.columns),
              column = at.column - group * int(shape.columns);
    T const* const left = product::left(a, group);
    block.part([&](int thread, state& mine) {
      base::clear(mine);
      if constexpr (!product::makes_weight) {
        PIPE_UNROLL
        for (int i = 0; i < windows; ++i) {
          int const row = at.row + left_plan::row(thread) + i * left_plan::down;
          mine.window[i] = image::window_of(unsigned(row < shape.rows ? row : 0));
        }
      }
    });
    // Slabs after the last are zeros. `next` begins with the tile's first slab.
    useful_slabs next(at);
    at.slabs = next.count();
    auto const start = [&](int slab, stage& s) {
      bool const present = slab < at.slabs;
      int const first = next.take() * Plan.depth;
      block.part([&](int thread, state& mine) {
        copy_left(block, thread, mine, left, at.row, first, present, s);
        copy_right(block, thread, a, group, column, first, present, s);
      });
      commit_copies(block);
    };
    base::make_tile(block, a, at, start);
  }

 private:
  /// Whether slabs of zeros are skipped: then a slab has one tap.
  static constexpr bool skips = product::transposes_right && image::phases > 1 &&
                                image::taps <= 64 && product::filters % Plan.depth == 0;
  static constexpr int slabs_of_tap = skips ? product::filters / Plan.depth : 1;

  /// The slabs of a tile that are not all zeros, in their order.
  class useful_slabs {
   public:
    PIPE_HD PIPE_INLINE explicit useful_slabs(place const& at) : at_(at) {
      if constexpr (skips) {
        unsigned first = unsigned(at.row), last = unsigned(at.row + Plan.rows - 1);
        int const begin = image::take_phase(first), end = image::take_phase(last);
        for (int tap = 0; tap < image::taps; ++tap)
          for (int phase = begin; phase <= end; ++phase)
            if (image::reaches(tap, phase)) taps_ |= 1ull << tap;
      }
    }
    /// The number of the tile's slabs that are not all zeros.
    PIPE_HD PIPE_INLINE int count() const {
      int slabs = skips ? 0 : at_.slabs;
      for (int tap = 0; skips && tap < image::taps; ++tap)
        if (has(tap)) slabs += before_tap(tap + 1) - before_tap(tap);
      return slabs;
    }
    /// The number of the next slab.
    PIPE_HD PIPE_INLINE int take() {
      while (skips && next_ < at_.slabs && !has(number() / slabs_of_tap))
        next_ = before_tap(number() / slabs_of_tap + 1);
      int const slab = number();
      ++next_;
      return slab;
    }

   private:
    /// Whether a tap reaches any pixel of the tile's rows.
    PIPE_HD PIPE_INLINE bool has(int tap) const { return taps_ >> tap & 1; }
    PIPE_HD PIPE_INLINE int number() const {
      return at_.first_slab + int(base::turns::take(unsigned(next_)));
    }
    /// The number of the split's slabs before a tap.
    PIPE_HD PIPE_INLINE int before_tap(int tap) const {
      return base::turns::before(at_.part, tap * slabs_of_tap);
    }
    place at_;
    int next_ = 0;  // of the split's slabs, with those of zeros
    unsigned long long taps_ = 0;
  };

  /// Rows from `row` on, k from `first` on.
  template <class Block>
  PIPE_HD PIPE_INLINE static void copy_left(Block& block, int thread,
                                            [[maybe_unused]] state const& mine, T const* left,
                                            int row, int first, bool present, stage& s) {
    using piece = typename stage::left_slab::piece;
    s.left.template copy_pieces<left_plan, threads>(block, thread, [&](int r, int c) {
      int const down = left_plan::row(thread) + r, right = left_plan::column(thread) + c;
      int const m = row + (product::makes_weight ? right : down),
                k = first + (product::makes_weight ? down : right),
                column = product::makes_weight ? m : k;  // of the patches
      if (!present || m >= shape.rows || k >= shape.inner) return piece{nullptr, false};
      typename image::window w;
      if constexpr (product::makes_weight)
        w = image::window_of(unsigned(k));
      else
        w = mine.window[r / left_plan::down];
      T const* const from = image::at(left, w, column / image::channels, column % image::channels);
      return piece{from, from != nullptr};
    });
  }
  template <class Block>
  PIPE_HD PIPE_INLINE static void copy_right(Block& block, int thread, arguments const& a,
                                             int group, int column, int first, bool present,
                                             stage& s) {
    using piece = typename stage::right_slab::piece;
    s.right.template copy_pieces<right_plan, threads>(block, thread, [&](int r, int c) {
      int const down = right_plan::row(thread) + r, right = right_plan::column(thread) + c;
      int const n = column + (product::transposes_right ? down : right),
                k = first + (product::transposes_right ? right : down);
      if (!present || n >= shape.columns || k >= shape.inner) return piece{nullptr, false};
      return piece{product::right_at(a, group, k, n), true};
    });
  }
};

}  // namespace pp::cuda
