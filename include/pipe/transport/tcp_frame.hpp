// SPDX-License-Identifier: BSL-1.0
//
// The frames of the hand-shake between the processes of a job, and what a process brings to it. A
// frame says how many bytes follow; the number is compared with what is expected before anything is
// read, and never decides about memory.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include <pipe/base/config.hpp>
#include <pipe/base/error.hpp>
#include <pipe/base/heap_array.hpp>
#include <pipe/base/sentence.hpp>
#include <pipe/transport/process_launch.hpp>
#include <pipe/transport/tcp_socket.hpp>

namespace pp::detail {

/// The data of a process in the hand-shake, the same in all but for its number.
struct tcp_start {
  int process = 0, processes = 1;
  int host = 0;      ///< the process that listens, for all with greater numbers
  int channels = 2;  ///< connections of each
  meeting_place at;
  job_token token;
  std::uint64_t plan = 0;  ///< equal in processes that run the same program: see fingerprint()
  std::chrono::milliseconds deadline{60'000};
};

/// The connections of a process after the hand-shake: the host has one of each kind to every
/// process with a greater number, by that number; the others have them to the host.
struct tcp_connections {
  /// calls: data. watch: signs of life, beside any data.
  enum channel : int { calls, watch, channels };
  heap_array<tcp_socket> of[channels];
  std::string address;  ///< of process 0

  explicit tcp_connections(int processes) {
    for (heap_array<tcp_socket>& a : of) a = heap_array<tcp_socket>(processes);
  }
};

/// What comes before all bytes that are sent, in the order of bytes of the machine. The first two
/// members are those of every version.
///
/// law: without a length that is compared with the expected one, nothing after a frame is read
struct tcp_frame {
  static constexpr int magic_size = 8, longest_text = 1000;
  static constexpr char right_magic[magic_size + 1] = "pipe/tcp";
  /// hello: to process 0, once for each channel, then a tcp_hello. accepted: to the sender of one.
  /// begins: all processes have come. refused: a text, why this process or the job cannot begin.
  /// call: an operation of all processes.
  enum kinds : std::uint32_t { hello = 1, accepted, begins, refused, call };

  char magic[magic_size]{};
  job_token token;
  std::uint32_t version = PIPE_VERSION;
  kinds kind = hello;
  std::uint32_t length = 0;  ///< bytes that follow
  std::uint32_t number = 0;  ///< accepted: milliseconds until process 0 gives up. refused: 1 if a
                             ///< process is missing or lost. call: which operation

  tcp_frame() = default;
  tcp_frame(job_token const& job, kinds what, std::uint32_t bytes = 0, std::uint32_t n = 0)
      : token(job), kind(what), length(bytes), number(n) {
    std::memcpy(magic, right_magic, magic_size);
  }
  bool has_magic() const { return std::memcmp(magic, right_magic, magic_size) == 0; }
};
static_assert(sizeof(tcp_frame) == 40);

/// Which process this is, of which job.
struct tcp_hello {
  std::uint64_t plan = 0;
  std::int32_t process = 0, processes = 0, channel = 0, unused = 0;
};
static_assert(sizeof(tcp_hello) == 24);

/// Sends a frame and what follows it, all of which a new connection takes at once. Returns whether
/// it did.
///
/// needs: f.length <= tcp_frame::longest_text
/// shape: body: [f.length]
[[gnu::cold]] inline bool send_frame(tcp_socket const& to, tcp_frame const& f, void const* body) {
  char bytes[sizeof(f) + tcp_frame::longest_text];
  std::memcpy(bytes, &f, sizeof(f));
  if (f.length > 0) std::memcpy(bytes + sizeof(f), body, f.length);
  long const size = long(sizeof(f)) + f.length;
  long sent = 0;
  while (sent < size && to.write(bytes + sent, size - sent, sent) == moved::some) continue;
  return sent == size;
}
/// Refuses a connection; the text may be cut.
[[gnu::cold]] inline void send_refusal(tcp_socket const& to, job_token const& token,
                                       std::string_view text, bool is_loss) {
  text = text.substr(0, tcp_frame::longest_text);
  send_frame(to, {token, tcp_frame::refused, std::uint32_t(text.size()), is_loss ? 1u : 0u},
             text.data());
}
/// Reads exactly `bytes` bytes, and waits for them.
///
/// returns: some if all have come; none_now at the limit; otherwise what ended the connection
[[gnu::cold]] inline moved read_all(tcp_socket const& from, void* to, long bytes,
                                    time_limit limit) {
  for (long done = 0; done < bytes;) {
    moved const m = from.read(static_cast<char*>(to) + done, bytes - done, done);
    if (m == moved::some) continue;
    if (m != moved::none_now) return m;
    if (limit.is_over()) return moved::none_now;
    from.waits(POLLIN, limit.left(1000));
  }
  return moved::some;
}
/// A text of another process, without what a terminal might obey.
[[gnu::cold]] inline std::string printable(char const* text, long size) {
  std::string line(text, std::size_t(size));
  for (char& c : line)
    if ((static_cast<unsigned char>(c) < 32 && c != '\n') || c == 127) c = '?';
  return line;
}

}  // namespace pp::detail
