// SPDX-License-Identifier: BSL-1.0
//
// The frames of the hand-shake between the processes of a job, and the data of a process in it:
//
//     guest                                           host
//     hello: nonce, who it is                  ->
//                                              <-     challenge: nonce, proof
//     proof                                    ->     believes the hello
//                                              <-     accepted, or refused and why
//     lives                                    <->    lives, twice a second
//                                              <-     begins, or refused and why
//
// Before a proof is compared each side treats the other side as a stranger, which may send
// anything. A frame says how many bytes follow; the number is compared with the expected number
// before anything is read, and no memory is allocated by it.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include <pipe/base/config.hpp>
#include <pipe/base/error.hpp>
#include <pipe/base/heap_array.hpp>
#include <pipe/base/sentence.hpp>
#include <pipe/base/utf8.hpp>
#include <pipe/transport/process/job_token.hpp>
#include <pipe/transport/process/process_launch.hpp>
#include <pipe/transport/process/process_watch.hpp>
#include <pipe/transport/running_time.hpp>
#include <pipe/transport/tcp/tcp_socket.hpp>

namespace pp::detail {

/// The data of a process in the hand-shake, the same in all processes but for the number.
struct tcp_start {
  int process = 0, processes = 1;
  int host = 0;      ///< the process that listens, for all with greater numbers
  int channels = 2;  ///< connections of each process
  meeting_place at;
  job_token token;
  /// The token is the same for all jobs of this user at the port: no other job may begin there.
  bool is_of_user = false;
  std::uint64_t plan = 0;  ///< equal in processes that run the same program: see fingerprint()
  std::chrono::milliseconds deadline{60'000};
  /// The watch, whose failure ends the hand-shake of processes that watch each other already; null:
  /// in the hand-shake they tell each other that they live, until all have come.
  process_watch const* watch = nullptr;
};

/// Signs of life of processes that have joined, until all have joined and the watch begins.
struct tcp_signs {
  static constexpr std::chrono::milliseconds period{500}, patience{5000};

  /// The time since the last call: see running_time.
  std::chrono::nanoseconds passed() { return time_.look(); }
  /// Whether a sign is to be sent now.
  bool is_due(std::chrono::nanoseconds passed) {
    since_sign_ += passed;
    if (since_sign_ < period) return false;
    since_sign_ = {};
    return true;
  }

 private:
  running_time time_{period};
  std::chrono::nanoseconds since_sign_{};
};

/// The connections of a process after the hand-shake: the host has a connection of each kind to
/// every process with a greater number, by that number; the other processes have theirs to the
/// host.
struct tcp_connections {
  /// calls: data. watch: signs of life, beside any data.
  enum channel : int { calls, watch, channels };
  heap_array<tcp_socket> of[channels];
  std::string address;  ///< of process 0

  explicit tcp_connections(int processes) {
    for (heap_array<tcp_socket>& a : of) a = heap_array<tcp_socket>(processes);
  }
};

/// The head of all bytes that are sent, in the order of bytes of the machine. Every version has the
/// same hand-shake up to the proofs.
///
/// law: nothing after a frame is read before the frame's length is compared with the expected
/// length
struct tcp_frame {
  static constexpr int magic_size = 8, longest_text = 1000;
  static constexpr char right_magic[magic_size + 1] = "pipe/job";
  /// hello: to the host, once for each channel, with a tcp_hello. challenge: the answer to a hello,
  /// with a tcp_challenge. proof: to the host, with a job_proof. accepted: the answer to a proof.
  /// lives: of a process that has joined, while others are missing; on the channel for calls.
  /// begins: all processes have come; on the channel for calls. refused: a text, why this process
  /// or the job cannot begin. call: an operation of all processes.
  enum kinds : std::uint32_t {
    hello = 1,
    challenge,
    proof,
    accepted,
    lives,
    begins,
    refused,
    call
  };

  char magic[magic_size]{};
  std::uint32_t version = PIPE_VERSION;
  kinds kind = hello;
  std::uint32_t length = 0;  ///< bytes that follow
  std::uint32_t number = 0;  ///< refused: 1 if a process is missing or lost. call: which operation

  tcp_frame() = default;
  explicit tcp_frame(kinds what, std::uint32_t bytes = 0, std::uint32_t n = 0)
      : kind(what), length(bytes), number(n) {
    std::memcpy(magic, right_magic, magic_size);
  }
  bool has_magic() const { return std::memcmp(magic, right_magic, magic_size) == 0; }
};
static_assert(sizeof(tcp_frame) == 24);

/// The number of a process, its job, and for how long it waits for the other processes.
struct tcp_hello {
  nonce drawn;
  std::uint64_t plan = 0;
  std::int32_t process = 0, processes = 0, host = 0, channel = 0;
  std::uint32_t milliseconds = 0, unused = 0;
};
static_assert(sizeof(tcp_hello) == 48);

/// The answer to a hello.
struct tcp_challenge {
  nonce drawn;
  job_proof proof;
};
static_assert(sizeof(tcp_challenge) == 48);

/// The proof over the words of a guest, by its host or itself: a whole frame and its hello.
[[gnu::cold]] inline job_proof proof_of(job_token const& token, job_proof::roles role,
                                        tcp_frame const& f, tcp_hello const& h,
                                        nonce const& of_host) {
  char said[sizeof(f) + sizeof(h)];
  std::memcpy(said, &f, sizeof(f));
  std::memcpy(said + sizeof(f), &h, sizeof(h));
  return {token, role, std::span<char const>(said), of_host};
}

/// Sends a frame and its body, which a new connection takes at once. Returns whether all bytes are
/// sent.
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
[[gnu::cold]] inline void send_refusal(tcp_socket const& to, std::string_view text, bool is_loss) {
  text = text.substr(0, tcp_frame::longest_text);
  send_frame(to, tcp_frame(tcp_frame::refused, std::uint32_t(text.size()), is_loss ? 1u : 0u),
             text.data());
}
/// Reads exactly `bytes` bytes, and waits for them.
///
/// returns: some if all have come; none_now at the limit; otherwise how the connection has ended
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
/// A text of another process, in which `?` replaces everything that a terminal might obey: control
/// characters, also of Unicode, and bytes that are no UTF-8.
[[gnu::cold]] inline std::string printable(char const* text, long size) {
  std::string line(text, std::size_t(size));
  for (std::size_t at = 0; at < line.size(); ++at) {
    std::string_view const left = std::string_view(line).substr(at);
    unsigned const first = static_cast<unsigned char>(left[0]);
    std::size_t const bytes = first < 0x80 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
    bool const is_control =
        (first < 32 && first != '\n') || first == 127 ||
        (first == 0xC2 && left.size() > 1 && static_cast<unsigned char>(left[1]) < 0xA0);
    if (is_control || valid_utf8_bytes(left.substr(0, bytes)) < bytes)
      line[at] = '?';
    else
      at += bytes - 1;
  }
  return line;
}

}  // namespace pp::detail
