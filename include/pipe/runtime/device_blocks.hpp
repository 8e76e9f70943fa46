// SPDX-License-Identifier: BSL-1.0
//
// The devices that hold the ranks of a process. Ranks of one device read each other's memory; a
// value for a rank on another device is copied to a slot in the reader's arena.
#pragma once

namespace pp::detail {

/// Ranks in blocks of consecutive ones: device k has those from k R / N on, up to (k + 1) R / N.
///
/// needs: 1 <= devices <= ranks
struct device_blocks {
  int devices = 1, ranks = 1;

  constexpr int first_rank(int device) const { return int(long(device) * ranks / devices); }
  constexpr int count(int device) const { return first_rank(device + 1) - first_rank(device); }
  constexpr int of(int rank) const { return int((long(rank + 1) * devices - 1) / ranks); }
  /// Whether two ranks are on one device.
  constexpr bool share(int a, int b) const { return of(a) == of(b); }
  /// Whether a rank is the first of its device, whose arena has what the device's ranks share.
  constexpr bool is_first(int rank) const { return first_rank(of(rank)) == rank; }
};

/// Whether what rank `from` makes is copied to rank `to`. Work: a pipeline_schedule, or a
/// planned_pipeline.
template <class Work>
constexpr bool is_copied(int from, int to) {
  constexpr device_blocks blocks{Work::devices, Work::ranks};
  return from != to && (Work::transport::copies || !blocks.share(from, to));
}

}  // namespace pp::detail
