// SPDX-License-Identifier: BSL-1.0
//
// The published vectors of SHA-256 and of HMAC-SHA-256, at compile time and at run time.
#include "catch.hpp"

#include <pipe/base/sha256.hpp>

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

using pp::detail::hmac_sha256;
using pp::detail::sha256;

namespace {

constexpr sha256::digest hash_of(std::string_view text) {
  sha256 hash;
  hash.add(std::span<char const>(text));
  return hash.finish();
}
constexpr sha256::digest hash_of(std::string_view key, std::string_view text) {
  hmac_sha256 hash{std::span<char const>(key)};
  hash.add(std::span<char const>(text));
  return hash.finish();
}
/// Whether the first bytes of a hash are these hexadecimal digits.
constexpr bool begins_with(sha256::digest const& hash, std::string_view digits) {
  for (std::size_t i = 0; i < digits.size(); ++i)
    if ("0123456789abcdef"[hash[i / 2] >> (i % 2 == 0 ? 4 : 0) & 15] != digits[i]) return false;
  return true;
}
constexpr bool is(sha256::digest const& hash, std::string_view digits) {
  return digits.size() == 2 * hash.size() && begins_with(hash, digits);
}
std::string repeated(std::size_t count, char c) { return std::string(count, c); }

// NIST: Examples with Intermediate Values, SHA-256.
constexpr std::string_view two_blocks = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
static_assert(is(hash_of("abc"),
                 "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"));
static_assert(is(hash_of(two_blocks),
                 "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"));
static_assert(is(hash_of("what do ya want for nothing?"),
                 "b381e7fec653fc3ab9b178272366b8ac87fed8d31cb25ed1d0e1f3318644c89c"));
// RFC 4231, test case 2.
static_assert(is(hash_of("Jefe", "what do ya want for nothing?"),
                 "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"));

}  // namespace

TEST_CASE("SHA-256 has the published values") {
  CHECK(is(hash_of(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"));
  CHECK(is(hash_of("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"));
  CHECK(is(hash_of("abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmno"
                   "pqklmnopqrlmnopqrsmnopqrstnopqrstu"),
           "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1"));
  CHECK(is(hash_of("\xbd"), "68325720aabd7c82f30f554b313d0570c95accbb7dc4b5aae11204c08ffe732b"));
  CHECK(is(hash_of("\xc9\x8c\x8e\x55"),
           "7abc22c0ae5af26ce93dbb94433a0e0b2e119d014f8e7f65bd56c61ccccd9504"));
  // All lengths around the end of a block, where the padding needs another one.
  CHECK(is(hash_of(repeated(55, '\0')),
           "02779466cdec163811d078815c633f21901413081449002f24aa3e80f0b88ef7"));
  CHECK(is(hash_of(repeated(56, '\0')),
           "d4817aa5497628e7c77e6b606107042bbba3130888c5f47a375e6179be789fbb"));
  CHECK(is(hash_of(repeated(57, '\0')),
           "65a16cb7861335d5ace3c60718b5052e44660726da4cd13bb745381b235a1785"));
  CHECK(is(hash_of(repeated(64, '\0')),
           "f5a5fd42d16a20302798ef6ed309979b43003d2320d9f0e8ea9831a92759fb4b"));
  CHECK(is(hash_of(repeated(1000, '\0')),
           "541b3e9daa09b20bf85fa273e5cbd3e80185aa4ec298e765db87742b70138a53"));
  CHECK(is(hash_of(repeated(1'000'000, 'a')),
           "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"));
}

TEST_CASE("parts of any size make the same hash") {
  std::string const text = repeated(61, 'x') + repeated(70, 'y');
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    sha256 hash;
    hash.add(std::span<char const>(text).first(cut));
    hash.add(std::span<char const>(text).subspan(cut));
    CHECK(hash.finish() == hash_of(text));
  }
}

TEST_CASE("HMAC-SHA-256 has the values of RFC 4231") {
  CHECK(is(hash_of(repeated(20, '\x0b'), "Hi There"),
           "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"));
  CHECK(is(hash_of("Jefe", "what do ya want for nothing?"),
           "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"));
  CHECK(is(hash_of(repeated(20, '\xaa'), repeated(50, '\xdd')),
           "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe"));
  std::string key;
  for (char i = 1; i <= 25; ++i) key += i;
  CHECK(is(hash_of(key, repeated(50, '\xcd')),
           "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b"));
  CHECK(begins_with(hash_of(repeated(20, '\x0c'), "Test With Truncation"),
                    "a3b6167473100ee06e0c796c2955552b"));
  CHECK(is(hash_of(repeated(131, '\xaa'), "Test Using Larger Than Block-Size Key - Hash Key First"),
           "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"));
  CHECK(is(hash_of(repeated(131, '\xaa'),
                   "This is a test using a larger than block-size key and a larger than block-size "
                   "data. The key needs to be hashed before being used by the HMAC algorithm."),
           "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2"));
}
