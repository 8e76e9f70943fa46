// SPDX-License-Identifier: BSL-1.0
//
// A matrix product by all that hopper/ has, as small as it can be, and each rule of it broken: what
// tests run on the CPU and from PTX.
#pragma once

#include <pipe/backend/cuda/hopper/roles.hpp>
#include <pipe/backend/cuda/hopper/wgmma_slab.hpp>

namespace hopper {

using pp::cuda::extent, pp::cuda::major, pp::cuda::mbarrier;

/// What is wrong.
enum class rule_broken {
  none,
  no_wait_for_copies,   ///< consumers multiply what may not be there
  no_wait_for_readers,  ///< the producer overwrites what may still be read
  early_release,        ///< a stage is given back before its products are done
  late_parity,          ///< consumers wait for the phase before
  missing_bytes,        ///< fewer bytes are announced than come
  more_bytes,           ///< more bytes are announced than come
  no_release,           ///< a stage is never given back
  release_twice,
  no_batch,          ///< multiplications that no fence orders behind writes of registers
  no_commit,         ///< a wait that waits for nothing
  touched_sums,      ///< registers are written while sums are added to them
  unknown_barriers,  ///< copies do not see the barriers
  stored_unfenced,   ///< threads store what is multiplied, without a fence between proxies
  other_descriptor   ///< the pieces of an operand are read in another order
};

struct arguments {
  void const *left, *right;
  float* out;
  rule_broken broken = rule_broken::none;
};

/// out (64 * Consumers, N) = left right, of Slabs * 64 k.
template <class T, int N, int Consumers, int Slabs, major A, major B>
struct ring_product {
  using launch_arguments = hopper::arguments;
  static constexpr int consumers = Consumers, threads = pp::cuda::threads_of_roles(Consumers),
                       stages = 2, rows = 64 * Consumers, inner = 64 * Slabs;
  static constexpr auto format =
      std::is_same_v<T, pp::bf16> ? pp::cuda::product_format::bf16 : pp::cuda::product_format::fp16;
  static constexpr auto operands = pp::cuda::operands_of(format);
  using left_slab = pp::cuda::wgmma_slab<rows, A>;
  using right_slab = pp::cuda::wgmma_slab<N, B>;
  struct state {
    float sums[N / 2];
  };
  struct shared {
    left_slab left[stages];
    right_slab right[stages];
    mbarrier full[stages], empty[stages];
  };
  static extent blocks(arguments const&) { return 1; }
  static pp::cuda::operand_maps<pp::cuda::tensor_map> maps(arguments const& a) {
    return {left_slab::map_of(a.left, format, rows, inner),
            right_slab::map_of(a.right, format, N, inner)};
  }

  template <class Block, class Maps>
  PIPE_HD static void run(Block& block, arguments const& a, Maps const& maps) {
    shared& s = block.shared();
    block.phase([&](int thread, state&) {
      if (thread != 0) return;
      for (int i = 0; i < stages; ++i) {
        pp::cuda::begin_barrier(block, &s.full[i], 1);
        pp::cuda::begin_barrier(block, &s.empty[i], 4 * Consumers);
      }
      if (a.broken != rule_broken::unknown_barriers) pp::cuda::barriers_are_ready(block);
    });
    pp::cuda::split_roles(
        block,
        [&](auto& producer) {
          pp::cuda::ring_place at;
          for (int slab = 0; slab < Slabs; ++slab, at.template advance<stages>()) {
            if (a.broken != rule_broken::no_wait_for_readers)
              pp::cuda::await_phase(producer, &s.empty[at.stage], at.parity ^ 1);
            pp::cuda::arrive_expecting(producer, &s.full[at.stage],
                                       left_slab::bytes + right_slab::bytes -
                                           (a.broken == rule_broken::missing_bytes ? 128 : 0) +
                                           (a.broken == rule_broken::more_bytes ? 128 : 0));
            s.left[at.stage].start(producer, maps.left, 0, slab * 64, &s.full[at.stage]);
            s.right[at.stage].start(producer, maps.right, 0, slab * 64, &s.full[at.stage]);
          }
          // A block does not end before its copies, whose arrivals it must see.
          for (int i = 0; i < stages && i < Slabs; ++i, at.template advance<stages>())
            if (a.broken != rule_broken::no_wait_for_readers)
              pp::cuda::await_phase(producer, &s.empty[at.stage], at.parity ^ 1);
        },
        [&](auto& consumer) { consume(consumer, a, s); });
  }

  template <class Consumer>
  PIPE_HD static void consume(Consumer& consumer, arguments const& a, shared& s) {
    auto const release = [&](int stage) {
      consumer.part([&](int thread, state&) {
        if (thread % pp::cuda::warp_size != 0 || a.broken == rule_broken::no_release) return;
        pp::cuda::arrive(consumer, &s.empty[stage]);
        if (a.broken == rule_broken::release_twice) pp::cuda::arrive(consumer, &s.empty[stage]);
      });
    };
    pp::cuda::ring_place at;
    for (int slab = 0; slab < Slabs; ++slab, at.template advance<stages>()) {
      if (a.broken != rule_broken::no_wait_for_copies)
        pp::cuda::await_phase(consumer, &s.full[at.stage],
                              at.parity ^ (a.broken == rule_broken::late_parity ? 1u : 0u));
      if (a.broken == rule_broken::stored_unfenced)
        consumer.phase([&](int thread, state&) {
          if (thread == 0) s.left[at.stage].byte[0] ^= 1;
        });
      if (a.broken != rule_broken::no_batch) pp::cuda::begin_multiplications(consumer);
      std::uint64_t const left = s.left[at.stage].descriptor(consumer, consumer.number() * 64),
                          right =
                              s.right[at.stage].descriptor(consumer, 0) ^
                              (a.broken == rule_broken::other_descriptor ? std::uint64_t(3) << 62
                                                                         : 0);
      PIPE_UNROLL
      for (int k = 0; k < 4; ++k)
        pp::cuda::multiply_async<operands, A, B, N / 2>(
            consumer, [](state& mine) -> auto& { return mine.sums; },
            pp::cuda::advance(left, k * left_slab::k_stride_bytes),
            pp::cuda::advance(right, k * right_slab::k_stride_bytes), slab > 0 || k > 0);
      if (a.broken != rule_broken::no_commit) pp::cuda::commit_multiplications(consumer);
      if (a.broken == rule_broken::touched_sums)
        consumer.part([&](int, state& mine) { mine.sums[1] = 3; });
      if (a.broken == rule_broken::early_release) release(at.stage);
      pp::cuda::await_multiplications<0>(consumer);
      if (a.broken != rule_broken::early_release) release(at.stage);
    }
    consumer.part([&](int thread, state& mine) {
      PIPE_UNROLL
      for (int i = 0; i < N / 2; ++i) {
        auto const p = pp::cuda::place_in_wgmma(thread, i);
        a.out[(consumer.number() * 64 + p.row) * N + p.column] = mine.sums[i];
      }
    });
  }
};

}  // namespace hopper
