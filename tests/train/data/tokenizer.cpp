// SPDX-License-Identifier: BSL-1.0
//
// Byte-pair encoding: the ids that the package `tokenizers` gives, vocabularies as it learns them,
// and files that do something else.
#include "catch.hpp"

#include <cstdint>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <pipe/data.hpp>

#include "../folder.hpp"

using namespace pp;

namespace {

std::string const here = std::string(PIPE_TESTS_FOLDER) + "/train/data/";

struct golden_text {
  std::string text;
  std::vector<int> ids;
};

/// The lines of a kind in tokenizer_golden.txt.
std::vector<golden_text> golden(std::string const& kind) {
  std::vector<golden_text> all;
  std::istringstream lines(content(here + "tokenizer_golden.txt"));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name, hex;
    words >> name >> hex;
    if (name != kind) continue;
    golden_text g;
    for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
      g.text += char(std::stoi(hex.substr(i, 2), nullptr, 16));
    for (int id; words >> id;) g.ids.push_back(id);
    all.push_back(g);
  }
  return all;
}

byte_pair_learner learner_of_golden() {
  byte_pair_learner learner;
  for (golden_text const& g : golden("learned")) learner.add(g.text);
  return learner;
}

std::string replaced(std::string text, std::string const& from, std::string const& to) {
  std::size_t const at = text.find(from);
  REQUIRE(at != text.npos);
  return text.replace(at, from.size(), to);
}

}  // namespace

TEST_CASE("ids are those of the package tokenizers, and give back the text") {
  byte_pair_tokenizer const t = read_tokenizer(here + "tokenizer.json");
  auto const texts = golden("text");
  REQUIRE(texts.size() == 20);
  for (golden_text const& g : texts) {
    INFO(g.text);
    CHECK(t.encode(g.text) == g.ids);
    CHECK(t.decode(g.ids) == g.text);
  }
  std::string any;
  for (int i = 0; i < 5000; ++i) any += char(i * i * 7 % 251 + i % 5);
  CHECK(t.decode(t.encode(any)) == any);
  CHECK_THROWS_AS(t.decode(std::vector{t.vocabulary()}), data_error);
}

TEST_CASE("texts are split as SmolLM and LLaMA-3 split them") {
  temporary_folder const folder;
  for (std::string const name : {"digits", "llama3"}) {
    byte_pair_tokenizer const t = read_tokenizer(here + "tokenizer_" + name + ".json");
    CHECK(t.of().split == (name == "digits" ? text_split::digits : text_split::llama3));
    CHECK(t.of().whole_pieces == (name == "llama3"));
    write_tokenizer(t, folder.file("t"));
    byte_pair_tokenizer const again = read_tokenizer(folder.file("t"));
    auto const texts = golden(name);
    REQUIRE(texts.size() == 30);
    for (golden_text const& g : texts) {
      INFO(name << ": " << g.text);
      CHECK(t.encode(g.text) == g.ids);
      CHECK(again.encode(g.text) == g.ids);
      CHECK(t.decode(g.ids) == g.text);
    }
    std::string const good = content(here + "tokenizer_" + name + ".json");
    CHECK_THAT(sentence<data_error>([&] {
                 read_tokenizer(folder.write(
                     "t", replaced(good, "\"pretokenizers\":[", "\"pretokenizers\":[{},")));
               }),
               Catch::Contains("t': expected a pre_tokenizer of type"));
  }
}

TEST_CASE("a vocabulary is learned as the package tokenizers learns it") {
  byte_pair_tokenizer const known = read_tokenizer(here + "tokenizer.json");
  byte_pair_tokenizer const t = learner_of_golden().learned(400, {"<end>", "<2de>", "<2 déjà>"});
  CHECK(t.of().tokens == known.of().tokens);
  CHECK(t.of().merges == known.of().merges);
  CHECK(t.of().special == std::vector{0, 1, 2});
  CHECK(learner_of_golden().learned(256).vocabulary() == 256);
  CHECK_THROWS_AS(learner_of_golden().learned(258, {"a b", "b c", "c d"}), data_error);
}

