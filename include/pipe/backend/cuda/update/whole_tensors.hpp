// SPDX-License-Identifier: BSL-1.0
//
// Updates of whole tensors by optimizers of two passes (LAMB, and any two_pass_optimizer): two
// launches for all tensors of a stage. The first goes over all elements, and the last block of each
// tensor computes a factor from the tensor's sums; the second moves the parameters.
//
// Between the two passes only one number per tensor is kept. The second pass recomputes an
// element's direction from its moments, for as many bytes as reading it back would take.
#pragma once

#include <type_traits>

#include <pipe/backend/cuda/core/tickets.hpp>
#include <pipe/backend/cuda/update/coefficients.hpp>
#include <pipe/backend/cuda/update/flat_parameters.hpp>
#include <pipe/backend/cuda/update/update.hpp>

namespace pp::cuda {

/// A tensor that is updated whole. The group of a range of its elements is the tensor's number in
/// the list of a stage.
///
/// units: elements
struct updated_tensor {
  extent begin = 0;  ///< in the regions of parameters and gradients
  extent state = 0;  ///< in the region of optimizer state
  extent rows = 0, columns = 0;
  extent moment = 0;                   ///< from the first moment, or the row averages, to the next
  extent first_range = 0, ranges = 0;  ///< among the ranges of the launch
  int coefficients = 0;                ///< number of its set of coefficients
  bool is_factored = false;            ///< averages of rows and columns take the place of a moment
  /// The number of elements, without padding.
  PIPE_HD extent elements() const { return rows * columns; }
};

/// Whether averages of rows and columns take the place of a tensor's moment.
template <class Optimizer>
PIPE_HD PIPE_INLINE bool is_factored([[maybe_unused]] updated_tensor const& t) {
  if constexpr (detail::factored_optimizer<Optimizer>)
    return t.is_factored;
  else
    return false;
}

/// The memory of the tensors of a stage that are updated whole, for both passes.
template <class Optimizer>
struct tensor_memory {
  using coefficients = typename Optimizer::template tensor_coefficients<float>;
  static constexpr int moments = Optimizer::moments;
  static_assert(moments >= 0 && moments <= 2 && Optimizer::sums >= 1 && Optimizer::sums <= 4);

  updated_tensor const* tensors = nullptr;
  unsigned char const* sets = nullptr;  ///< coefficients, prepared with a gradient scale of 1
  float* weights = nullptr;
  float const* gradients = nullptr;
  float* states = nullptr;
  double* factors = nullptr;  ///< by tensor: written by the first pass, read by the second
  step_outcome const* judged = nullptr;  ///< null: sound, factor 1
  float* row_factors = nullptr;          ///< by tensor, if it is factored: see renew_means_kernel

  /// The coefficients of a tensor in this step.
  PIPE_HD PIPE_INLINE coefficients with(updated_tensor const& t) const {
    return coefficients_at<Optimizer, coefficients const>(sets, t.coefficients);
  }
  /// Moment k of the element of tensor t at `at` in the regions of parameters and gradients.
  PIPE_HD PIPE_INLINE float* moment(updated_tensor const& t, int k, extent at) const {
    return states + t.state + k * t.moment + (at - t.begin);
  }

  /// The average of a row, or of a column, of a factored matrix.
  PIPE_HD PIPE_INLINE float* row_average(updated_tensor const& t, extent row) const {
    return states + t.state + row;
  }
  PIPE_HD PIPE_INLINE float* column_average(updated_tensor const& t, extent column) const {
    return states + t.state + t.moment + column;
  }
  /// The products of averages that take the place of the moment, for Count elements from `at` on,
  /// which may be in more than one row.
  template <int Count>
  PIPE_HD PIPE_INLINE void read_averages(int tensor, updated_tensor const& t, extent at,
                                         float (&v)[Count]) const {
    float const factor = row_factors[tensor];
    extent row = (at - t.begin) / t.columns, column = at - t.begin - row * t.columns;
    PIPE_UNROLL
    for (int i = 0; i < Count; ++i) {
      v[i] = *row_average(t, row) * factor * *column_average(t, column);
      if (++column < t.columns) continue;
      column = 0;
      row += row + 1 < t.rows;
    }
  }

  /// Calls f(parameter, scaled gradient, moments...) for Count elements from `at` on. Keeps:
  /// moments are written back.
  template <bool Keeps, int Count, class F>
  PIPE_HD PIPE_INLINE void visit(int tensor, updated_tensor const& t, extent at, float (&w)[Count],
                                 F const& f) const {
    float g[Count], m[Count], v[Count];
    float const scale = factor_of(judged);
    bool const has_moments = !is_factored<Optimizer>(t);
    load<Count>(weights + at, w);
    load<Count>(gradients + at, g);
    if constexpr (moments > 0)
      if (has_moments) load<Count>(moment(t, 0, at), m);
    if constexpr (detail::factored_optimizer<Optimizer>)
      if (!has_moments) read_averages(tensor, t, at, m);
    if constexpr (moments > 1) load<Count>(moment(t, 1, at), v);
    PIPE_UNROLL
    for (int i = 0; i < Count; ++i) {
      float const scaled = g[i] * scale;
      if constexpr (moments == 0)
        f(w[i], scaled);
      else if constexpr (moments == 1)
        f(w[i], scaled, m[i]);
      else
        f(w[i], scaled, m[i], v[i]);
    }
    if constexpr (Keeps && moments > 0)
      if (has_moments) save<Count>(moment(t, 0, at), m);
    if constexpr (Keeps && moments > 1) save<Count>(moment(t, 1, at), v);
  }
};

/// The first pass: renews moments, and computes the factor of each tensor.
///
/// shape: parameters, gradients, moments, in ranges of up to 4096 elements -> moments, one factor
///        per tensor; between: sums (ranges, Optimizer::sums)
/// law:   a range's sums are in double and do not depend on other ranges; the last block of a
///        tensor adds ranges, each thread every 256th, then threads as by add_threads. So the cut
///        into stages changes no bit. If the outcome is not sound, no memory changes.
/// cost:  for LAMB 24 bytes per parameter, bound by bytes
template <class Optimizer>
struct gather_tensors_kernel {
  static constexpr int sums = Optimizer::sums;
  struct arguments {
    flat_ranges where;
    tensor_memory<Optimizer> of;
    double* sums = nullptr;       ///< by range
    unsigned* tickets = nullptr;  ///< by tensor
  };
  static constexpr int threads = 256, each = 4;
  static extent blocks(arguments const& a) { return a.where.count(); }
  struct state {
    double sum[sums];
  };
  struct shared {
    double of_warp[threads / warp_size];
    double total[sums];
    bool is_last;
  };

