// SPDX-License-Identifier: BSL-1.0
//
// The rules of an attention's scores that both backends read: a user-defined mask, and the slopes
// of ALiBi.
#pragma once

#include <pipe/base/config.hpp>
#include <pipe/base/libm.hpp>

PIPE_OPTIMIZED_BEGIN
namespace pp::detail {

/// A mask for a row of scores: seen[i] = whether the query at position `query` sees key `key + i`,
/// i < count. Returns whether the query sees any of these keys.
using mask_function = bool (*)(int query, int key, int count, bool* seen);

/// The mask_function of mask F, whose visible(query, key) is called for each key.
template <class F>
bool mask_row(int query, int key, int count, bool* seen) {
  bool any = false;
  for (int i = 0; i < count; ++i) {
    seen[i] = F::visible(query, key + i);
    any = any || seen[i];
  }
  return any;
}
/// The mask of layer L; null if L has none.
template <class L>
constexpr mask_function mask_of_layer() {
  if constexpr (requires { L::mask::visible(0, 0); })
    return &mask_row<typename L::mask>;
  else
    return nullptr;
}

/// The slope of a head's ALiBi: 2^(-8 (head + 1) / heads) if `heads` is a power of two. Otherwise,
/// with P the largest power of two below `heads`, the first P heads have the slopes of P heads, and
/// the others have every second slope of 2P heads.
///
/// source: Press, Smith, Lewis, Train short, test long, 2022, appendix A.2
PIPE_HD inline double alibi_slope(int head, int heads) {
  int power = 1;
  while (2 * power <= heads) power *= 2;
  return head < power ? libm::exp2(-8.0 * (head + 1) / power)
                      : libm::exp2(-4.0 * (2 * (head - power) + 1) / power);
}

}  // namespace pp::detail
PIPE_OPTIMIZED_END
