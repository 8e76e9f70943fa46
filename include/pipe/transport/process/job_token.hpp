// SPDX-License-Identifier: BSL-1.0
//
// The secret of a job, and the proof that a process has the secret. Neither side of a connection
// sends the secret: each side draws a number that was never used before, and shows a keyed hash of
// both numbers, which cannot be made without the secret.
#pragma once

#include <array>
#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include <sys/random.h>

#include <pipe/base/error.hpp>
#include <pipe/base/sentence.hpp>
#include <pipe/base/sha256.hpp>
#include <pipe/base/uninterrupted.hpp>
#include <pipe/transport/process/process_launch.hpp>

namespace pp::detail {

/// Fills an object with random bytes of the system, which no other process can know.
///
/// throws: error if the system has none
template <class T>
[[gnu::cold]] void draw_random(T& to) {
  long const drawn =
      uninterrupted([&] { return long(getrandom(&to, sizeof(to), 0)); });  // whole below 256 bytes
  if (drawn != long(sizeof(to))) throw error("the system has no random numbers to give");
}

/// A number that all processes of a job have, and no other process: PIPE_JOB_TOKEN, 32 hexadecimal
/// digits.
struct job_token {
  static constexpr int size = 16;
  std::array<unsigned char, size> bytes{};

  /// Not in constant time: for tokens that this process has made itself.
  bool operator==(job_token const&) const = default;

  /// A token that no other job has.
  [[gnu::cold]] static job_token random() {
    job_token drawn;
    draw_random(drawn.bytes);
    return drawn;
  }
  /// The value of the variable.
  [[gnu::cold]] std::string digits() const {
    std::string text;
    for (unsigned const b : bytes)
      (text += "0123456789abcdef"[b >> 4]) += "0123456789abcdef"[b & 15];
    return text;
  }
  /// Whether the variable is set.
  static bool is_given(environment const& all = {}) { return all("PIPE_JOB_TOKEN") != nullptr; }
  /// needs: is_given()
  /// throws: error, which does not show the value, if the value is no such number
  [[gnu::cold]] static job_token from(environment const& all = {}) {
    job_token found;
    std::string_view const text = all("PIPE_JOB_TOKEN");
    auto const digit = [](char c) {
      return c >= '0' && c <= '9'   ? c - '0'
             : c >= 'a' && c <= 'f' ? c - 'a' + 10
             : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                    : -1;
    };
    bool is_good = text.size() == 2 * size;
    for (std::size_t i = 0; is_good && i < size; ++i) {
      int const high = digit(text[2 * i]), low = digit(text[2 * i + 1]);
      is_good = high >= 0 && low >= 0;
      found.bytes[i] = static_cast<unsigned char>(16 * high + low);
    }
    if (!is_good)
      throw_error<error>({"PIPE_JOB_TOKEN has ", text.size(),
                          " characters: expected 32 hexadecimal digits, as of `openssl rand -hex "
                          "16`"});
    return found;
  }
};

/// A number that a side of a connection draws for this connection, and never again.
struct nonce {
  std::array<unsigned char, 16> bytes{};

  [[gnu::cold]] static nonce drawn() {
    nonce n;
    draw_random(n.bytes);
    return n;
  }
};

/// The proof that a side has the token: a keyed hash of its role, of the words of the guest, its
/// nonce included, and of the host's nonce.
///
/// law: a proof of one side of a connection is no proof of the other side, nor of any other
///      connection
struct job_proof {
  /// The side that connects, and the side that listens.
  enum class roles : unsigned char { guest = 'g', host = 'h' };
  sha256::digest bytes{};

  job_proof() = default;
  /// said: bytes of the guest
  [[gnu::cold]] job_proof(job_token const& token, roles role, std::span<char const> said,
                          nonce const& of_host) {
    hmac_sha256 hash{std::span<unsigned char const>(token.bytes)};
    hash.add(std::span<char const>(std::string_view("pipe job 1 ")));
    unsigned char const name[]{static_cast<unsigned char>(role)};
    hash.add(std::span<unsigned char const>(name));
    hash.add(said);
    hash.add(std::span<unsigned char const>(of_host.bytes));
    bytes = hash.finish();
  }
  /// Compares in a time that does not depend on the bytes: a stranger learns nothing from the time.
  bool operator==(job_proof const& other) const {
    unsigned differ = 0;
    for (std::size_t i = 0; i < bytes.size(); ++i)
      differ |= static_cast<unsigned>(bytes[i] ^ other.bytes[i]);
    return differ == 0;
  }
};

}  // namespace pp::detail
