// SPDX-License-Identifier: BSL-1.0
//
// Kernels over the flat parameter memory of a rank: extents are read at run time, not from the
// model's type, and one launch goes over all parameters. A block works on a range of up to 4096
// elements. No range has elements of two parameters, so the sum over a range does not depend on how
// the model is cut into stages, and a range has the number of its parameter's settings (its group).
#pragma once

#include <pipe/backend/cuda/core/block.hpp>
#include <pipe/backend/cuda/core/tickets.hpp>
#include <pipe/backend/cuda/core/vectors.hpp>
#include <pipe/backend/cuda/core/warp.hpp>

namespace pp::cuda {

inline constexpr int range_elements = 4096;

/// Elements [begin, begin + count) of flat memory. needs: begin is a multiple of 16
struct flat_range {
  extent begin = 0;
  int count = 0;
  int group = 0;
};

/// The ranges of one launch: a list in the device's memory, or the ranges that cover consecutive
/// elements.
struct flat_ranges {
  flat_range const* list = nullptr;
  extent size = 0;      ///< length of the list
  extent elements = 0;  ///< elements to cover, if there is no list

  PIPE_HD static constexpr extent count_of(extent elements) {
    return (elements + range_elements - 1) / range_elements;
  }
  PIPE_HD extent count() const { return list != nullptr ? size : count_of(elements); }
  PIPE_HD flat_range at(extent i) const {
    if (list != nullptr) return list[i];
    extent const begin = i * range_elements, left = elements - begin;
    return {begin, int(left < range_elements ? left : range_elements), 0};
  }
  static flat_ranges over(extent elements) { return {nullptr, 0, elements}; }
};

/// Calls append(flat_range) for the ranges of a parameter's elements [begin, begin + elements),
/// ascending.
template <class Append>
void cut_into_ranges(extent begin, extent elements, int group, Append append) {
  flat_ranges const all = flat_ranges::over(elements);
  for (extent i = 0; i < all.count(); ++i) {
    flat_range const p = all.at(i);
    append(flat_range{begin + p.begin, p.count, group});
  }
}

/// Calls f.run<Count>(first element, group) for all elements of the ranges, if f.is_wanted(). If f
/// has for_group(group), run is called on the result of for_group, which keeps in registers the
/// numbers that all elements of a range need.
///
/// shape: flat memory, in ranges of up to 4096 elements -> flat memory, element by element
/// work:  a block has one range, a thread four neighbouring elements at a time
template <class F>
struct flat_kernel {
  struct arguments {
    flat_ranges where;
    F f;
  };
  static constexpr int threads = 256, each = 4;
  static extent blocks(arguments const& a) { return a.where.count(); }
  using state = nothing;
  using shared = nothing;

  template <class Block>
  PIPE_HD static void run(Block& block, arguments const& a) {
    if (!a.f.is_wanted()) return;
    flat_range const p = a.where.at(block.position());
    block.part([&](int thread, state&) {
      auto const& f = for_group(a.f, p.group);
      for (int i = thread * each; i + each <= p.count; i += threads * each)
        f.template run<each>(p.begin + i, p.group);
      int const rest = p.count % each;
      if (thread < rest) f.template run<1>(p.begin + p.count - rest + thread, p.group);
    });
  }

 private:
  PIPE_HD PIPE_INLINE static decltype(auto) for_group(F const& f, [[maybe_unused]] int group) {
    if constexpr (requires { f.for_group(group); })
      return f.for_group(group);
    else
      return (f);
  }
};

// ---- Sums in double precision: of squares over each range, then over the ranges of each
// parameter. ----

/// Adds access(state) of all threads, and calls done(total) in one thread of the block.
///
/// shape: one double for each of 256 threads -> total
/// law:   a butterfly in each warp, then the warps ascending
template <class Block, class Access, class Done>
PIPE_HD PIPE_INLINE void add_threads(Block& block, double (&of_warp)[8], Access access, Done done) {
  reduce_lanes(block, access, plus{});
  block.phase([&](int thread, auto& mine) {
    if (thread % warp_size == 0) of_warp[thread / warp_size] = access(mine);
  });
  block.phase([&](int thread, auto&) {
    if (thread != 0) return;
    double total = 0;
    for (double const sum : of_warp) total += sum;
    done(total);
  });
}

/// from[first * apart] + from[(first + 256) * apart] + ... below from[end * apart], in this order:
/// the part of one of 256 threads in a sum of numbers at a distance of `apart`. Sixteen loads are
/// in flight at once.
PIPE_HD PIPE_INLINE double sum_of_every_256th(double const* from, extent first, extent end,
                                              int apart = 1) {
  constexpr int together = 16, stride = 256;
  double sum = 0;
  extent i = first;
  for (; i + (together - 1) * stride < end; i += together * stride) {
    double of[together];
    PIPE_UNROLL
    for (int k = 0; k < together; ++k) of[k] = from[(i + k * stride) * apart];
    PIPE_UNROLL
    for (int k = 0; k < together; ++k) sum += of[k];
  }
  for (; i < end; i += stride) sum += from[i * apart];
  return sum;
}

/// Sums of squares over ranges, in double.
///
/// shape: x, in ranges of up to 4096 elements -> sums (ranges)
/// law:   the sum of a range does not depend on other ranges. The sum of a range of group 1, which
///        counts for no norm, is 0, or NaN if a number is not finite.
/// cost:  one pass over the gradients, bound by bytes
struct sum_squares_kernel {
  struct arguments {
    flat_ranges where;
    float const* x = nullptr;
    double* sums = nullptr;
  };
  static constexpr int threads = 256, each = 4;
  static extent blocks(arguments const& a) { return a.where.count(); }
  struct state {
    double sum;
  };
  struct shared {
    double of_warp[threads / warp_size];
  };

