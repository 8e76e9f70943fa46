// SPDX-License-Identifier: BSL-1.0
//
// An attention that one call of a library computes; if samples may have different numbers of keys,
// kernels run before and after the call. The call is a plain description, so that a test can
// execute the description itself. For the gradient, the call writes the same results as the
// attention kernels, at the same places.
#pragma once

#include <type_traits>

#include <pipe/backend/cuda/attention/geometry.hpp>
#include <pipe/backend/cuda/core/kernel_list.hpp>
#include <pipe/base/dtype.hpp>

namespace pp::cuda {

/// Heads in memory: element c of head h at position t of sample b is at (b * positions + t) *
/// stride + first + h * head_size + c.
struct attention_operand {
  int index = -1;
  extent first = 0, stride = 0;
};

/// result = softmax(scale * query key^T) value for every head; a causal query t sees the keys 0 ..
/// t. Successive heads / key_heads heads share keys and values.
struct attention_call {
  int samples = 0, queries = 0, keys = 0, heads = 0, key_heads = 0, head_size = 0;
  bool is_causal = false;
  dtype format = dtype::bf16;
  float scale = 1;
  attention_operand query, key, value, result;
  /// Index of the natural logarithm of each softmax's denominator, (B * T, H) in fp32.
  int logarithms = -1;
  /// Whether samples have lengths: as ints at the start of the workspace, the number of queries of
  /// each sample (all), then the number of keys of each, at least 1.
  bool has_lengths = false;
};

/// Workspace of a call, which begins at a multiple of `attention_alignment`: cuDNN 9.28 needs 256
/// bytes at most on any GPU. If a call asks for more bytes, kernels of this library compute the
/// attention.
inline constexpr long attention_bytes = 64 << 10, attention_alignment = 256;

/// Whether a call may compute group G of P: numbers of 16 bits, accesses of 16 bytes, no rotation,
/// plain scores, and, if causal, as many queries as keys.
template <class P, int G>
constexpr bool is_attention_call() {
  if constexpr (group_of<P, G>::value.anchor != op_kind::attention) {
    return false;
  } else {
    using shape = attention_geometry<P, G>;
    return sizeof(typename P::element) == 2 && !shape::is_rotary && shape::head_size % 8 == 0 &&
           (!shape::is_causal || shape::queries == shape::keys) && !shape::is_shaped &&
           shape::scores.prefix == 0;
  }
}

/// The call of group G, for which is_attention_call holds.
template <class P, int G>
constexpr attention_call describe_attention_call() {
  using shape = attention_geometry<P, G>;
  constexpr detail::group g = group_of<P, G>::value;
  attention_call c;
  c.samples = shape::samples, c.queries = shape::queries, c.keys = shape::keys;
  c.heads = shape::heads, c.key_heads = shape::key_heads, c.head_size = shape::head_size;
  c.is_causal = shape::is_causal;
  c.format = detail::dtype_of<typename P::element>::value;
  c.scale = shape::scale;
  extent const rows = shape::is_fused ? shape::fused : 2 * shape::key_width;
  extent const first = shape::is_fused ? shape::width : 0;
  int const index = shape::is_fused ? g.in[0] : g.in[1];
  c.query = {g.in[0], 0, shape::is_fused ? shape::fused : shape::width};
  c.key = {index, first, rows};
  c.value = {index, first + shape::key_width, rows};
  c.result = {g.out[0], 0, shape::width};
  c.logarithms = g.out[1];
  c.has_lengths = shape::ids_index >= 0;
  return c;
}

/// The lengths of samples, which come before the workspace of the call.
template <class P, int G>
struct attention_lengths {
  using shape = attention_geometry<P, G>;
  static constexpr int samples = shape::samples;
  static constexpr long bytes = shape::ids_index < 0 ? 0 : 3l * samples * long(sizeof(int));
  PIPE_HD static int* queries(arguments const& a) { return static_cast<int*>(a.workspace); }
  PIPE_HD static int* keys(arguments const& a) { return queries(a) + samples; }
  /// The number of keys of each sample, which may be 0.
  PIPE_HD static int* present(arguments const& a) { return keys(a) + samples; }
};

/// Before a call: computes the lengths of the samples, whose trailing ids of -1 no query sees.
///
/// shape: ids (B * S) -> lengths (3, B)
/// work:  a block has a sample
template <class P, int G>
struct count_keys_kernel {
  using shape = attention_geometry<P, G>;
  using lengths = attention_lengths<P, G>;
  static constexpr int threads = 128;
  static constexpr extent blocks = shape::samples;
  struct state {
    int count;
  };
  struct shared {
    int counts[threads / warp_size];
  };

  template <class Block>
  PIPE_HD static void run(Block& block, arguments const& a) {
    int const sample = int(block.position());
    int const present = shape::template present<threads>(block, a, shape::keys_of(a, sample));
    block.part([&](int thread, state&) {
      if (thread != 0) return;
      lengths::queries(a)[sample] = shape::queries;
      lengths::keys(a)[sample] = present > 0 ? present : 1;
      lengths::present(a)[sample] = present;
    });
  }
};

/// After a call: writes zeros for a sample without keys, for which the call was given one key.
///
/// shape: lengths (3, B) -> y (B * T, H * d), lse (B * T, H) of these samples
/// work:  a block has a sample; most blocks have nothing to do
template <class P, int G>
struct clear_unseen_kernel {
  using shape = attention_geometry<P, G>;
  static constexpr int threads = 256;
  static constexpr extent blocks = shape::samples;
  using state = nothing;
  using shared = nothing;

  template <class Block>
  PIPE_HD static void run(Block& block, arguments const& a) {
    constexpr detail::group g = group_of<P, G>::value;
    using T = typename P::element;
    if (attention_lengths<P, G>::present(a)[block.position()] > 0) return;
    block.part([&](int thread, state&) {
      constexpr int elements = shape::queries * shape::width, rows = shape::queries * shape::heads;
      T* const y = a.at<T>(g.out[0]) + block.position() * elements;
      for (int i = thread; i < elements; i += threads) y[i] = T(0.0f);
      if constexpr (group_of<P, G>::value.out[1] >= 0)
        for (int i = thread; i < rows; i += threads)
          a.at<float>(g.out[1])[block.position() * rows + i] = 0;
    });
  }
};

/// The kernels of group G before and after a call.
template <class P, int G>
constexpr auto before_attention() {
  if constexpr (attention_geometry<P, G>::ids_index >= 0)
    return kernel_list<count_keys_kernel<P, G>>{};
  else
    return kernel_list<>{};
}
template <class P, int G>
constexpr auto after_attention() {
  if constexpr (attention_geometry<P, G>::ids_index >= 0)
    return kernel_list<clear_unseen_kernel<P, G>>{};
  else
    return kernel_list<>{};
}

/// Bytes of workspace of group G for a call; 0 without a call. Library: void, or an option's
/// attention_library.
template <class P, int G, class Library>
constexpr long attention_workspace_of() {
  if constexpr (!std::is_void_v<Library>)
    if constexpr (is_attention_call<P, G>())
      return attention_lengths<P, G>::bytes + attention_bytes + attention_alignment;
  return 0;
}

}  // namespace pp::cuda
