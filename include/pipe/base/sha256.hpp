// SPDX-License-Identifier: BSL-1.0
//
// SHA-256 and HMAC-SHA-256, at compile time, too. Of a secret key, HMAC proves that who made it
// has the key, and does not show it. No branch and no address depends on the bytes, so the time
// that a hash takes depends on their number alone. Not for large data: it mixes a block in about a
// microsecond.
#pragma once

#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>

namespace pp::detail {

/// The bytes of which a hash is made: char, unsigned char or std::byte.
template <class Byte>
concept hashed_byte =
    std::same_as<Byte, char> || std::same_as<Byte, unsigned char> || std::same_as<Byte, std::byte>;

/// The hash of all bytes that are added, in parts of any size.
///
/// needs: fewer than 2^61 bytes
/// source: NIST, FIPS 180-4, Secure Hash Standard, 2015, sections 5 and 6.2
class sha256 {
 public:
  static constexpr std::size_t block = 64;  ///< bytes that are mixed at a time
  using digest = std::array<unsigned char, 32>;

  template <hashed_byte Byte>
  constexpr void add(std::span<Byte const> bytes) {
    for (Byte const b : bytes) {
      buffer_[size_++ % block] = static_cast<unsigned char>(b);
      if (size_ % block == 0) mix();
    }
  }
  /// The hash, after which nothing is added. A bit, zeros and the number of bits fill the last
  /// block, or another one.
  constexpr digest finish() {
    std::uint64_t const bits = 8 * size_;
    std::size_t const used = std::size_t(size_ % block), zeros = (2 * block - 9 - used) % block;
    std::array<unsigned char, block + 8> end{0x80};
    for (std::size_t i = 0; i < 8; ++i)
      end[1 + zeros + i] = static_cast<unsigned char>(bits >> (56 - 8 * i));
    add(std::span<unsigned char const>(end).first(1 + zeros + 8));
    digest all{};
    for (std::size_t i = 0; i < all.size(); ++i)
      all[i] = static_cast<unsigned char>(state_[i / 4] >> (24 - 8 * (i % 4)));
    return all;
  }

 private:
  using word = std::uint32_t;
  static constexpr std::array<word, 64> constants{
      0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4,
      0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe,
      0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f,
      0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7,
      0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc,
      0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
      0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116,
      0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
      0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7,
      0xc67178f2};

  /// Mixes a whole block into the state, in 64 rounds.
  constexpr void mix() {
    std::array<word, 64> w{};
    for (std::size_t i = 0; i < 16; ++i)
      for (std::size_t b = 0; b < 4; ++b) w[i] = w[i] << 8 | buffer_[4 * i + b];
    for (std::size_t i = 16; i < 64; ++i) {
      word const x = w[i - 15], y = w[i - 2];
      w[i] = w[i - 16] + (std::rotr(x, 7) ^ std::rotr(x, 18) ^ x >> 3) + w[i - 7] +
             (std::rotr(y, 17) ^ std::rotr(y, 19) ^ y >> 10);
    }
    auto [a, b, c, d, e, f, g, h] = state_;
    for (std::size_t i = 0; i < 64; ++i) {
      word const one = h + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) +
                       ((e & f) ^ (~e & g)) + constants[i] + w[i];
      word const two =
          (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
      h = g, g = f, f = e, e = d + one, d = c, c = b, b = a, a = one + two;
    }
    std::array<word, 8> const now{a, b, c, d, e, f, g, h};
    for (std::size_t i = 0; i < 8; ++i) state_[i] += now[i];
  }

  std::array<word, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                             0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<unsigned char, block> buffer_{};
  std::uint64_t size_ = 0;
};

/// The keyed hash of all bytes that are added: the hash of the key and of a hash of the key and the
/// bytes, of which one alone could be continued by who does not have the key.
///
/// note:   a key of more than a block is its hash
/// source: Krawczyk, Bellare and Canetti, RFC 2104, HMAC, 1997
class hmac_sha256 {
 public:
  template <hashed_byte Byte>
  constexpr explicit hmac_sha256(std::span<Byte const> key) {
    std::array<unsigned char, sha256::block> pad{};
    if (key.size() > sha256::block) {
      sha256 shortened;
      shortened.add(key);
      sha256::digest const hash = shortened.finish();
      for (std::size_t i = 0; i < hash.size(); ++i) pad[i] = hash[i];
    } else {
      for (std::size_t i = 0; i < key.size(); ++i) pad[i] = static_cast<unsigned char>(key[i]);
    }
    for (unsigned char& b : pad) b ^= 0x36;
    inner_.add(std::span<unsigned char const>(pad));
    for (unsigned char& b : pad) b ^= 0x36 ^ 0x5c;
    outer_.add(std::span<unsigned char const>(pad));
  }
  template <hashed_byte Byte>
  constexpr void add(std::span<Byte const> bytes) {
    inner_.add(bytes);
  }
  /// The hash, after which nothing is added.
  constexpr sha256::digest finish() {
    sha256::digest const inner = inner_.finish();
    outer_.add(std::span<unsigned char const>(inner));
    return outer_.finish();
  }

 private:
  sha256 inner_, outer_;
};

}  // namespace pp::detail