  template <class Block>
  PIPE_HD static void run(Block& block, arguments const& a) {
    flat_range const p = a.where.at(block.position());
    block.part([&](int thread, state& mine) {
      mine.sum = 0;
      for (int i = thread * each; i + each <= p.count; i += threads * each) {
        float v[each];
        load<each>(a.x + p.begin + i, v);
        PIPE_UNROLL
        for (int k = 0; k < each; ++k) mine.sum += double(v[k]) * double(v[k]);
      }
      int const rest = p.count % each;
      double const last = thread < rest ? double(a.x[p.begin + p.count - rest + thread]) : 0;
      mine.sum += last * last;
    });
    add_threads(
        block, block.shared().of_warp, [](state& s) -> double& { return s.sum; },
        [&](double total) { a.sums[block.position()] = p.group == 0 ? total : 0 * total; });
  }
};

/// Sums of consecutive doubles: to[i] = sum of from[first[i] .. first[i + 1]); without `first` one
/// sum of all doubles.
///
/// shape: from (elements), first (count + 1) or null -> to (count)
/// law:   a block for each sum: each thread adds every 256th double, then threads are added as by
///        add_threads
struct add_up_kernel {
  struct arguments {
    double const* from = nullptr;
    extent elements = 0;
    extent const* first = nullptr;
    extent count = 1;
    double* to = nullptr;
  };
  static constexpr int threads = 256;
  static extent blocks(arguments const& a) { return a.count; }
  using state = sum_squares_kernel::state;
  using shared = sum_squares_kernel::shared;

  template <class Block>
  PIPE_HD static void run(Block& block, arguments const& a) {
    extent const begin = a.first != nullptr ? a.first[block.position()] : 0;
    extent const end = a.first != nullptr ? a.first[block.position() + 1] : a.elements;
    block.part([&](int thread, state& mine) {
      mine.sum = sum_of_every_256th(a.from, begin + thread, end);
    });
    add_threads(
        block, block.shared().of_warp, [](state& s) -> double& { return s.sum; },
        [&](double total) { a.to[block.position()] = total; });
  }
};

/// The sum of a long list of doubles, which it overwrites: the losses of a micro-batch's rows.
///
/// shape: rows (elements) -> to (1)
/// law:   each block adds 4096 doubles: each thread every 256th, then threads as by add_threads; a
///        block writes its sum over its first double, and the last block adds the sums of blocks in
///        the same way
/// cost:  one pass, bound by bytes
struct sum_rows_kernel {
  struct arguments {
    double* rows = nullptr;
    extent elements = 0;
    double* to = nullptr;
    unsigned* ticket = nullptr;
  };
  static constexpr int threads = 256, of_block = 4096;
  static extent blocks(arguments const& a) {
    return a.elements <= of_block ? 1 : (a.elements + of_block - 1) / of_block;
  }
  using state = sum_squares_kernel::state;
  struct shared : sum_squares_kernel::shared {
    bool is_last;
  };

  template <class Block>
  PIPE_HD static void run(Block& block, arguments const& a) {
    extent const blocks = (a.elements + of_block - 1) / of_block,
                 begin = block.position() * of_block,
                 end = begin + of_block < a.elements ? begin + of_block : a.elements;
    add(block, a.rows, begin, end, 1, blocks > 1 ? a.rows + begin : a.to);
    if (blocks <= 1 || !is_last_block(block, a.ticket, unsigned(blocks), block.shared().is_last))
      return;
    add(block, a.rows, 0, blocks, of_block, a.to);
  }

 private:
  template <class Block>
  PIPE_HD PIPE_INLINE static void add(Block& block, double const* from, extent begin, extent end,
                                      int apart, double* to) {
    block.part([&](int thread, state& mine) {
      mine.sum = sum_of_every_256th(from, begin + thread, end, apart);
    });
    add_threads(
        block, block.shared().of_warp, [](state& s) -> double& { return s.sum; },
        [&](double total) { *to = total; });
  }
};

}  // namespace pp::cuda
