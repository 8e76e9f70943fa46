// SPDX-License-Identifier: BSL-1.0
//
// The devices that hold the ranks, and the devices of this process. Ranks of one device read each
// other's memory; a value for a rank on another device is copied to a slot in the reader's arena.
#pragma once

namespace pp::detail {

/// The division of R ranks among N devices: device k has the consecutive ranks from k R / N on, up
/// to (k + 1) R / N.
///
/// needs: 1 <= devices <= ranks
struct device_blocks {
  int devices = 1, ranks = 1;

  constexpr int first_rank(int device) const { return int(long(device) * ranks / devices); }
  constexpr int count(int device) const { return first_rank(device + 1) - first_rank(device); }
  constexpr int of(int rank) const { return int((long(rank + 1) * devices - 1) / ranks); }
  /// Whether two ranks are on one device.
  constexpr bool share(int a, int b) const { return of(a) == of(b); }
  /// Whether a rank is the first of its device. The first rank's arena has what the device's ranks
  /// share.
  constexpr bool is_first(int rank) const { return first_rank(of(rank)) == rank; }
};

/// The devices of this process, which are consecutive, among all devices that hold ranks. If there
/// are replicas of the pipeline, each replica has that many devices, and each device a process.
struct local_devices {
  device_blocks all{};
  int first = 0, count = 1;
  int replica = 0, replicas = 1;

  constexpr int first_rank() const { return all.first_rank(first); }
  constexpr int end_rank() const { return all.first_rank(first + count); }
  constexpr bool has(int rank) const { return first_rank() <= rank && rank < end_rank(); }
  /// The number of a rank's device among the devices of the process.
  constexpr int number(int rank) const { return all.of(rank) - first; }

  /// The process of a rank of this replica. peer: the process that has the ranks of this process in
  /// replica `other`.
  ///
  /// needs: a process for each device
  constexpr int process_of(int rank) const { return replica * all.devices + all.of(rank); }
  constexpr int peer(int other) const { return other * all.devices + first; }
};

/// Whether values that rank `from` makes are copied to rank `to`. Work: a pipeline_schedule, or a
/// planned_pipeline.
template <class Work>
constexpr bool is_copied(int from, int to) {
  constexpr device_blocks blocks{Work::devices, Work::ranks};
  return from != to && (Work::transport::copies || !blocks.share(from, to));
}

}  // namespace pp::detail
