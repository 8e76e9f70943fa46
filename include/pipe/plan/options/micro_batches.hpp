// SPDX-License-Identifier: BSL-1.0
//
// The number of micro-batches in a mini-batch.
#pragma once

#include <pipe/plan/options/family.hpp>

namespace pp {

namespace option_family {
struct micro_batches;
}

/// N micro-batches in each step's mini-batch (default 1). Must be positive.
template <int N>
struct MicroBatches {
  using family = option_family::micro_batches;
  static constexpr int value = N;
};

/// The family of micro-batch counts. Their upper bound is that of the samples of a mini-batch, see
/// option_family::micro_batch_size.
struct option_family::micro_batches : detail::any_family {
  using fallback = MicroBatches<1>;

  template <class Options>
  static constexpr auto diagnose() {
    using option = typename Options::template get<micro_batches>;
    if constexpr (option::value < 1)
      return detail::diagnosis_of<wrong::number_must_be_positive, option>();
    else
      return std::type_identity<detail::nothing_wrong>{};
  }
};

}  // namespace pp
