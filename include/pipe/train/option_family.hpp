// SPDX-License-Identifier: BSL-1.0
//
// What options of a Pipeline are about: one of each family is in force.
#pragma once

namespace pp {

enum class option_family : unsigned char {
  unknown,
  stages,
  micro_batches,
  micro_batch_size,
  schedule,
  precision,
  optimizer,
  backend,
  partition,
  memory_limit,
  recompute,
  averaging,
  threads,
  products,
  transport
};
inline constexpr int option_families = 15;

}  // namespace pp
