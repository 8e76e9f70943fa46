// SPDX-License-Identifier: BSL-1.0
//
// The connecting side of the hand-shake: processes connect to their host, process 0, again and
// again until the host listens, say who they are, and wait until all have come.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include <pipe/base/thread.hpp>
#include <pipe/transport/tcp/tcp_frame.hpp>

namespace pp::detail {

/// A guest of a job's start.
///
/// law: every wait ends at the deadline, or a second later, as the host says first why it ends
/// law: a listener that is no process of the job cannot end the start, unless there is no other
class tcp_guest {
 public:
  explicit tcp_guest(tcp_start const& start) : start_(start), limit_(start.deadline) {}

  /// Connects to the host, and waits until all processes have come.
  ///
  /// throws: error if the host refuses this process, or another process; rank_error if the host is
  ///         not there, or is lost, or a process is missing
  [[gnu::cold]] tcp_connections meet() {
    tcp_connections all(start_.processes);
    for (int channel = 0; channel < start_.channels; ++channel) {
      all.of[channel][start_.host] = join(channel, all.of[tcp_connections::calls][start_.host]);
      all.address = address_;
    }
    wait_for_all(all.of[tcp_connections::calls][start_.host]);
    return all;
  }

 private:
  // The time of a try to join at one address, before the next address is tried: a stranger that is
  // silent at one address does not use up the time of the start. Shorter than the patience of a
  // host that this process has joined with its first connection.
  static constexpr std::chrono::milliseconds longest_try{4000};

  /// A connection over which the host has accepted this process. A try is repeated where the next
  /// one can succeed: after a name that is not known yet, an address where nothing or a stranger
  /// listens, or a connection that ends at once.
  ///
  /// joined: the connection for calls, if there is one: the host expects signs of life
  [[gnu::cold]] tcp_socket join(int channel, tcp_socket const& joined) {
    std::string reason = "it has no address";
    for (int silent = 0;; sleep_for(50'000'000)) {
      std::string other;  // what listens at one of the addresses is not the host
      int addresses = 0, silent_ones = 0;
      for (tcp_address const& a :
           tcp_address::of(start_.at.address, start_.at.port, limit_, reason)) {
        throw_failure();
        if (joined.is_open()) sign(joined);
        ++addresses;
        address_ = a.text();
        time_limit const limit = limit_ & time_limit(longest_try);
        tcp_socket s = tcp_socket::connect_to(a, limit);
        if (!s.is_open()) {
          reason = std::strerror(errno);
          continue;
        }
        outcome const o = shake_hands(s, channel, limit, reason);
        if (o == outcome::joined) return s;
        if (o == outcome::is_other) other = reason;
        silent_ones += o == outcome::silent;
      }
      if (!other.empty()) throw error(other);
      silent = addresses > 0 && silent_ones == addresses ? silent + 1 : 0;
      if (limit_.is_over()) miss(start_.deadline, reason);
      // A living host answers at once, unless the processes watch each other and meet in order.
      if (silent == 2 && start_.watch == nullptr) miss(2 * longest_try, reason);
    }
  }
  /// throws: rank_error; after: of waiting
  [[noreturn, gnu::cold]] void miss(std::chrono::milliseconds after, std::string const& why) const {
    throw_error<rank_error>({"process ", start_.process, " has found no process ", start_.host,
                             " at ", start_.at.address, ":", start_.at.port, " within ",
                             double(after.count()) / 1000, " s: ", std::string_view(why)});
  }

  /// joined: both sides have the token, and the host lets this process in. silent: no answer has
  /// come. is_other: the listener is another program, which need not be asked again.
  enum class outcome { joined, later, silent, is_other };
  /// The hand-shake of one connection.
  ///
  /// throws: error with the text of the host, once it has proved to be the host
  [[gnu::cold]] outcome shake_hands(tcp_socket const& s, int channel, time_limit limit,
                                    std::string& reason) {
    tcp_hello hello;
    hello.drawn = nonce::drawn();
    hello.plan = start_.plan;
    hello.process = start_.process;
    hello.processes = start_.processes;
    hello.host = start_.host;
    hello.channel = channel;
    hello.milliseconds = std::uint32_t(limit_.left(1 << 30));
    tcp_frame const first(tcp_frame::hello, sizeof(hello));
    send_frame(s, first, &hello);
    auto const asked = time_limit::clock::now();
    tcp_challenge c;
    std::string text;
    heard h = hear(s, tcp_frame::challenge, &c, sizeof(c), limit, text);
    if (h == heard::expected) {
      if (!(c.proof == proof_of(start_.token, job_proof::roles::host, first, hello, c.drawn))) {
        reason =
            sentence({"what listens at ", std::string_view(address_), " is process ", start_.host,
                      " of another job: its PIPE_JOB_TOKEN is not that of process ",
                      start_.process})
                .begin();
        return outcome::is_other;
      }
      job_proof const own = proof_of(start_.token, job_proof::roles::guest, first, hello, c.drawn);
      send_frame(s, tcp_frame(tcp_frame::proof, sizeof(own)), &own);
      h = hear(s, tcp_frame::accepted, nullptr, 0, time_limit(tcp_signs::patience), text);
      if (h == heard::expected) return outcome::joined;
      if (h == heard::refusal) throw error(text);
      // The host may have let this process in, which must not come again.
      if (h == heard::nothing) lose("it has not answered for 5 s");
    }
    if (h == heard::other) {
      reason = text;
      return outcome::is_other;
    }
    if (h == heard::refusal)  // whose refusal it is, is not known
      reason = sentence({"what listens there says: ", std::string_view(text)}).begin();
    else if (h == heard::end)
      reason = "what listens there has ended the connection";
    if (h != heard::nothing) return outcome::later;
    if (time_limit::clock::now() - asked > std::chrono::milliseconds(100))
      reason = "what listens there does not answer";
    return outcome::silent;
  }

