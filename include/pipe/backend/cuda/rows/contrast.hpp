// SPDX-License-Identifier: BSL-1.0
//
// Contrast: each row (a, b) of a micro-batch with all others. A matrix of all scores is not stored:
// a first kernel computes the logs of sums of each row and column, a second one the scores again,
// the losses and the gradients.
#pragma once

#include <pipe/backend/cuda/core/kernel_list.hpp>
#include <pipe/backend/cuda/rows/loss_rows.hpp>
#include <pipe/graph/layers.hpp>

namespace pp::cuda {

/// Base of the kernels of this file: the rows and their scores.
template <class P, int G>
struct contrast_rows : loss_rows<P, G, int(sizeof(float))> {
  using base = loss_rows<P, G, int(sizeof(float))>;
  using base::rows;
  using typename base::T;
  using layer = typename detail::leaf_at<group_of<P, G>::value.leaf, typename P::leaves>::formula;
  static constexpr int width = base::columns / 2, threads = 128, resident = 0;
  static constexpr int each = access_width<T>(width);
  static constexpr bool is_symmetric = layer::is_symmetric;
  /// The logs of rows, then of columns.
  static constexpr long workspace_bytes = 2 * long(rows) * long(sizeof(float));

  PIPE_HD PIPE_INLINE static T const* a_of(arguments const& a, extent row) {
    return a.at<T const>(base::logits) + row * 2 * width;
  }
  PIPE_HD PIPE_INLINE static T const* b_of(arguments const& a, extent row) {
    return a_of(a, row) + width;
  }
  /// The score of two rows.
  PIPE_HD PIPE_INLINE static float score(T const* x, T const* z) {
    float sum = 0;
    for (int c = 0; c < width; c += each) {
      float u[each], v[each];
      load<each>(x + c, u);
      load<each>(z + c, v);
      PIPE_UNROLL
      for (int i = 0; i < each; ++i) sum += u[i] * v[i];
    }
    return sum * layer::template factor<float>();
  }
  /// The number of rows of real samples.
  PIPE_HD PIPE_INLINE static extent real_rows(arguments const& a) {
    extent const real = extent(a.valid_samples) * base::rows_per_sample;
    return real < rows ? real : rows;
  }
  PIPE_HD PIPE_INLINE static float* logs(arguments const& a) {
    return static_cast<float*>(a.workspace);
  }
};

/// The logs of sums of e^score, of each row over all columns and of each column over all rows.
///
/// shape: x (R, 2 C) -> logs (2, R) in fp32; the second row only if symmetric
/// work:  a block for each log; a thread has every 128th score; the order of sums depends on the
///        number of rows only
template <class P, int G>
struct contrast_logs_kernel : contrast_rows<P, G> {
  using base = contrast_rows<P, G>;
  using base::rows, base::threads;
  static constexpr extent blocks = (base::is_symmetric ? 2 : 1) * rows;
  struct state {};
  struct shared {
    float top[threads], sum[threads];
  };

  template <class Block>
  PIPE_HD static void run(Block& block, arguments const& a) {
    if (base::is_left_out(a)) return;
    bool const of_column = block.position() >= rows;
    extent const row = of_column ? block.position() - rows : block.position(),
                 n = base::real_rows(a);
    if (row >= n) return;
    block.phase([&](int thread, state&) {
      float top = 0, sum = 0;
      for (extent j = thread; j < n; j += threads)
        add(top, sum,
            of_column ? base::score(base::a_of(a, j), base::b_of(a, row))
                      : base::score(base::a_of(a, row), base::b_of(a, j)),
            1);
      block.shared().top[thread] = top;
      block.shared().sum[thread] = sum;
    });
    for (int half = threads / 2; half > 0; half /= 2)
      block.phase([&](int thread, state&) {
        auto& [top, sum] = block.shared();
        if (thread < half) add(top[thread], sum[thread], top[thread + half], sum[thread + half]);
      });
    block.part([&](int thread, state&) {
      if (thread == 0)
        base::logs(a)[block.position()] =
            block.shared().top[0] + float(libm::log(double(block.shared().sum[0])));
    });
  }