  template <class Block>
  PIPE_HD static void run(Block& block, arguments const& a) {
    if (!is_sound(a.of.judged)) return;
    flat_range const p = a.where.at(block.position());
    updated_tensor const t = a.of.tensors[p.group];
    auto const with = a.of.with(t);
    block.part([&](int thread, state& mine) {
      clear(mine);
      for (int i = thread * each; i + each <= p.count; i += threads * each)
        gather<each>(a, p.group, t, with, p.begin + i, mine);
      int const rest = p.count % each;
      if (thread < rest) gather<1>(a, p.group, t, with, p.begin + p.count - rest + thread, mine);
    });
    add_all(block, [&](int s, double total) { a.sums[block.position() * sums + s] = total; });
    if (!is_last_block(block, a.tickets + p.group, unsigned(t.ranges), block.shared().is_last))
      return;
    block.part([&](int thread, state& mine) {
      clear(mine);
      for (extent i = thread; i < t.ranges; i += threads) {
        PIPE_UNROLL
        for (int s = 0; s < sums; ++s) mine.sum[s] += a.sums[(t.first_range + i) * sums + s];
      }
    });
    add_all(block, [&](int s, double total) { block.shared().total[s] = total; });
    block.part([&](int thread, state&) {
      if (thread == 0)
        a.of.factors[p.group] = Optimizer::factor(with, block.shared().total, t.elements());
    });
  }

 private:
  /// Sets a thread's sums to zero: for a range, and again for all ranges of a tensor.
  PIPE_HD PIPE_INLINE static void clear(state& mine) {
    PIPE_UNROLL
    for (int s = 0; s < sums; ++s) mine.sum[s] = 0;
  }
  /// Adds the terms of Count elements to a thread's sums.
  template <int Count>
  PIPE_HD PIPE_INLINE static void gather(
      arguments const& a, int tensor, updated_tensor const& t,
      typename tensor_memory<Optimizer>::coefficients const& with, extent at, state& mine) {
    float w[Count];
    a.of.template visit<true>(tensor, t, at, w, [&](float x, float g, auto&... moments) {
      if constexpr (detail::factored_optimizer<Optimizer>)
        if (t.is_factored) return Optimizer::gather_factored(with, x, g, mine.sum, moments...);
      Optimizer::gather(with, x, g, mine.sum, moments...);
    });
  }
  /// Calls keep(s, total) in one thread, for each sum s.
  template <class Block, class Keep>
  PIPE_HD PIPE_INLINE static void add_all(Block& block, Keep keep) {
    PIPE_UNROLL
    for (int s = 0; s < sums; ++s)
      add_threads(
          block, block.shared().of_warp, [s](state& x) -> double& { return x.sum[s]; },
          [&](double total) { keep(s, total); });
  }
};

/// The second pass, for flat_kernel: moves the parameters, and renews their 16-bit copies, of type
/// Copy unless it is void.
///
/// law:  if the outcome is not sound, no memory changes
/// cost: for LAMB 16 bytes per parameter, and 2 for a copy, bound by bytes
template <class Optimizer, class Copy = void>
struct move_tensors {
  tensor_memory<Optimizer> of;
  Copy* copy = nullptr;

  PIPE_HD bool is_wanted() const { return is_sound(of.judged); }

  /// The move of one tensor's elements.
  struct move_tensor {
    move_tensors const& all;
    updated_tensor of;
    typename tensor_memory<Optimizer>::coefficients with;
    float factor = 1;

    template <int Count>
    PIPE_HD PIPE_INLINE void run(extent at, int tensor) const {
      float w[Count];
      all.of.template visit<false>(tensor, of, at, w, [&](float& x, float g, auto... moments) {
        x = Optimizer::move(with, factor, x, g, moments...);
      });
      save<Count>(all.of.weights + at, w);
      if constexpr (!std::is_void_v<Copy>) save<Count>(all.copy + at, w);
    }
  };
  PIPE_HD PIPE_INLINE move_tensor for_group(int group) const {
    updated_tensor const t = of.tensors[group];
    return {*this, t, of.with(t), float(of.factors[group])};
  }
};

/// Sets the ranges of a tensor that is number `index` of the list, and calls append(flat_range) for
/// each.
template <class Append>
void cut_tensor(updated_tensor& t, int index, extent ranges_before, Append append) {
  t.moment = t.is_factored ? t.rows : detail::moment_stride(t.elements());
  t.first_range = ranges_before;
  t.ranges = flat_ranges::count_of(t.elements());
  cut_into_ranges(t.begin, t.elements(), index, append);
}

}  // namespace pp::cuda
