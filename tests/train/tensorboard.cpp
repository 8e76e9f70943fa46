// SPDX-License-Identifier: BSL-1.0
//
// Event files, read by a decoder that shares nothing with the encoder: checksums by division of
// polynomials, messages by the rules of the wire format alone.
#include <bit>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <unistd.h>

#include "catch.hpp"

#include <pipe/metrics/tensorboard.hpp>

#include "folder.hpp"
#include "system_calls.hpp"

namespace {

/// Bytes at the front of `from`, taken off it; a number of so many bytes, the lowest first.
std::string_view take(std::string_view& from, std::size_t bytes) {
  REQUIRE(from.size() >= bytes);
  std::string_view const front = from.substr(0, bytes);
  from.remove_prefix(bytes);
  return front;
}
std::uint64_t take_number(std::string_view& from, std::size_t bytes) {
  std::uint64_t value = 0;
  std::string_view const front = take(from, bytes);
  for (std::size_t i = bytes; i-- > 0;) value = value * 256 + static_cast<unsigned char>(front[i]);
  return value;
}

/// The remainder of the bits, lowest of each byte first, after division by x^32 + 0x1EDC6F41; first
/// and last 32 inverted.
std::uint32_t checksum(std::string_view bytes) {
  std::uint32_t remainder = 0xFFFFFFFF;
  for (char const c : bytes)
    for (int bit = 0; bit < 8; ++bit) {
      bool const out = ((remainder >> 31) ^ (static_cast<unsigned char>(c) >> bit)) & 1;
      remainder = remainder << 1 ^ (out ? 0x1EDC6F41u : 0u);
    }
  std::uint32_t reflected = 0;
  for (int bit = 0; bit < 32; ++bit) reflected |= (remainder >> bit & 1) << (31 - bit);
  return ~reflected;
}
std::uint32_t masked(std::uint32_t sum) { return (sum << 17 | sum >> 15) + 2726488792u; }

std::vector<std::string> records_of(std::string_view file) {
  std::vector<std::string> records;
  while (!file.empty()) {
    std::string_view const length_bytes = file.substr(0, 8);
    std::uint64_t const length = take_number(file, 8);
    REQUIRE(take_number(file, 4) == masked(checksum(length_bytes)));
    std::string_view const data = take(file, length);
    REQUIRE(take_number(file, 4) == masked(checksum(data)));
    records.emplace_back(data);
  }
  return records;
}

/// The fields of a message: a number as its bits, text as it is.
struct field {
  std::uint64_t wire_type;
  std::uint64_t bits;
  std::string text;
};
std::multimap<std::uint64_t, field> fields_of(std::string_view message) {
  auto const varint = [&] {
    std::uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      std::uint64_t const byte = take_number(message, 1);
      value |= (byte & 127) << shift;
      if (byte < 128) return value;
    }
  };
  std::multimap<std::uint64_t, field> fields;
  while (!message.empty()) {
    std::uint64_t const key = varint();
    field f{key & 7, 0, ""};
    if (f.wire_type == 0)
      f.bits = varint();
    else if (f.wire_type == 1)
      f.bits = take_number(message, 8);
    else if (f.wire_type == 5)
      f.bits = take_number(message, 4);
    else {
      REQUIRE(f.wire_type == 2);
      f.text = take(message, varint());
    }
    fields.emplace(key >> 3, f);
  }
  return fields;
}

field only(std::multimap<std::uint64_t, field> const& fields, std::uint64_t number,
           std::uint64_t wire_type) {
  REQUIRE(fields.count(number) == 1);
  REQUIRE(fields.find(number)->second.wire_type == wire_type);
  return fields.find(number)->second;
}

struct event {
  double wall_time = 0;
  long step = 0;
  std::vector<std::pair<std::string, float>> scalars;
};
event event_of(std::string const& record) {
  auto const fields = fields_of(record);
  REQUIRE(fields.size() == 3);
  event e{std::bit_cast<double>(only(fields, 1, 1).bits), long(only(fields, 2, 0).bits), {}};
  for (auto const& [number, value] : fields_of(only(fields, 5, 2).text)) {
    REQUIRE(number == 1);
    auto const parts = fields_of(value.text);
    REQUIRE(parts.size() == 2);
    e.scalars.emplace_back(only(parts, 1, 2).text,
                           std::bit_cast<float>(std::uint32_t(only(parts, 2, 5).bits)));
  }
  return e;
}

double now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace

TEST_CASE("checksums are those of RFC 3720, and of the decoder") {
  std::string up, down;
  for (int i = 0; i < 32; ++i) (up += char(i)), (down += char(31 - i));
  std::string const command(
      "\x01\xC0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x14\0\0\0\0\0\4\0\0\0\0\x14\0\0\0\x18\x28\0\0\0\0\0\0\0"
      "\2"
      "\0\0\0\0\0\0\0",
      48);
  std::pair<std::string, std::uint32_t> const known[] = {{"", 0},
                                                         {std::string(32, '\0'), 0x8A9136AA},
                                                         {std::string(32, '\xFF'), 0x62A8AB43},
                                                         {up, 0x46DD794E},
                                                         {down, 0x113FDB5C},
                                                         {command, 0xD9963A56},
                                                         {"123456789", 0xE3069283}};
  for (auto const& [bytes, sum] : known) {
    CHECK(pp::detail::crc32c(std::as_bytes(std::span(bytes))) == sum);
    CHECK(checksum(bytes) == sum);
    CHECK(pp::detail::masked_crc32c(bytes) == masked(sum));
  }
}

