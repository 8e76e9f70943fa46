// SPDX-License-Identifier: BSL-1.0
//
// The rule of an attention's scores: the keys that a query sees, and the function from the product
// of query and key to the operand of the softmax. All attributes are constants of the model: an
// attribute that an attention does not have costs nothing.
#pragma once

#include <pipe/backend/cuda/core/arguments.hpp>
#include <pipe/base/math.hpp>
#include <pipe/graph/attention_mask.hpp>

#ifdef __CUDACC__  // nvcc only warns of a user-defined mask that is for the host alone, and calls
                   // nothing
#pragma nv_diagnostic push
#pragma nv_diag_error 20011, 20013, 20014, 20015
#endif

namespace pp::cuda {

/// 1 / sqrt(n)
constexpr float score_scale(int n) {
  double root = n;
  for (int i = 0; i < 64; ++i) root = 0.5 * (root + n / root);
  return float(1 / root);
}

inline constexpr float log2_of_e = 1.44269504f, log_of_2 = 0.693147181f;

/// logit: the operand of the softmax, in base 2. slope: its derivative by the scaled product,
/// without the factor log2(e).
struct shaped_score {
  float logit, slope;
};

/// The rule of group G of P, an attention or its gradient.
template <class P, int G>
struct score_rule {
  static constexpr detail::attention_attributes of = group_of<P, G>::value.attributes.attention();
  static constexpr detail::score_attributes scores = of.scores;
  static constexpr bool is_causal = of.causal, is_shaped = !scores.is_plain();
  static constexpr int queries = group_of<P, G>::value.rows;
  static constexpr int keys = of.is_fused() ? queries : of.keys;
  static constexpr int ahead =
      keys - queries;  // if causal, query t sees this many keys beside 0 .. t
  static constexpr float scale = score_scale(group_of<P, G>::value.columns / of.heads);
  /// The factor from a product to base 2; 1 if shape() has multiplied by the factor already.
  static constexpr float to_base_2 = is_shaped ? 1.0f : scale * log2_of_e;

  /// The end of the keys that a query may see, if the sample has `present` keys.
  PIPE_HD PIPE_INLINE static int visible(int query, int present) {
    int all = is_causal ? query + ahead + 1 : keys;
    if constexpr (is_causal && scores.prefix > 0)
      if (all < scores.prefix) all = scores.prefix;
    return all < present ? all : present;
  }
  /// The first key that a query may see.
  PIPE_HD PIPE_INLINE static int first_seen(int query) {
    int const first = query + ahead + 1 - scores.window;
    return scores.window == 0 || first < 0 ? 0 : first;
  }
  /// The first query that may see a key.
  PIPE_HD PIPE_INLINE static int first_query(int key) {
    return is_causal && key >= scores.prefix && key > ahead ? key - ahead : 0;
  }
  /// The end of the queries that may see a key.
  PIPE_HD PIPE_INLINE static int end_query(int key) {
    int const end = key - ahead + scores.window;
    return scores.window == 0 || end > queries ? queries : end;
  }
  /// Whether a query sees a key.
  ///
  /// needs: key < visible(query, present)
  PIPE_HD PIPE_INLINE static bool sees([[maybe_unused]] int query, [[maybe_unused]] int key) {
    if (scores.window > 0 && key < first_seen(query)) return false;
    if constexpr (scores.is_masked) {
      using layer = detail::leaf_at<group_of<P, G>::value.leaf, typename P::leaves>;
      return layer::mask::visible(query + ahead, key);
    }
    return true;
  }
  /// The decrease of a head's scores for each key of distance.
  PIPE_HD PIPE_INLINE static float fall([[maybe_unused]] int head) {
    if constexpr (scores.has_alibi) return float(detail::alibi_slope(head, of.heads));
    return 0;
  }
  /// The score of a product q k'.
  PIPE_HD PIPE_INLINE static shaped_score shape(float product, [[maybe_unused]] float fall,
                                                [[maybe_unused]] int query,
                                                [[maybe_unused]] int key) {
    float z = product * scale, slope = 1;
    if constexpr (scores.cap > 0) {
      constexpr float cap = float(scores.cap);
      float const t = math::tanh(z / cap);
      z = cap * t;
      slope = 1 - t * t;
    }
    if constexpr (scores.has_alibi) {
      int const distance = query + ahead - key;
      z -= fall * float(distance < 0 ? -distance : distance);
    }
    return {z * log2_of_e, slope};
  }
};

}  // namespace pp::cuda

#ifdef __CUDACC__
#pragma nv_diagnostic pop
#endif
