// SPDX-License-Identifier: BSL-1.0
//
// Losses: each row's loss in double precision, and its gradient, which may overwrite the row. The
// logits of a classifier are read once and stay in registers, in the format of memory; logits that
// do not fit are read again, mostly from the L2 cache.
#pragma once

#include <pipe/backend/cuda/core/kernel_list.hpp>
#include <pipe/backend/cuda/rows/loss_rows.hpp>
#include <pipe/base/math.hpp>
#include <pipe/graph/layers.hpp>

#ifdef __CUDACC__  // nvcc only warns of a user-defined formula that is for the host alone, and
                   // calls nothing
#pragma nv_diagnostic push
#pragma nv_diag_error 20011, 20013, 20014, 20015
#endif

namespace pp::cuda {

/// Hides the contents of x from the compiler, which would otherwise keep the results of the first
/// conversion of x: floats, twice as large.
template <class X>
PIPE_HD PIPE_INLINE void forget([[maybe_unused]] X& x) {
#ifdef __CUDA_ARCH__
  if constexpr (sizeof(X) % sizeof(unsigned) == 0) {
    unsigned(&words)[sizeof(X) / sizeof(unsigned)] =
        reinterpret_cast<unsigned(&)[sizeof(X) / sizeof(unsigned)]>(x);
    PIPE_UNROLL
    for (unsigned& word : words) asm volatile("" : "+r"(word));
  }
#endif
}

/// The terms of a cross entropy that come from the layer type, if the group has such terms: weights
/// of classes, or a formula of the row's log-probability.
template <class P, int G,
          detail::row_term Term = group_of<P, G>::value.attributes.cross_entropy().term>
struct cross_entropy_terms {
  static constexpr bool is_formula = false, weighs_classes = false;
  static constexpr double sum = 0;
  PIPE_HD PIPE_INLINE static float weight(int) { return 1; }
};
template <class P, int G>
struct cross_entropy_terms<P, G, detail::row_term::formula>
    : cross_entropy_terms<P, G, detail::row_term::log_probability> {
  using layer = detail::leaf_at<group_of<P, G>::value.leaf, typename P::leaves>;
  static constexpr bool is_formula = true;
};
template <class P, int G>
struct cross_entropy_terms<P, G, detail::row_term::weighted_by_class> {
  using weights =
      typename detail::leaf_at<group_of<P, G>::value.leaf, typename P::leaves>::class_weights;
  static constexpr bool is_formula = false, weighs_classes = true;
  static constexpr double sum = double(weights::sum);
  PIPE_HD PIPE_INLINE static float weight(int label) { return weights::template of<float>(label); }
};

/// Cross entropy: sum over j of -t_j log softmax(x)_j + z * log(sum of e^x)^2, where the target t
/// is 1 - smoothing at the label plus smoothing / V everywhere. Label -1: loss 0 and gradient 0.
///
/// shape:  logits (R, V), labels (R) -> losses (R) in fp64, gradient (R, V), which may be the
///         logits
/// work:   a team for each row keeps the row's logits in the format of memory
/// law:    the largest element and the sum of exponentials are computed in one pass: the sum is
///         scaled down when a larger element is read
/// cost:   two exponentials per logit; one pass over memory if a row fits into registers
/// source: Szegedy et al., 2016, section 7 (label smoothing); Milakov and Gimelshein, 2018 (one
///         pass)
template <class P, int G>
struct cross_entropy_kernel : loss_rows<P, G, int(sizeof(typename P::element))> {
  using base = loss_rows<P, G, int(sizeof(typename P::element))>;
  using base::columns, base::each, base::rows;
  using typename base::T, typename base::team;
  using piece = fetched<T, each>;
  static constexpr float smoothing =
                             float(group_of<P, G>::value.attributes.cross_entropy().smoothing),
                         z = float(group_of<P, G>::value.attributes.cross_entropy().z_loss);
  using terms = cross_entropy_terms<P, G>;
  static constexpr int kept_sums = smoothing != 0 || terms::is_formula ? 2 : 1;

  struct state {
    piece x[team::most_held];
    int label;       // -1: the row is no part of the loss, or does not exist
    float at_label;  // in the thread that has the label
    float top, least_top;
    float sum[2];  // of exponentials; of elements times the weights of their classes, or, for a
                   // formula, the element at the label
  };
  struct shared {
    float tops[1][team::warps], sums[kept_sums][team::warps];
  };

  /// Calls f(column, elements) for the thread's pieces of its row. Pieces that the thread keeps
  /// have been read.
  template <class Logits, class F>
  PIPE_HD PIPE_INLINE static void for_logits(Logits const& x, extent row, int thread, state& mine,
                                             F f) {
    team::for_pieces(
        thread, [&](int held, int column) { mine.x[held].load(x.at(row, column)); },
        [&](int held, int column) {
          float v[each];
          PIPE_UNROLL
          for (int i = 0; i < each; ++i) v[i] = mine.x[held][i];
          f(column, v);
        });
  }