TEST_CASE("a tokenizer that was written is read as it was") {
  temporary_folder const folder;
  // [tokenizer]
  byte_pair_learner learner;
  for (golden_text const& g : golden("learned")) learner.add(g.text);
  byte_pair_tokenizer const tokenizer = learner.learned(400, {"<end>", "\"\n\\é"});
  write_tokenizer(tokenizer, folder.file("tokenizer.json"));

  byte_pair_tokenizer const again = read_tokenizer(folder.file("tokenizer.json"));
  std::vector<int> const ids = again.encode("the newest fox<end>");
  std::string const text = again.decode(ids);  // the same text
  // [/tokenizer]
  CHECK(again.of().tokens == tokenizer.of().tokens);
  CHECK(again.of().merges == tokenizer.of().merges);
  CHECK(again.of().special == tokenizer.of().special);
  CHECK((text == "the newest fox<end>" && ids.back() == 0));
  for (std::vector<std::string> const& special :  // characters that stand for bytes
       {std::vector<std::string>{"é"}, {"Ġ"}, {" end", "Ġend"}})
    CHECK_THAT(sentence<data_error>([&] {
                 write_tokenizer(learner.learned(300, special), folder.file("other.json"));
               }),
               Catch::Contains("so a reader would take one for the other"));
}

TEST_CASE("GPT-2's pair of files, and files that do something else") {
  temporary_folder const folder;
  std::string vocabulary = "{";
  for (int b = 0; b < 256; ++b)
    vocabulary += detail::json_string(detail::characters_of_bytes(std::string(1, char(b)))) + ": " +
                  std::to_string(b) + ", ";
  vocabulary += R"("bc": 256, "ab": 257, "abc": 258, "aa": 259, "aaa": 260})";
  std::string const merges = "#version: 0.2\nb c\na b\nab c\na a\naa a\n";
  std::string const vocab = folder.write("vocab.json", vocabulary);
  byte_pair_tokenizer const t = read_tokenizer(vocab, folder.write("merges.txt", merges));
  auto const tokens = [&](std::string const& text) {
    std::string all;
    for (int const id : t.encode(text)) all += t.of().tokens[std::size_t(id)] + "|";
    return all;
  };
  CHECK(tokens("abc") == "a|bc|");
  CHECK(tokens("aaaa") == "aa|aa|");
  CHECK(tokens("aaaaa") == "aa|aaa|");
  CHECK(tokens("ababc") == "ab|a|bc|");

  // As Windows, editors and other programs write them.
  byte_pair_tokenizer const spelled = read_tokenizer(
      folder.write("v", "\xEF\xBB\xBF\r\n" + replaced(vocabulary, ", ", "\t,\r\n") + "\r\n\t "),
      folder.write("m", "\xEF\xBB\xBF#version: 0.2\r\nb c\r\na b\r\nab c\r\na a\r\naa a\r\n"));
  CHECK((spelled.of().tokens == t.of().tokens && spelled.of().merges == t.of().merges));

  auto const says = [&](std::string const& v, std::string const& m) {
    return sentence<data_error>(
        [&] { read_tokenizer(folder.write("v", v), folder.write("m", m)); });
  };
  CHECK_THAT(says(vocabulary, "a x y\n"), Catch::Contains("m': the merge 'a x y' is not of two"));
  CHECK_THAT(says(vocabulary, "a zz\n"),
             Catch::Contains("m': the merge of 'a' and 'zz' is not of two tokens of"));
  CHECK_THAT(says(vocabulary, "a y\n"),
             Catch::Contains("m': the merge of 'a' and 'y' makes no token of the vocabulary"));
  CHECK_THAT(says(replaced(vocabulary, "260", "4611686018427387904"), merges),
             Catch::Contains("expected 261 tokens with an id each, from 0 on"));
  CHECK_THAT(says(replaced(vocabulary, "260", "1"), merges), Catch::Contains("an id each"));
  CHECK_THAT(says(replaced(vocabulary, "\"a\": 97, ", ""), merges), Catch::Contains("v': "));

  std::string const good = content(here + "tokenizer.json");
  auto const json = [&](std::string const& from, std::string const& to) {
    return sentence<data_error>(
        [&] { read_tokenizer(folder.write("t", replaced(good, from, to))); });
  };
  CHECK(json("\"version\":", "\"more\": [1.5e3, {\"a\": null}], \"version\":") == "no error");
  CHECK(json("{", "\xEF\xBB\xBF\t{") == "no error");
  CHECK(json("\"version\":", "\"more\": [NaN, -Infinity],\r\n \"version\":") == "no error");
  CHECK_THAT(json("\"normalizer\":null", "\"normalizer\":{\"type\":\"NFC\"}"),
             Catch::Contains("t': a normalizer is not known here, expected null"));
  CHECK_THAT(json("\"add_prefix_space\":false", "\"add_prefix_space\":true"),
             Catch::Contains("expected add_prefix_space to be false"));
  CHECK_THAT(json("\"use_regex\":true", "\"use_regex\":false"),
             Catch::Contains("expected a pre_tokenizer of type 'ByteLevel'"));
  CHECK_THAT(json("\"type\":\"BPE\"", "\"type\":\"Unigram\""), Catch::Contains("found 'Unigram'"));
  CHECK_THAT(json("\"lstrip\":false", "\"lstrip\":true"), Catch::Contains("lstrip to be false"));
  for (std::size_t size = 0; size < good.size(); size += 7)
    CHECK(sentence<data_error>([&] {
            read_tokenizer(folder.write("t", good.substr(0, size)));
          }).find("t': ") != std::string::npos);
}

