// SPDX-License-Identifier: BSL-1.0
//
// Transports that pass nothing on, for tests of what is not a transport: their classes derive from
// these and have the members that they look at. One place knows all members of the concepts.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <pipe/transport/process/process_watch.hpp>
#include <pipe/transport/transport.hpp>

namespace silent {

/// Transfers and barriers, as all transports have them.
struct ranks {
  ranks() = default;
  ranks(int, int, pp::transports::patience const&) {}
  static pp::transports::process_place place(int ranks) { return {0, ranks}; }
  void set_memory(int, char*) {}
  void reset() {}
  void wake_all() {}
  pp::transports::waited share(int, pp::transports::transfer const&,
                               pp::transports::failure_flag const&) {
    return pp::transports::waited::done;
  }
  char* at(pp::transports::transfer const&) const { return nullptr; }
  pp::transports::waited arrive_and_wait(int, int, pp::transports::failure_flag const&) {
    return pp::transports::waited::done;
  }
  bool cancel_barrier(int) { return false; }
};

/// Between replicas.
struct replicas : ranks {
  static constexpr bool copies = true;
  static constexpr int lanes = 6;
  using ranks::ranks;
  void agree(std::uint64_t) {}
  void open(int, pp::transports::boundary_stream const&) {}
  void expect(int, int) {}
  pp::transports::waited receive(int, int, pp::transports::failure_flag const&) {
    return pp::transports::waited::done;
  }
  void send(int, int, pp::transports::row_counts const&) {}
  pp::transports::waited sent(int, int, pp::transports::failure_flag const&) {
    return pp::transports::waited::done;
  }
  void announce(std::string_view) {}
  std::string announced() { return {}; }
  void begin_call(pp::detail::process_call const&) {}
  void end_call() {}
  int during(pp::detail::process_activity const&) { return 0; }
  void broadcast(int, char*, long) {}
  int process() { return 0; }
  int processes() { return 1; }
  int process_of(int) { return 0; }
  long least(long n) { return n; }
  void open_lanes(int, int) {}
  void send_to(int, int, int, char const*, long) {}
  void receive_from(int, int, int, char*, long) {}
  bool has_met(int, int) { return true; }
  template <class Condition>
  pp::transports::waited until(Condition const&, pp::transports::failure_flag const&) {
    return pp::transports::waited::done;
  }
};
static_assert(pp::transports::replica_transport<replicas>);

}  // namespace silent
