// SPDX-License-Identifier: BSL-1.0
//
// The option for the order in which the gradients of a mini-batch are added.
#pragma once

#include <pipe/plan/options/micro_batch_size.hpp>

namespace pp {

namespace option_family {
struct sum;
}

/// A mini-batch is G accumulations, each as many samples as MicroBatches and MicroBatchSize say: an
/// accumulation is a run of the schedule. Losses and gradients of the accumulations are added in
/// one balanced binary tree. Replicas (see Mpi) divide the accumulations as evenly as they can,
/// each whole branches of the tree, and meet in its upper part. A rank has room for log2 G partial
/// sums of its gradients, less one for each halving of its share. Default: GradientAccumulation<1>,
/// where each replica is one accumulation. G is a power of two; so are the replicas on GPUs, and
/// with ZeRO<3>.
///
/// law: loss, gradients and parameters have the same bits for every number of replicas up to G
template <int G>
struct GradientAccumulation {
  using family = option_family::sum;
  static constexpr int accumulations = G, room = 1;
};

/// The sum of GradientAccumulation<G>, of which a replica gets accumulations by its speed: as
/// executor_settings::speed states it, or else as its steps have taken. Each has one, and room for
/// those of `Room` even shares, as partial sums of its gradients. On the host.
///
/// law: loss, gradients and parameters have the bits of GradientAccumulation<G>
template <int G, int Room = 2>
struct GradientAccumulationBySpeed {
  using family = option_family::sum;
  static constexpr int accumulations = G, room = Room;
};

/// The family of sums: a power of two of accumulations, and at most most_samples samples in all.
struct option_family::sum : detail::any_family {
  using fallback = GradientAccumulation<1>;

  template <class Options>
  static constexpr auto diagnose() {
    using option = typename Options::template get<sum>;
    using count = typename Options::template get<micro_batches>;
    using size = typename Options::template get<micro_batch_size>;
    if constexpr (option::accumulations < 1 || option::room < 1)
      return detail::diagnosis_of<wrong::number_must_be_positive, option>();
    else if constexpr ((option::accumulations & (option::accumulations - 1)) != 0)
      return detail::diagnosis_of<wrong::number_must_be_a_power_of_two, option>();
    else if constexpr (long(count::value) * size::value >
                       detail::most_samples / option::accumulations)
      return detail::diagnosis_of<wrong::number_is_too_large, option, count, size,
                                  wrong::AtMost<detail::most_samples>>();
    else
      return std::type_identity<detail::nothing_wrong>{};
  }
};

}  // namespace pp
