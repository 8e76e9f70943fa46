// SPDX-License-Identifier: BSL-1.0
//
// The slabs of a product's sum that each split takes: all of them or, with Lengths, those that have
// rows.
#pragma once

#include <pipe/backend/cuda/core/launch_rows.hpp>
#include <pipe/backend/cuda/matmul/contraction_plan.hpp>

namespace pp::cuda {

/// The slabs of a split, in their order: splits take slabs in turn, Plan.together at a time.
template <tile_plan Plan>
struct slab_turns {
  PIPE_HD PIPE_INLINE slab_turns(arguments const&, int) {}

  /// The number of a split's slabs before slab `end` of the sum.
  PIPE_HD PIPE_INLINE static int before(int split, int end) {
    constexpr int round = Plan.splits * Plan.together;
    int const rest = end % round - split * Plan.together,
              some = rest < Plan.together ? rest : Plan.together;
    return end / round * Plan.together + (some > 0 ? some : 0);
  }
  /// The number of slabs from the first slab of a split to its slab number `index`.
  PIPE_HD PIPE_INLINE static unsigned take(unsigned index) {
    constexpr unsigned together = unsigned(Plan.together), others = unsigned(Plan.splits - 1);
    return index + index / together * together * others;
  }
};

/// With Lengths, the slabs of a split that have rows, by their planned numbers. A slab has rows of
/// one sample.
///
/// law: the bits of a sum with the absent slabs as zeros
template <class P, int G, tile_plan Plan>
class present_slabs {
 public:
  PIPE_HD PIPE_INLINE present_slabs(arguments const& a, int split)
      : of_(a.segments), split_(split) {}
  /// Their number, of `all` planned slabs of the split.
  PIPE_HD PIPE_INLINE int count(int all) const {
    if (of_ == nullptr) return all;
    int slabs = 0;
    for (int s = 0; s < of_->count; ++s)
      slabs += before(s * of_sample + of_->length(s) / Plan.depth) - before(s * of_sample);
    return slabs;
  }
  /// The number of the next slab among all slabs in memory; 0 behind the last.
  PIPE_HD PIPE_INLINE unsigned take(unsigned) {
    int at = number();
    if (of_ == nullptr) return ++next_, unsigned(at);
    for (; at / of_sample < of_->count; at = number()) {
      int const sample = at / of_sample, slab = at % of_sample;
      if (slab < of_->length(sample) / Plan.depth)
        return ++next_, unsigned(of_->first[sample] / Plan.depth + slab);
      next_ = before((sample + 1) * of_sample);
    }
    return 0;
  }

 private:
  using turns = slab_turns<Plan>;
  static constexpr int of_sample = int(launch_rows<P, G>::of_sample) / Plan.depth;  // slabs
  static_assert(detail::block_rows<P>() % Plan.depth == 0);

  PIPE_HD PIPE_INLINE int number() const {
    return split_ * Plan.together + int(turns::take(unsigned(next_)));
  }
  PIPE_HD PIPE_INLINE int before(int slab) const { return turns::before(split_, slab); }

  detail::segment_list const* of_;
  int split_, next_ = 0;
};

}  // namespace pp::cuda
