// SPDX-License-Identifier: BSL-1.0
//
// The other side of the hand-shake: processes connect to their host, process 0, again and again
// until it listens, say who they are, and wait until all have come.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include <pipe/base/thread.hpp>
#include <pipe/transport/tcp_frame.hpp>

namespace pp::detail {

/// law: every wait ends at the deadline, or, once process 0 has answered, a second after its own
class tcp_guest {
 public:
  explicit tcp_guest(tcp_start const& start) : start_(start), limit_(start.deadline) {}

  /// Connects to process 0, and waits until all processes have come.
  ///
  /// throws: error if process 0 refuses this process, or another one; rank_error if it is not
  ///         there, or is lost, or a process is missing
  [[gnu::cold]] tcp_connections meet() {
    tcp_connections all(start_.processes);
    for (int channel = 0; channel < start_.channels; ++channel)
      all.of[channel][start_.host] = join(channel);
    all.address = address_;
    for (int channel = 0; channel < start_.channels; ++channel) {
      tcp_frame f;
      moved const m = hear(all.of[channel][start_.host], f);
      if (m == moved::none_now)
        throw_error<rank_error>({"process ", start_.host, " at ", std::string_view(address_),
                                 " has not said that all processes have come, for which process ",
                                 start_.process, " has waited"});
      if (m != moved::some || f.kind != tcp_frame::begins)
        throw_error<rank_error>({"process ", start_.host,
                                 " was lost: it has ended its connection, while process ",
                                 start_.process, " was starting"});
    }
    return all;
  }

 private:
  /// A connection over which process 0 has accepted this one. What can become better is tried
  /// again: a name that is not known yet, an address where nothing listens, a connection that ends
  /// at once.
  [[gnu::cold]] tcp_socket join(int channel) {
    std::string reason = "it has no address";
    for (;; sleep_for(50'000'000)) {
      for (tcp_address const& a : tcp_address::of(start_.at.address, start_.at.port, reason)) {
        address_ = a.text();
        tcp_socket s = tcp_socket::connect_to(a, limit_);
        if (!s.is_open()) {
          reason = std::strerror(errno);
          continue;
        }
        tcp_hello hello;
        hello.plan = start_.plan;
        hello.process = start_.process;
        hello.processes = start_.processes;
        hello.channel = channel;
        send_frame(s, {start_.token, tcp_frame::hello, sizeof(hello)}, &hello);
        tcp_frame f;
        auto const asked = time_limit::clock::now();
        moved const m = hear(s, f);
        if (m == moved::some) {
          if (f.kind != tcp_frame::accepted) answers_otherwise();
          limit_ = time_limit(std::chrono::milliseconds(f.number) + std::chrono::seconds(1));
          return s;
        }
        if (m != moved::none_now)
          reason = "what listens there has ended the connection";
        else if (time_limit::clock::now() - asked > std::chrono::milliseconds(100))
          reason = "what listens there does not answer";
      }
      if (limit_.is_over())
        throw_error<rank_error>({"process ", start_.process, " has found no process ", start_.host,
                                 " at ", start_.at.address, ":", start_.at.port, " within ",
                                 double(start_.deadline.count()) / 1000,
                                 " s: ", std::string_view(reason)});
    }
  }
  /// The next frame, which has no body unless process 0 refuses.
  ///
  /// throws: as meet
  [[gnu::cold]] moved hear(tcp_socket const& from, tcp_frame& f) {
    if (moved const m = read_all(from, &f, tcp_frame::magic_size, limit_); m != moved::some)
      return m;
    if (!f.has_magic()) answers_otherwise();
    moved const m = read_all(from, reinterpret_cast<char*>(&f) + tcp_frame::magic_size,
                             long(sizeof(f)) - tcp_frame::magic_size, limit_);
    if (m != moved::some) return m;
    if (!(f.token == start_.token))
      throw_error<error>(
          {"what listens at ", std::string_view(address_), " is process ", start_.host,
           " of another job: its PIPE_JOB_TOKEN is not that of process ", start_.process});
    bool const is_refusal = f.kind == tcp_frame::refused;
    if (f.length > (is_refusal ? std::uint32_t(tcp_frame::longest_text) : 0u)) answers_otherwise();
    if (!is_refusal) return m;
    char text[tcp_frame::longest_text];
    if (moved const t = read_all(from, text, f.length, limit_); t != moved::some) return t;
    std::string const line = printable(text, f.length);
    if (f.number == 1) throw rank_error(line);
    throw error(line);
  }
  /// Another program listens at the port: it need not be asked again.
  [[noreturn, gnu::cold]] void answers_otherwise() const {
    throw_error<error>({"what listens at ", std::string_view(address_), " is no process ",
                        start_.host, " of pipe: it does not answer a hand-shake"});
  }

  tcp_start const& start_;
  time_limit limit_;
  std::string address_;
};

}  // namespace pp::detail
