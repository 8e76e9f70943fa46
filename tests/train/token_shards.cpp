// SPDX-License-Identifier: BSL-1.0
//
// Files of token ids: what a mini-batch holds, in which order, and how wrong files are refused.
#include "catch.hpp"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include <pipe/checkpoint/checkpoint.hpp>
#include <pipe/data/token_shards.hpp>
#include <pipe/io/files_like.hpp>
#include <pipe/pipe.hpp>
#include <pipe/train/batches_ahead.hpp>

#include "folder.hpp"

using namespace pp;

namespace {

/// Integers as little-endian bytes.
template <class Id>
std::string bytes_of(std::vector<Id> const& ids) {
  std::string bytes(ids.size() * sizeof(Id), '\0');
  for (std::size_t i = 0; i < ids.size(); ++i)
    detail::put_little_endian(ids[i], reinterpret_cast<std::byte*>(bytes.data()) + i * sizeof(Id));
  return bytes;
}
std::string header(std::uint32_t magic, std::uint32_t version, std::uint32_t tokens) {
  std::vector<std::uint32_t> words(256);
  words[0] = magic, words[1] = version, words[2] = tokens;
  return bytes_of(words);
}
/// first, first + 1, ...: a token says its place.
template <class Id>
std::vector<Id> counting(int first, int count) {
  std::vector<Id> ids;
  for (int i = 0; i < count; ++i) ids.push_back(Id(first + i));
  return ids;
}

/// A stream of the tokens 0 ... 69'999 in five files of all forms, one of them without tokens.
std::vector<std::string> five_files(temporary_folder const& folder) {
  folder.write("part_3.bin", bytes_of(counting<std::uint16_t>(11'000, 50'000)));
  folder.write("part_1.bin", header(20240520, 1, 3) + bytes_of(counting<std::uint16_t>(0, 3)));
  folder.write("part_0.bin", "");
  folder.write("part_2.bin", bytes_of(counting<std::uint16_t>(3, 10'997)));
  folder.write("part_4.bin",
               header(20240801, 7, 9'000) + bytes_of(counting<std::uint32_t>(61'000, 9'000)));
  folder.write("other.bin", "odd");
  return files::files_like(folder.file("part_*.bin"));
}

struct mini_batch {
  std::vector<int> tokens, labels;
  mini_batch(token_shards const& from, long position, int windows, int context)
      : tokens(std::size_t(windows * context)), labels(tokens.size()) {
    from.read(position, tokens, labels);
  }
};

}  // namespace

TEST_CASE("files of tokens are one stream, whatever their forms") {
  temporary_folder const folder;
  auto const paths = five_files(folder);
  REQUIRE(paths.size() == 5);
  for (int const context : {1, 7, 1000, 9'999, 69'999}) {
    token_shards const data(paths, {.context = context, .vocabulary = 70'000});
    CHECK(data.tokens() == 70'000);
    REQUIRE(data.windows() == 69'999 / context);
    int next = 0;
    for (long position = 0; position < data.windows(); ++position) {
      mini_batch const b(data, position, 1, context);
      bool is_next = true;
      for (std::size_t t = 0; t < b.tokens.size(); ++t, ++next)
        is_next = is_next && b.tokens[t] == next && b.labels[t] == next + 1;
      REQUIRE(is_next);
    }
  }
}

TEST_CASE("every window is read once in an epoch, in mini-batches of any sizes") {
  temporary_folder const folder;
  auto const paths = five_files(folder);
  for (bool const shuffle : {false, true}) {
    token_shards const data(paths,
                            {.context = 100, .vocabulary = 70'000, .shuffle = shuffle, .seed = 7});
    REQUIRE(data.windows() == 699);
    std::vector<int> begins;  // of three epochs
    for (long position = 0; position < 3 * 699;) {
      int const windows = int(std::min(3 * 699 - position, 1 + position % 5));
      mini_batch const b(data, position, windows, 100);
      for (int w = 0; w < windows; ++w) begins.push_back(b.tokens[std::size_t(w) * 100]);
      position += windows;
    }
    std::vector<std::vector<int>> epochs;
    for (auto at = begins.begin(); at != begins.end(); at += 699) epochs.emplace_back(at, at + 699);
    for (auto const& epoch : epochs) {
      std::set<int> const all(epoch.begin(), epoch.end());
      CHECK((all.size() == 699 && *all.begin() == 0 && *all.rbegin() == 69'800));
      CHECK(std::is_sorted(epoch.begin(), epoch.end()) == !shuffle);
    }
    CHECK((epochs[0] == epochs[1]) == !shuffle);
    token_shards const other(paths,
                             {.context = 100, .vocabulary = 70'000, .shuffle = shuffle, .seed = 8});
    CHECK((mini_batch(data, 0, 699, 100).tokens == mini_batch(other, 0, 699, 100).tokens) ==
          !shuffle);
  }
}

TEST_CASE("a random order has every number once, and its neighbours far apart") {
  for (std::uint64_t const n : {1, 2, 3, 4, 5, 16, 17, 1000, 4097}) {
    std::set<std::uint64_t> all;
    for (std::uint64_t i = 0; i < n; ++i) all.insert(detail::element_of_order(i, n, 3, 5));
    CHECK((all.size() == n && *all.rbegin() == n - 1));
  }
  // Mean distance of neighbours in a uniform order: n / 3.
  double sum = 0;
  std::uint64_t const n = 1'000'000'007;
  for (std::uint64_t i = 0; i < 3000; ++i) {
    double const a = double(detail::element_of_order(i, n, 1, 0)),
                 b = double(detail::element_of_order(i + 1, n, 1, 0));
    sum += std::max(a, b) - std::min(a, b);
  }
  CHECK(sum / 3000 / double(n) == Approx(1 / 3.0).epsilon(0.05));
}

namespace {

constexpr int vocabulary = 20, context = 8;
struct Net : Model<Tokens<vocabulary, context>, Embedding<6>, Linear<vocabulary>, CrossEntropy> {};
using Trainer = Pipeline<Net, Stages<2>, MicroBatches<2>, MicroBatchSize<1>, AdamW>;

}  // namespace

TEST_CASE("a run on shards that was stopped goes on with the same bits") {
  temporary_folder const folder;
  std::vector<std::uint16_t> ids;
  for (int i = 0; i < 500; ++i) ids.push_back(std::uint16_t(i * i % 19));
  folder.write("train_0.bin", bytes_of(ids));
  folder.write("train_1.bin", header(20240520, 1, 500) + bytes_of(ids));
  std::string const pattern = folder.file("train_*.bin"), path = folder.file("run");
  auto const train = [&](Trainer& trainer, long position, long steps) {
    // [shards]
    token_shards const data(
        files::files_like(pattern),
        {.context = context, .vocabulary = vocabulary, .shuffle = true, .seed = 1});
    std::vector<int> tokens(Trainer::samples * context), labels(tokens.size());
    while (trainer.steps() < steps) {
      data.read(position, tokens, labels);
      trainer.step({tokens, labels});
      position += Trainer::samples;  // what a checkpoint keeps
    }
    // [/shards]
    return position;
  };
  auto const train_by_thread = [&](Trainer& trainer, long position, long steps) {
    token_shards const data(
        files::files_like(pattern),
        {.context = context, .vocabulary = vocabulary, .shuffle = true, .seed = 1});
    // [ahead]
    batches_ahead<Trainer> ahead(
        [&](owned_batch<Trainer>& b, long place) { data.read(place, b.inputs, b.labels); },
        {.sample_position = position});
    for (auto const& batch : ahead) {
      trainer.step(batch);
      position = ahead.sample_position();  // what a checkpoint keeps
      if (trainer.steps() == steps) break;
    }
    // [/ahead]
    return position;
  };
  Trainer whole({.seed = 1}), first({.seed = 1}), second({.seed = 2});
  train(whole, 0, 100);
  first.save(path, train_by_thread(first, 0, 37));
  train(second, second.load(path).position.number(), 60);
  train_by_thread(second, 60 * Trainer::samples, 100);
  auto const a = whole.parameters(), b = second.parameters();
  for (std::size_t p = 0; p < a.size(); ++p)
    CHECK(std::equal(a[p].values.begin(), a[p].values.end(), b[p].values.begin()));
}

TEST_CASE("files that hold no tokens, or others than were promised, are refused in a sentence") {
  temporary_folder const folder;
  auto const refused = [&](std::string const& bytes, int id_bytes = 2) {
    std::string const path = folder.write("a.bin", bytes);
    std::string const message = sentence<data_error>([&] {
      token_shards const data({path}, {.context = 2, .vocabulary = 10, .id_bytes = id_bytes});
      mini_batch(data, 0, int(data.windows()), 2);
    });
    return message.substr(message.find("a.bin'") == message.npos ? 0 : message.find("a.bin'"));
  };
  auto const ids = counting<std::uint16_t>(0, 9);
  CHECK(refused(bytes_of(ids)) == "no error");
  CHECK(refused(bytes_of(ids) + "x") ==
        "a.bin': expected ids of 2 bytes each, found 19 bytes in all");
  CHECK(refused(bytes_of(ids), 4) == "a.bin': expected ids of 4 bytes each, found 18 bytes in all");
  CHECK(refused(bytes_of(counting<std::uint16_t>(4, 7))) ==
        "a.bin': token 6 is 10, expected an id below 10");
  CHECK(refused(bytes_of(std::vector<std::uint32_t>{1, 2, 0x80000000u}), 4) ==
        "a.bin': token 2 is 2147483648, expected an id below 10");
  CHECK(refused(header(20240520, 1, 9) + bytes_of(ids)) == "no error");
  CHECK(refused(header(20240520, 2, 9) + bytes_of(ids)) ==
        "a.bin' is a file of tokens of version 2, expected 1");
  CHECK(refused(header(20240801, 7, 9) + bytes_of(ids)) ==
        "a.bin': expected 9 tokens after a header of 1024 bytes, found 1042 bytes in all");
  CHECK(refused(header(20240520, 1, 10) + bytes_of(ids)) ==
        "a.bin': expected 10 tokens after a header of 1024 bytes, found 1042 bytes in all");
  CHECK(refused(header(20240520, 1, 9).substr(0, 1000)) ==
        "a.bin': expected 9 tokens after a header of 1024 bytes, found 1000 bytes in all");
  CHECK(refused(header(20240520, 1, 9).substr(0, 4)) ==
        "a.bin' is a file of tokens of version 0, expected 1");
  CHECK(refused("\x01\x34\xD8\x88" + bytes_of(ids)) ==
        "a.bin' is a file of tokens in big-endian order, expected little-endian");
  CHECK(refused(bytes_of(counting<std::uint16_t>(0, 2))) ==
        "token_shards: windows of 2 tokens need at least 3, the files have 2");
  CHECK(refused("") == "token_shards: windows of 2 tokens need at least 3, the files have 0");

  std::string const path = folder.write("a.bin", bytes_of(ids));
  token_shards const data({path}, {.context = 2, .vocabulary = 10});
  std::vector<int> few(3), some(4);
  CHECK(sentence<data_error>([&] { data.read(0, few, few); }) ==
        "token_shards: expected as many labels as tokens, in whole windows of 2, got 3 tokens and "
        "3 labels");
  CHECK(sentence<data_error>([&] { data.read(0, some, few); }) ==
        "token_shards: expected as many labels as tokens, in whole windows of 2, got 4 tokens and "
        "3 labels");
  CHECK(sentence<data_error>([&] { data.read(-1, some, some); }) ==
        "token_shards: position: expected 0 or more, got -1");
  std::filesystem::resize_file(path, 4);
  CHECK(sentence<data_error>([&] { data.read(0, some, some); }) ==
        "'" + path + "' has become shorter since it was opened");

  using settings = token_shards::settings;
  auto const unset = [](settings const& s) {
    return sentence<data_error>([&] { token_shards({}, s); });
  };
  CHECK(unset({.vocabulary = 2}) == "token_shards: context: expected 1 or more, got 0");
  CHECK(unset({.context = 2}) == "token_shards: vocabulary: expected 1 or more, got 0");
  CHECK(unset({.context = 2, .vocabulary = 2, .id_bytes = 3}) ==
        "token_shards: id_bytes: expected 2 or 4, got 3");
  auto const unread = [&](std::string const& of) {
    return sentence<file_error>([&] { token_shards({of}, {.context = 2, .vocabulary = 2}); });
  };
  CHECK(unread(folder.file("none")) ==
        "cannot read '" + folder.file("none") + "': No such file or directory");
  CHECK(unread(folder.file(".")) == "cannot read '" + folder.file(".") + "': it is not a file");
  CHECK(sentence<file_error>([&] { files::files_like(folder.file("train*")); }) ==
        "no file is like '" + folder.file("train*") + "'");
}
