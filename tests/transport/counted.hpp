// SPDX-License-Identifier: BSL-1.0
//
// A transport that counts what it moves, to compare with the plan.
#pragma once

#include <atomic>
#include <vector>

#include <pipe/plan/plan.hpp>
#include <pipe/transport/transport.hpp>

namespace test_transports {

/// Bytes that ranks of this process have sent: to each other rank, and to other replicas.
struct traffic {
  static constexpr int most = 8;  ///< ranks
  std::atomic<long> sent[most][most]{}, exchanged[most]{};
  void clear() {
    for (auto& row : sent)
      for (auto& n : row) n = 0;
    for (auto& n : exchanged) n = 0;
  }
};

/// `Base`, of which at most one object is in use at a time.
template <class Base>
class counted : public Base {
 public:
  using Base::Base;
  static inline traffic seen;

  pp::transports::waited share(int rank, pp::transports::transfer const& x,
                               pp::transports::failure_flag const& failed) {
    if (rank == x.from_rank) count(x);
    return Base::share(rank, x, failed);
  }
  // Of a stream_transport.
  void open(int number, pp::transports::boundary_stream const& s) {
    streams_.resize(streams_.size() > std::size_t(number) ? streams_.size()
                                                          : std::size_t(number) + 1);
    streams_[std::size_t(number)] = s;
    Base::open(number, s);
  }
  void send(int number, int micro_batch, pp::transports::row_counts const& rows) {
    pp::transports::boundary_stream const& s = streams_[std::size_t(number)];
    pp::transports::transfer x = s.first;
    x.bytes = s.bytes_of(rows);
    count(x);
    Base::send(number, micro_batch, rows);
  }
  // Of a replica_transport.
  void send_to(int rank, int replica, int number, char const* data, long bytes) {
    seen.exchanged[rank] += bytes;
    Base::send_to(rank, replica, number, data, bytes);
  }

 private:
  static void count(pp::transports::transfer const& x) {
    if (x.from_rank != x.to_rank) seen.sent[x.from_rank][x.to_rank] += x.bytes;
  }
  std::vector<pp::transports::boundary_stream> streams_;
};

/// The bytes over a link in a step of one of `replicas`, by the plan.
template <class Trainer>
long planned_bytes(int from, int to, int replicas = 1) {
  auto const& plan = Trainer::plan();
  long bytes = from == to ? 0 : plan.norm_bytes[from];
  for (pp::link_plan const& link : plan.links)
    if (link.from == from && link.to == to)
      bytes += (plan.step_bytes_of(link) - link.shared) / replicas + link.shared;
  return bytes;
}

}  // namespace test_transports