TEST_CASE("a long piece costs no square of its length", "[long]") {
  byte_pair_tokenizer const t = read_tokenizer(here + "tokenizer.json");
  std::string const long_piece(1'000'000, 'a');
  CHECK(t.encode(long_piece).size() < 500'000);
}

TEST_CASE("the longest special token is found among any number of them") {
  byte_pair_learner learner;
  learner.add("a text");
  std::vector<std::string> special{"<<", "<<<", "<a>", "<abc"};
  for (int i = 0; i < 20'000; ++i) special.push_back("<" + std::to_string(i) + ">");
  byte_pair_tokenizer const t = learner.learned(int(special.size()) + 256, special);
  CHECK(t.encode("<<<<a><7><19999><abc<<a") ==
        std::vector{1, 2, 4 + 7, 4 + 19'999, 3, 0, t.id_of("a")});
  CHECK(t.encode(std::string(300'000, '<')) == std::vector(100'000, 1));
}

TEST_CASE("the merges that are learned are those of the rule, applied word by word") {
  std::uint64_t next = 1;
  auto const random = [&](std::uint64_t below) {
    next = next * 6364136223846793005 + 1442695040888963407;
    return (next >> 33) % below;
  };
  for (int round = 0; round < 60; ++round) {
    std::string text;
    std::uint64_t const letters = 1 + random(4), length = 2 + random(150);
    for (std::uint64_t i = 0; i < length; ++i)
      text += random(8) == 0 && round % 3 > 0 ? ' ' : char('a' + random(letters));
    INFO(text);
    byte_pair_learner learner;
    learner.add(text);
    byte_pair_tokenizer const t = learner.learned(300, {"ab"});  // which a merge makes, too

    std::map<std::string, long> counts;
    for (std::string_view left = text; !left.empty();) {
      std::size_t const size = detail::first_piece(left);
      ++counts[std::string(left.substr(0, size))];
      left.remove_prefix(size);
    }
    std::vector<std::string> tokens(t.of().tokens.begin(), t.of().tokens.begin() + 257);
    std::vector<std::pair<std::vector<int>, long>> words;
    for (auto const& [word, count] : counts) {
      words.push_back({{}, count});
      for (char const c : word) words.back().first.push_back(t.id_of(std::string(1, c)));
    }
    std::vector<std::pair<int, int>> merges;
    while (tokens.size() < 300) {
      std::map<std::pair<int, int>, long> pairs;
      for (auto const& [ids, count] : words)
        for (std::size_t i = 1; i < ids.size(); ++i) pairs[{ids[i - 1], ids[i]}] += count;
      std::pair<int, int> best;
      long most = 1;
      for (auto const& [pair, count] : pairs)
        if (count > most) most = count, best = pair;
      if (most < 2) break;
      std::string const made = tokens[std::size_t(best.first)] + tokens[std::size_t(best.second)];
      std::size_t id = 0;
      while (id < tokens.size() && tokens[id] != made) ++id;
      if (id == tokens.size()) tokens.push_back(made);
      merges.push_back(best);
      for (auto& [ids, count] : words) {
        std::vector<int> merged;
        for (std::size_t i = 0; i < ids.size(); ++i)
          if (i + 1 < ids.size() && std::pair(ids[i], ids[i + 1]) == best)
            merged.push_back(int(id)), ++i;
          else
            merged.push_back(ids[i]);
        ids = merged;
      }
    }
    CHECK(t.of().merges == merges);
    CHECK(t.of().tokens == tokens);
  }
}

TEST_CASE("all merges of a long word together look at few of its places") {
  int ids[256];
  for (int b = 0; b < 256; ++b) ids[b] = b;
  std::uint64_t next = 1;
  for (std::uint64_t const letters : {1u, 2u, 50u}) {
    std::string word;
    for (int i = 0; i < 160'000; ++i) {
      next = next * 6364136223846793005 + 1442695040888963407;
      word += char('0' + (next >> 33) % letters);
    }
    detail::pair_merger words(std::map<std::string, long>{{word, 1}}, ids);
    detail::token_pair best;
    std::uint32_t made = 256;
    std::size_t visits = 0;
    while (made < 1256 && words.find_best(best)) visits += words.merge(best, made++);
    CHECK(made > (letters == 1 ? 270 : 1255));
    // Each merge of two tokens removes one and makes two pairs, beside those of the beginning.
    CHECK(visits < 3 * word.size());
  }
}