  template <class Block>
  PIPE_HD static void run(Block& block, arguments const& a) {
    if (base::is_left_out(a)) return;
    run_rows(block, a, base::in_memory(a), block.position() * team::teams, base::of_rows::end(a));
  }
  /// Computes rows [first, end) of logits x, at most one for each team of the block.
  template <class Block, class Logits>
  PIPE_HD PIPE_INLINE static void run_rows(Block& block, arguments const& a, Logits const& x,
                                           extent first, extent end) {
    block.part([&](int thread, state& mine) {
      extent const row = first + thread / team::size;
      mine.label = row < end && base::counts(a, row) ? a.ids(base::labels)[row] : -1;
      mine.top = -0x1.fffffep127f;  // finite, so that elements of negative infinity add nothing
      mine.sum[0] = mine.sum[1] = 0;
      if (mine.label < 0) return;
      team::for_kept(thread, [&](int held, int column) { mine.x[held].load(x.at(row, column)); });
      if (has_label(thread, mine)) {
        mine.at_label = float(*x.at(row, mine.label));
        if constexpr (terms::is_formula) mine.sum[1] = mine.at_label;
      }
      for_logits(x, row, thread, mine, [&](int column, float(&v)[each]) {
        float top = mine.top;
        PIPE_UNROLL
        for (int i = 0; i < each; ++i) top = larger{}(v[i], top);
        mine.sum[0] *= math::exp(mine.top - top);  // once per piece: cheaper than a branch
        mine.top = top;
        PIPE_UNROLL
        for (int i = 0; i < each; ++i) {
          mine.sum[0] += math::exp(v[i] - top);
          if constexpr (smoothing != 0)
            mine.sum[1] += terms::weighs_classes ? terms::weight(column + i) * v[i] : v[i];
        }
      });
      mine.least_top = mine.top;
    });
    base::template reduce<1>(
        block, [](state& mine, int) -> float& { return mine.top; }, larger{},
        [](auto& shared) -> auto& { return shared.tops; });
    block.part([&](int, state& mine) {
      if (mine.label >= 0) mine.sum[0] *= math::exp(mine.least_top - mine.top);
    });
    base::template reduce<kept_sums>(
        block, [](state& mine, int i) -> float& { return mine.sum[i]; }, plus{},
        [](auto& shared) -> auto& { return shared.sums; });
    block.part([&](int thread, state& mine) {
      extent const row = first + thread / team::size;
      if (row >= end) return;
      if (mine.label < 0) return base::skip(a, x, row, thread);
      if (a.wants_gradient) write_gradient(a, x, row, thread, mine);
      if (has_label(thread, mine)) base::put_loss(a, row, loss_of(a, row, mine));
    });
  }