  /// refusal: a frame with a text. other: bytes that no process of this program sends.
  enum class heard { expected, refusal, other, nothing, end };
  /// Reads the next frame: a frame of this kind and length, or a refusal. The length is compared
  /// before the bytes that it announces are read.
  ///
  /// shape: body: [bytes]
  /// text:  the text of a refusal, or why the listener is another program
  [[gnu::cold]] heard hear(tcp_socket const& from, tcp_frame::kinds kind, void* body, long bytes,
                           time_limit limit, std::string& text) {
    tcp_frame f;
    auto const read = [&](void* to, long count) { return read_all(from, to, count, limit); };
    moved m = read(&f, tcp_frame::magic_size);
    if (m == moved::some && f.has_magic())
      m = read(reinterpret_cast<char*>(&f) + tcp_frame::magic_size,
               long(sizeof(f)) - tcp_frame::magic_size);
    if (m == moved::some && f.has_magic() && f.kind == kind && long(f.length) == bytes) {
      if (bytes > 0) m = read(body, bytes);
      if (m == moved::some) return heard::expected;
    } else if (m == moved::some && f.has_magic() && is_refusal(f)) {
      m = read_text(from, f, limit, text);
      if (m == moved::some) return heard::refusal;
    }
    if (m == moved::some) {
      text = answers_otherwise();
      return heard::other;
    }
    return m == moved::none_now ? heard::nothing : heard::end;
  }
  /// Whether a frame announces a text of no more than the longest.
  static bool is_refusal(tcp_frame const& f) {
    return f.kind == tcp_frame::refused && f.length <= std::uint32_t(tcp_frame::longest_text);
  }
  /// needs: is_refusal(f)
  [[gnu::cold]] static moved read_text(tcp_socket const& from, tcp_frame const& f, time_limit limit,
                                       std::string& text) {
    char bytes[tcp_frame::longest_text];
    moved const m = read_all(from, bytes, f.length, limit);
    if (m == moved::some) text = printable(bytes, f.length);
    return m;
  }
  [[gnu::cold]] std::string answers_otherwise() const {
    return sentence({"what listens at ", std::string_view(address_), " is no process ", start_.host,
                     " of pipe: it does not answer a hand-shake"})
        .begin();
  }

  /// Waits until the host, which has proved to be the host, says that all have come, or why not.
  /// Meanwhile both sides say that they live.
  [[gnu::cold]] void wait_for_all(tcp_socket const& host) {
    time_limit const limit = limit_ + std::chrono::milliseconds(1000);
    tcp_signs signs;
    std::chrono::nanoseconds silent{};
    tcp_frame f;
    for (long have = 0;;) {
      throw_failure();
      auto const passed = signs.passed();
      if (start_.watch == nullptr && signs.is_due(passed)) sign(host);
      moved const m = host.read(reinterpret_cast<char*>(&f) + have, long(sizeof(f)) - have, have);
      if (m == moved::none_now) {
        silent += passed;
        if (start_.watch == nullptr && silent > tcp_signs::patience)
          lose("it has not answered for 5 s");
        if (limit.is_over()) break;
        host.waits(POLLIN, limit.left(100));
        continue;
      }
      if (m != moved::some) lose("it has ended its connection");
      if (have < long(sizeof(f))) continue;
      have = 0, silent = {};
      if (limit.is_over()) break;
      if (!f.has_magic() || (f.length != 0 && !is_refusal(f))) throw error(answers_otherwise());
      if (f.kind == tcp_frame::begins) return;
      if (f.kind == tcp_frame::lives) continue;
      if (f.kind != tcp_frame::refused) throw error(answers_otherwise());
      std::string text;
      if (read_text(host, f, limit, text) != moved::some) lose("it has ended its connection");
      if (f.number == 1) throw rank_error(text);
      throw error(text);
    }
    throw_error<rank_error>({"process ", start_.host, " at ", std::string_view(address_),
                             " did not report that all processes have connected; process ",
                             start_.process, " waited for this report"});
  }
  [[gnu::cold]] static void sign(tcp_socket const& to) {
    send_frame(to, tcp_frame(tcp_frame::lives), nullptr);
  }
  /// throws: rank_error, with the failure that the watch knows of, where there is one
  [[noreturn, gnu::cold]] void lose(char const* why) const {
    throw_failure();
    throw_error<rank_error>({"process ", start_.host, " was lost: ", why, ", while process ",
                             start_.process, " was starting"});
  }
  [[gnu::cold]] void throw_failure() const {
    if (start_.watch != nullptr && start_.watch->has_failed())
      throw rank_error(start_.watch->failure());
  }

  tcp_start const& start_;
  time_limit limit_;
  std::string address_;
};

}  // namespace pp::detail
