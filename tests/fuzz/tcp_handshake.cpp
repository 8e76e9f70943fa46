// SPDX-License-Identifier: BSL-1.0
//
// Strangers, and processes that do not fit, at the port where a job begins. Each connection sends a
// hello and a proof with some bytes changed, cut or added, or what the host itself has sent. The
// host takes it exactly if it is the right one of a process that is not there yet, says why if not,
// and begins only when all have come; without a proof nothing ends the start.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <pipe/transport/tcp/tcp_host.hpp>

#include "fuzz.hpp"

namespace {

using namespace pp::detail;

constexpr int processes = 2, channels = 2;

tcp_start start() {
  tcp_start s;
  s.processes = processes, s.channels = channels, s.plan = 42;
  s.deadline = std::chrono::milliseconds(0);
  s.token.bytes[3] = 7;
  return s;
}

/// A connection, which leaves nothing behind in the system when it is closed.
tcp_socket connection_to(int port) {
  tcp_socket s = tcp_socket::connect_to(tcp_address::of_number("127.0.0.1", port)[0],
                                        time_limit(std::chrono::seconds(5)));
  law(s.is_open());
  linger const at_once{1, 0};
  setsockopt(s.descriptor(), SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
  return s;
}

/// A frame and what follows it, as bytes.
template <class Body>
std::string bytes_of(tcp_frame const& f, Body const& body) {
  std::string bytes(sizeof(f) + sizeof(body), '\0');
  std::memcpy(bytes.data(), &f, sizeof(f));
  std::memcpy(bytes.data() + sizeof(f), &body, sizeof(body));
  return bytes;
}
/// What the input makes of right bytes.
void change(decisions& input, std::string& bytes) {
  for (int changes = input.byte() % 3; changes > 0; --changes) {
    std::size_t const at = input.byte() % bytes.size();
    bytes[at] = char(input.byte());
  }
  std::uint8_t const end = input.byte();
  if (end < bytes.size()) bytes.resize(end);
  if (end >= 250) bytes += input.text(std::size_t(256 - end));
}
/// The hello of one of the processes.
std::string hello_of(decisions& input, tcp_start const& s) {
  tcp_hello hello;
  hello.plan = s.plan, hello.processes = processes;
  hello.process = int(input.byte() % 4), hello.channel = int(input.byte() % 3);
  hello.milliseconds = 60'000;
  hello.drawn.bytes[0] = input.byte();  // not drawn, so that an input does the same again
  std::string bytes = bytes_of(tcp_frame(tcp_frame::hello, sizeof(hello)), hello);
  change(input, bytes);
  return bytes;
}
/// A proof to this hello and challenge, of the right role and token, or else; and whether it is.
std::string proof_for(decisions& input, tcp_start const& s, std::string_view hello,
                      std::string_view challenge, bool& proves) {
  tcp_challenge c;
  std::memcpy(&c, challenge.data() + sizeof(tcp_frame), sizeof(c));
  std::uint8_t const how = input.byte() % 8;
  job_token const other;
  job_proof own = c.proof;
  if (how != 4)
    own = job_proof(how == 1 ? other : s.token,
                    how == 2 ? job_proof::roles::host : job_proof::roles::guest,
                    how == 3 ? std::span<char const>() : std::span<char const>(hello), c.drawn);
  std::string const right = bytes_of(tcp_frame(tcp_frame::proof, sizeof(own)), own);
  std::string bytes = how == 5 ? std::string(challenge) : right;
  change(input, bytes);
  // Of the frame, the version and the number are not looked at.
  auto const is_same = [&](std::size_t from, std::size_t to) {
    return bytes.size() >= to && bytes.compare(from, to - from, right, from, to - from) == 0;
  };
  proves = (how == 0 || how > 5) && is_same(0, 8) && is_same(12, 20) && is_same(24, right.size());
  return bytes;
}
/// Whether the host challenges the sender of these bytes: it may be anyone.
bool is_hello(std::string_view bytes) {
  tcp_frame f;
  if (bytes.size() < sizeof(f) + sizeof(tcp_hello)) return false;
  std::memcpy(&f, bytes.data(), sizeof(f));
  return f.has_magic() && f.kind == tcp_frame::hello && f.length == sizeof(tcp_hello);
}
/// Whether a hello is that of a process of this job.
bool fits(std::string_view hello, tcp_start const& s) {
  tcp_frame f;
  tcp_hello h;
  std::memcpy(&f, hello.data(), sizeof(f));
  std::memcpy(&h, hello.data() + sizeof(f), sizeof(h));
  return f.version == PIPE_VERSION && h.plan == s.plan && h.processes == processes &&
         h.process >= 1 && h.process < processes && h.channel >= 0 && h.channel < channels &&
         h.host == 0;
}
/// The part of a hello that says which connection it is.
std::pair<int, int> place_of(std::string_view hello) {
  tcp_hello h;
  std::memcpy(&h, hello.data() + sizeof(tcp_frame), sizeof(h));
  return {h.process, h.channel};
}

/// All that the host has sent. A refusal has a text that a terminal can show.
std::string answer_on(tcp_socket const& s, tcp_frame& f) {
  char bytes[sizeof(tcp_frame) + tcp_frame::longest_text];
  long size = 0;
  while (size < long(sizeof(bytes)) &&
         s.read(bytes + size, long(sizeof(bytes)) - size, size) == moved::some)
    continue;
  f = {};
  if (size < long(sizeof(f))) return "";
  std::memcpy(&f, bytes, sizeof(f));
  law(f.has_magic());
  if (f.kind == tcp_frame::accepted) law(f.length == 0);
  if (f.kind == tcp_frame::challenge) law(f.length == sizeof(tcp_challenge));
  if (f.kind == tcp_frame::refused) {
    law(long(f.length) == size - long(sizeof(f)) && f.length > 0);
    std::string_view const text(bytes + sizeof(f), f.length);
    law(std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; }));
  } else {
    law(f.kind == tcp_frame::accepted || f.kind == tcp_frame::challenge);
  }
  return std::string(bytes, std::size_t(size));
}