 private:
  /// Whether the label's element is in a piece of the thread.
  PIPE_HD PIPE_INLINE static bool has_label(int thread, state const& mine) {
    return mine.label / each % team::size == thread % team::size;
  }
  PIPE_HD static double loss_of([[maybe_unused]] arguments const& a, [[maybe_unused]] extent row,
                                state const& mine) {
    double const whole =
        libm::log(double(mine.sum[0])) + double(mine.top);  // log of the sum of exp(x)
    if constexpr (terms::is_formula) {
      float const l = float(double(mine.at_label) - whole);
      return base::with_targets(a, [&](auto const*... more) {
        return double(terms::layer::formula::value(l, more[row]...));
      });
    } else if constexpr (terms::weighs_classes) {
      double const own = terms::weight(mine.label);
      double loss = own * (1 - double(smoothing)) * (whole - double(mine.at_label)) +
                    own * double(z) * whole * whole;
      if constexpr (smoothing != 0)
        loss += double(smoothing) / columns * (terms::sum * whole - double(mine.sum[1]));
      return loss;
    } else {
      double loss = whole - double(mine.at_label) + double(z) * whole * whole;
      if constexpr (smoothing != 0)
        loss += double(smoothing) * (double(mine.at_label) - double(mine.sum[1]) / columns);
      return loss;
    }
  }
  /// The factors of two gradients: of the logarithm of the sum of exp(x), and of the element at the
  /// label.
  struct factors {
    float whole, label;
  };
  PIPE_HD PIPE_INLINE static factors factors_of([[maybe_unused]] arguments const& a, extent row,
                                                state const& mine) {
    float const scale = base::scale(a, row);
    float const log_of_all = z != 0 || terms::is_formula ? math::log(mine.sum[0]) + mine.top : 0;
    if constexpr (terms::is_formula) {
      float const slope = base::with_targets(a, [&](auto const*... more) {
        return terms::layer::formula::slope(mine.sum[1] - log_of_all, more[row]...);
      });
      return {-(scale * slope), -(scale * slope)};
    } else if constexpr (terms::weighs_classes) {
      float const own = terms::weight(mine.label), kept = own * (1.0f - smoothing);
      return {scale * (kept + smoothing / float(columns) * float(terms::sum) +
                       2.0f * z * own * log_of_all),
              scale * kept};
    } else {
      return {z != 0 ? scale * (1.0f + 2.0f * z * log_of_all) : scale, scale * (1.0f - smoothing)};
    }
  }
  template <class Logits>
  PIPE_HD PIPE_INLINE static void write_gradient(arguments const& a, Logits const& x, extent row,
                                                 int thread, state& mine) {
    team::for_kept(thread, [&](int held, int) { forget(mine.x[held]); });
    factors const by = factors_of(a, row, mine);
    [[maybe_unused]] float const everywhere = base::scale(a, row) * smoothing / float(columns);
    float const factor = by.whole / mine.sum[0];
    auto const slope = [&](float logit, [[maybe_unused]] int column) {
      float const p = math::exp(logit - mine.top) * factor;
      if constexpr (smoothing == 0)
        return p;
      else
        return p - (terms::weighs_classes ? everywhere * terms::weight(column) : everywhere);
    };
    for_logits(x, row, thread, mine, [&](int column, float(&v)[each]) {
      PIPE_UNROLL
      for (int i = 0; i < each; ++i) v[i] = slope(v[i], column + i);
      x.template take<each>(row, column, v);
    });
    // The thread that has the label writes the label's element once more, so that other threads
    // need not test for it.
    if (has_label(thread, mine))
      x.take_one(row, mine.label, slope(mine.at_label, mine.label) - by.label);
  }
};

/// The formula (x - target)^2.
struct squared_difference {
  PIPE_HD PIPE_INLINE static double value(float x, float target) {
    double const d = double(x - target);
    return d * d;
  }
  PIPE_HD PIPE_INLINE static float slope(float x, float target) { return 2.0f * (x - target); }
};

/// A row's sum of a formula of x and the target, which is float, and its gradient.
///
/// shape: x (R, C), target (R, C) and further targets (R, C) -> losses (R) in fp64, gradient (R, C)
/// work:  a team for each row; sums of threads are doubles, added by butterflies
/// cost:  one pass, bound by bytes
template <class P, int G, class Formula>
struct element_loss_kernel : loss_rows<P, G, int(sizeof(float))> {
  using base = loss_rows<P, G, int(sizeof(float))>;
  using base::columns, base::each, base::rows;
  using typename base::T, typename base::team;

  struct state {
    double sum;
  };
  struct shared {
    double sums[1][team::warps];
  };

  template <class Block>
  PIPE_HD static void run(Block& block, arguments const& a) {
    if (base::is_left_out(a)) return;
    run_rows(block, a, base::in_memory(a), block.position() * team::teams, base::of_rows::end(a));
  }
  /// Computes rows [first, end) of `logits`, at most one for each team of the block.
  template <class Block, class Logits>
  PIPE_HD PIPE_INLINE static void run_rows(Block& block, arguments const& a, Logits const& logits,
                                           extent first, extent end) {
    block.part([&](int thread, state& mine) {
      extent const row = first + thread / team::size;
      mine.sum = 0;
      if (row >= end || !base::counts(a, row)) return;
      float const scale = base::scale(a, row);
      team::for_pieces(thread, [&](int, int column) {
        float x[each], target[each];
        load<each>(logits.at(row, column), x);
        load<each>(a.at<float const>(base::labels) + row * columns + column, target);
        PIPE_UNROLL
        for (int i = 0; i < each; ++i) {
          base::with_targets(a, [&](auto const*... more) {
            [[maybe_unused]] extent const at = row * columns + column + i;
            mine.sum += double(Formula::value(x[i], target[i], more[at]...));
            x[i] = Formula::slope(x[i], target[i], more[at]...) * scale;
          });
        }
        if (a.wants_gradient) logits.template take<each>(row, column, x);
      });
    });
    base::template reduce<1>(
        block, [](state& mine, int) -> double& { return mine.sum; }, plus{},
        [](auto& shared) -> auto& { return shared.sums; });
    block.part([&](int thread, state& mine) {
      extent const row = first + thread / team::size;
      if (row >= end) return;
      if (!base::counts(a, row)) return base::skip(a, logits, row, thread);
      if (thread % team::size == 0) base::put_loss(a, row, mine.sum);
    });
  }
};

template <>
struct kernel_of<op_kind::cross_entropy> : one_kernel<cross_entropy_kernel> {};

template <>
struct kernel_of<op_kind::squared_error> {
  template <class P, int G>
  using list = kernel_list<element_loss_kernel<P, G, squared_difference>>;
};

template <>
struct kernel_of<op_kind::element_loss> {
  template <class P, int G>
  using formula = typename detail::leaf_at<group_of<P, G>::value.leaf, typename P::leaves>::formula;
  template <class P, int G>
  using list = kernel_list<element_loss_kernel<P, G, formula<P, G>>>;
};

}  // namespace pp::cuda

#ifdef __CUDACC__
#pragma nv_diagnostic pop
#endif
