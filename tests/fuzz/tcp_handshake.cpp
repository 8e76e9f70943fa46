// SPDX-License-Identifier: BSL-1.0
//
// Strangers, and processes that do not fit, at the port where a job begins. Each connection sends a
// hand-shake with some bytes changed, cut or added. The host takes it exactly if it is the right
// one of a process that is not there yet, says why if not, and begins only when all have come.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <pipe/transport/tcp_host.hpp>

#include "fuzz.hpp"

namespace {

using namespace pp::detail;

constexpr int processes = 3, channels = 2;

tcp_start start() {
  tcp_start s;
  s.processes = processes, s.channels = channels, s.plan = 42;
  s.deadline = std::chrono::milliseconds(0);
  s.token.bytes[3] = 7;
  return s;
}

/// A connection, which leaves nothing behind in the system when it is closed.
tcp_socket connection_to(int port) {
  std::string reason;
  tcp_socket s = tcp_socket::connect_to(tcp_address::of("127.0.0.1", port, reason)[0],
                                        time_limit(std::chrono::seconds(5)));
  law(s.is_open());
  linger const at_once{1, 0};
  setsockopt(s.descriptor(), SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
  return s;
}

/// The bytes of a hand-shake, of one of the processes, and what the input makes of it.
std::string hand_shake(decisions& input, tcp_start const& s) {
  tcp_hello hello;
  hello.plan = s.plan, hello.processes = processes;
  hello.process = int(input.byte() % 4), hello.channel = int(input.byte() % 3);
  tcp_frame const f(s.token, tcp_frame::hello, sizeof(hello));
  std::string bytes(sizeof(f) + sizeof(hello), '\0');
  std::memcpy(bytes.data(), &f, sizeof(f));
  std::memcpy(bytes.data() + sizeof(f), &hello, sizeof(hello));
  for (int changes = input.byte() % 3; changes > 0; --changes) {
    std::size_t const at = input.byte() % bytes.size();
    bytes[at] = char(input.byte());
  }
  std::uint8_t const end = input.byte();
  if (end < bytes.size()) bytes.resize(end);
  if (end >= 250) bytes += input.text(std::size_t(256 - end));
  return bytes;
}
/// Whether the first bytes of a connection are the hand-shake of a process of this job.
bool is_right(std::string_view bytes, tcp_start const& s) {
  tcp_frame f;
  tcp_hello h;
  if (bytes.size() < sizeof(f) + sizeof(h)) return false;
  std::memcpy(&f, bytes.data(), sizeof(f));
  std::memcpy(&h, bytes.data() + sizeof(f), sizeof(h));
  return f.has_magic() && f.token == s.token && f.version == PIPE_VERSION &&
         f.kind == tcp_frame::hello && f.length == sizeof(h) && h.plan == s.plan &&
         h.processes == processes && h.process >= 1 && h.process < processes && h.channel >= 0 &&
         h.channel < channels;
}
/// The part of a hand-shake that says which connection it is.
std::pair<int, int> place_of(std::string_view bytes) {
  tcp_hello h;
  std::memcpy(&h, bytes.data() + sizeof(tcp_frame), sizeof(h));
  return {h.process, h.channel};
}

/// Whether the host has accepted a connection. A refusal has a text that a terminal can show.
bool is_accepted(tcp_socket const& s) {
  char bytes[sizeof(tcp_frame) + tcp_frame::longest_text];
  long size = 0;
  while (size < long(sizeof(bytes)) &&
         s.read(bytes + size, long(sizeof(bytes)) - size, size) == moved::some)
    continue;
  tcp_frame f;
  if (size < long(sizeof(f))) return false;
  std::memcpy(&f, bytes, sizeof(f));
  law(f.has_magic());
  if (f.kind == tcp_frame::accepted) return law(f.length == 0), true;
  law(f.kind == tcp_frame::refused && long(f.length) == size - long(sizeof(f)) && f.length > 0);
  std::string_view const text(bytes + sizeof(f), f.length);
  law(std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; }));
  return false;
}

void begin(decisions input) {
  tcp_start const s = start();
  tcp_host host(s);
  int const port = host.port();
  std::vector<tcp_socket> open;
  std::set<std::pair<int, int>> there;
  bool has_ended = false;  // a process of this job did not fit, or one that had come has gone
  for (int i = 0; i < 8 && !input.is_empty(); ++i) {
    bool const leaves = input.byte() % 8 == 0;
    std::string const bytes = hand_shake(input, s);
    tcp_socket connection = connection_to(port);
    long sent = 0;
    if (!bytes.empty()) connection.write(bytes.data(), long(bytes.size()), sent);
    for (int look = 0; look < 3; ++look) host.look(0, 1000);
    bool const fits = is_right(bytes, s), accepted = is_accepted(connection);
    law(!accepted || fits);
    if (accepted) law(there.insert(place_of(bytes)).second);
    law(has_ended || accepted == (fits && (accepted || !there.contains(place_of(bytes)))));
    if (!accepted || leaves || bytes.size() > sizeof(tcp_frame) + sizeof(tcp_hello))
      has_ended = true;  // perhaps
    if (!leaves) open.push_back(std::move(connection));
  }
  try {
    tcp_connections const all = host.meet();
    law(there.size() == std::size_t(channels * (processes - 1)));
    for (auto const& of : all.of)
      for (int p = 1; p < processes; ++p) law(of[p].is_open());
  } catch (pp::error const&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size);
extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  begin(decisions({data, size}));
  return 0;
}