/// What has become of a connection.
struct visit {
  bool proves = false, is_accepted = false;
  std::string hello;  // of one that was challenged
};
/// A whole hand-shake, of two parts.
visit shake_hands(decisions& input, tcp_start const& s, tcp_host& host, tcp_socket const& with) {
  visit v;
  auto const say = [&](std::string const& bytes) {
    long sent = 0;
    if (!bytes.empty()) with.write(bytes.data(), long(bytes.size()), sent);
    for (int look = 0; look < 2; ++look) host.look(0);
  };
  std::string const hello = hello_of(input, s);
  say(hello);
  tcp_frame f;
  std::string const challenge = answer_on(with, f);
  // What comes too early is read as the proof, which it cannot be.
  law((f.kind == tcp_frame::challenge) == is_hello(hello) || challenge.empty());
  if (f.kind != tcp_frame::challenge) return v;
  bool const is_early = hello.size() > sizeof(tcp_frame) + sizeof(tcp_hello);
  v.hello = hello.substr(0, sizeof(tcp_frame) + sizeof(tcp_hello));
  std::string const proof = proof_for(input, s, v.hello, challenge, v.proves);
  say(proof);
  v.proves = v.proves && !is_early;
  answer_on(with, f);
  v.is_accepted = f.kind == tcp_frame::accepted;
  return v;
}

void begin(decisions input) {
  tcp_start const s = start();
  tcp_host host(s);
  int const port = host.port();
  std::vector<tcp_socket> open;
  std::set<std::pair<int, int>> there;
  bool has_ended = false;  // a process of this job did not fit, or one that had come has gone
  for (int i = 0; i < 4 && !input.is_empty(); ++i) {
    bool const leaves = input.byte() % 8 == 0;
    tcp_socket connection = connection_to(port);
    visit const v = shake_hands(input, s, host, connection);
    bool const is_right = v.proves && fits(v.hello, s);
    law(!v.is_accepted || is_right);
    if (v.is_accepted) law(there.insert(place_of(v.hello)).second);
    law(has_ended ||
        v.is_accepted == (is_right && (v.is_accepted || !there.contains(place_of(v.hello)))));
    if ((v.proves && !v.is_accepted) || (v.is_accepted && leaves)) has_ended = true;
    if (!leaves) open.push_back(std::move(connection));
  }
  try {
    tcp_connections const all = host.meet();
    law(there.size() == std::size_t(channels * (processes - 1)));
    for (auto const& of : all.of)
      for (int p = 1; p < processes; ++p) law(of[p].is_open());
  } catch (pp::rank_error const&) {
    law(has_ended || there.size() < std::size_t(channels * (processes - 1)));
  } catch (pp::error const&) {
    law(has_ended);  // by one that has the token
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size);
extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  begin(decisions({data, size}));
  return 0;
}