TEST_CASE("an event file holds its version, then an event per step") {
  temporary_folder const folder;
  double const before = now();
  pp::tensorboard_file board(folder.file("runs/1"));
  std::vector<std::string> records = records_of(content(board.path()));
  REQUIRE(records.size() == 1);
  auto const first = fields_of(records[0]);
  REQUIRE(first.size() == 2);
  CHECK(only(first, 3, 2).text == "brain.Event:2");
  CHECK(std::bit_cast<double>(only(first, 1, 1).bits) >= before);

  board.write({.step = 1,
               .loss = 1.5,
               .learning_rate = 3e-4,
               .scalars = {{"valid/loss", -2}, {"\xC3\xA9", 1e300}}});
  CHECK(records_of(content(board.path())).size() == 2);
  board.write({.step = 1L << 40, .loss = std::numeric_limits<double>::quiet_NaN(), .scalars = {}});
  records = records_of(content(board.path()));
  REQUIRE(records.size() == 3);
  event const one = event_of(records[1]), two = event_of(records[2]);
  CHECK(one.step == 1);
  CHECK(two.step == 1L << 40);
  CHECK(one.wall_time >= before);
  CHECK(two.wall_time >= one.wall_time);
  CHECK(two.wall_time <= now());
  CHECK(one.scalars == std::vector<std::pair<std::string, float>>{
                           {"loss", 1.5f},
                           {"learning_rate", 3e-4f},
                           {"gradient_norm", 0.f},
                           {"samples_per_second", 0.f},
                           {"seconds", 0.f},
                           {"bubble", 0.f},
                           {"valid/loss", -2.f},
                           {"\xC3\xA9", std::numeric_limits<float>::infinity()}});
  CHECK(two.scalars.size() == 6);
  CHECK(std::isnan(two.scalars[0].second));
}

TEST_CASE("an event file is named by time and host, and never takes the place of another") {
  temporary_folder const folder;
  std::string const runs = folder.file("runs");
  char host[256] = "";
  REQUIRE(gethostname(host, sizeof host) == 0);
  double const before = now();
  pp::tensorboard_file const one(runs), two(runs), three(runs);
  CHECK(one.path() != two.path());
  CHECK(two.path() != three.path());
  std::string const name = std::filesystem::path(one.path()).filename().string(),
                    start = "events.out.tfevents.";
  REQUIRE(name.starts_with(start));
  CHECK(name.ends_with(std::string(".") + host));
  double const seconds = std::stod(name.substr(start.size()));
  CHECK(seconds >= std::floor(before));
  CHECK(seconds <= now());
  for (pp::tensorboard_file const* const board : {&one, &two, &three})
    CHECK(records_of(content(board->path())).size() == 1);
}

TEST_CASE("the file of a resumed run takes the place of later steps") {
  temporary_folder const folder;
  pp::tensorboard_file board(folder.file("runs"), 7);
  board.write({.step = 8});
  auto const records = records_of(content(board.path()));
  REQUIRE(records.size() == 3);
  auto const start = fields_of(records[1]);
  CHECK(only(start, 2, 0).bits == 8);
  CHECK(only(fields_of(only(start, 7, 2).text), 1, 0).bits == 1);  // SessionLog.START
  CHECK(event_of(records[2]).step == 8);
}

TEST_CASE("an event that found no room leaves a whole file") {
  temporary_folder const folder;
  pp::tensorboard_file board(folder.file("runs"));
  board.write({});
  {
    planned_mishap const plan(mishap::fails, 0, ENOSPC);
    CHECK(sentence<pp::file_error>([&] { board.write({}); }) ==
          "cannot write metrics to '" + board.path() + "': No space left on device");
  }
  CHECK(records_of(content(board.path())).size() == 2);
  board.write({});
  CHECK(records_of(content(board.path())).size() == 3);
}

TEST_CASE("what cannot be an event file is refused in one sentence") {
  temporary_folder const folder;
  std::string const taken = folder.write("taken", "a file");
  CHECK(sentence<pp::file_error>([&] { pp::tensorboard_file board(taken); }) ==
        "cannot make the folder '" + taken + "': Not a directory");
  pp::tensorboard_file board(folder.file("runs"));
  CHECK(sentence<pp::data_error>([&] { board.write({.scalars = {{"a\xFF", 1}}}); }) ==
        "metrics in '" + board.path() + "': the name 'a\\xff' is not UTF-8");
  CHECK(records_of(content(board.path())).size() == 1);
}