 private:
  /// Adds count e^s to sum e^top, where top is the largest score so far; a sum of 0 has none.
  PIPE_HD PIPE_INLINE static void add(float& top, float& sum, float s, float count) {
    if (count == 0) return;
    if (sum == 0) {
      top = s;
      sum = count;
    } else if (s > top) {
      sum = sum * math::exp(top - s) + count;
      top = s;
    } else {
      sum += count * math::exp(s - top);
    }
  }
};

/// The loss of each row, and its gradient by that row's a and b, which the losses of all rows
/// contribute to.
///
/// shape: x (R, 2 C), logs (2, R) -> losses (R) in fp64, gradient (R, 2 C)
/// work:  a block for each row; 128 scores at a time are weights in shared memory, and a thread
///        adds the rows of its columns by these
template <class P, int G>
struct contrast_kernel : contrast_rows<P, G> {
  using base = contrast_rows<P, G>;
  using base::rows, base::threads, base::width, base::is_symmetric;
  static constexpr extent blocks = rows;
  static constexpr int held = (width + threads - 1) / threads;
  struct state {
    float da[held], db[held];
  };
  struct shared {
    float by_b[threads], by_a[threads];
  };

  template <class Block>
  PIPE_HD static void run(Block& block, arguments const& a) {
    if (base::is_left_out(a)) return;
    extent const row = block.position(), n = base::real_rows(a);
    bool const counts = row < n;
    block.part([&](int thread, state& mine) {
      PIPE_UNROLL
      for (int i = 0; i < held; ++i) mine.da[i] = mine.db[i] = 0;
      if (thread == 0) put_loss(a, row, counts);
    });
    if (!a.wants_gradient) return;
    extent const end = counts ? n : 0;
    for (extent first = 0; first < end; first += threads) {
      block.phase([&](int thread, state&) { weigh(block, a, row, first + thread, n, thread); });
      block.phase([&](int thread, state& mine) {
        for (int k = 0; k < threads && first + k < n; ++k)
          for (int i = 0, c = thread; c < width; ++i, c += threads) {
            mine.da[i] += block.shared().by_b[k] * float(base::b_of(a, first + k)[c]);
            mine.db[i] += block.shared().by_a[k] * float(base::a_of(a, first + k)[c]);
          }
      });
    }
    block.part([&](int thread, state& mine) {
      float const scale = counts ? base::scale(a, row) * base::layer::template factor<float>() /
                                       (is_symmetric ? 2.0f : 1.0f)
                                 : 0;
      auto const memory = base::in_memory(a);
      for (int i = 0, c = thread; c < width; ++i, c += threads) {
        memory.take_one(row, c, mine.da[i] * scale);
        memory.take_one(row, width + c, mine.db[i] * scale);
      }
    });
  }

 private:
  PIPE_HD static void put_loss(arguments const& a, extent row, bool counts) {
    if (!counts) return base::put(a, row, 0);
    double const own = double(base::score(base::a_of(a, row), base::b_of(a, row)));
    double loss = double(base::logs(a)[row]) - own;
    if constexpr (is_symmetric) loss = (loss + (double(base::logs(a)[rows + row]) - own)) / 2;
    base::put(a, row, loss);
  }
  /// The weights of b_j in the gradient of a, and of a_j in the gradient of b.
  template <class Block>
  PIPE_HD static void weigh(Block& block, arguments const& a, extent row, extent j, extent n,
                            int thread) {
    if (j >= n) return;
    float const* const of_row = base::logs(a);
    float const forth = base::score(base::a_of(a, row), base::b_of(a, j)),
                back = base::score(base::a_of(a, j), base::b_of(a, row));
    float by_b = math::exp(forth - of_row[row]), by_a = math::exp(back - of_row[j]);
    if constexpr (is_symmetric) {
      float const* const of_column = of_row + rows;
      by_b += math::exp(forth - of_column[j]);
      by_a += math::exp(back - of_column[row]);
    }
    float const own = j == row ? (is_symmetric ? 2.0f : 1.0f) : 0.0f;
    block.shared().by_b[thread] = by_b - own;
    block.shared().by_a[thread] = by_a - own;
  }
};

template <>
struct kernel_of<op_kind::contrast> {
  template <class P, int G>
  using list = kernel_list<contrast_logs_kernel<P, G>, contrast_kernel<P, G>>;
};

}  // namespace pp::cuda
