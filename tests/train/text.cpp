// SPDX-License-Identifier: BSL-1.0
//
// Text as data: what a batch holds, what is held out, and how wrong texts are refused.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include <unistd.h>

#include "catch.hpp"

#include <pipe/data/text.hpp>

#include "system_calls.hpp"

namespace {

namespace fs = std::filesystem;

/// A directory that is gone at the end.
struct temporary {
  fs::path path = fs::temp_directory_path() / ("pipe-text-" + std::to_string(getpid()));
  temporary() { fs::create_directories(path); }
  ~temporary() { fs::remove_all(path); }
  fs::path write(std::string const& name, std::string const& text) const {
    fs::create_directories((path / name).parent_path());
    std::ofstream(path / name, std::ios::binary) << text;
    return path / name;
  }
};

/// Bytes that say where they are: every two in a row occur once in 65536.
std::string counting(int n) {
  std::string s;
  for (int i = 0; i < n; ++i) s += char(i % 2 == 0 ? i / 2 % 256 : i / 512 % 256);
  return s;
}

std::string message(fs::path const& path, int context) {
  try {
    pp::text_data const text(path, context);
  } catch (pp::data_error const& e) {
    return e.what();
  }
  return "no error";
}

struct buffers {
  std::vector<int> tokens, labels;
  explicit buffers(int n) : tokens(std::size_t(n), -9), labels(std::size_t(n), -9) {}
};

}  // namespace

TEST_CASE("training windows are pieces of the text with the next bytes as labels") {
  temporary const folder;
  std::string const bytes = counting(4000);
  pp::text_data const text(folder.write("a.txt", bytes), 16);
  CHECK(text.bytes() == 4000);
  CHECK(text.training_bytes() == 3800);
  CHECK(text.files() == 1);
  buffers b(8 * 16);
  std::set<std::size_t> places;
  for (std::uint64_t step = 0; step < 200; ++step) {
    text.draw(5, step, b.tokens, b.labels);
    for (std::size_t i = 0; i < 8; ++i) {
      std::string window;
      for (std::size_t t = 0; t < 16; ++t) window += char(b.tokens[16 * i + t]);
      window += char(b.labels[16 * i + 15]);
      std::size_t const at = bytes.find(window);
      REQUIRE(at != bytes.npos);
      REQUIRE(at + 17 <= 3800);
      places.insert(at);
      for (std::size_t t = 0; t + 1 < 16; ++t)
        REQUIRE(b.labels[16 * i + t] == b.tokens[16 * i + t + 1]);
    }
  }
  CHECK(places.size() > 1000);
  CHECK(*places.begin() < 40);
  CHECK(*places.rbegin() > 3740);
}

TEST_CASE("a window depends on seed, step and its number only") {
  temporary const folder;
  pp::text_data const text(folder.write("a.txt", counting(4000)), 16);
  buffers a(4 * 16), same(4 * 16), fewer(2 * 16), step(4 * 16), seed(4 * 16);
  text.draw(1, 7, a.tokens, a.labels);
  text.draw(1, 7, same.tokens, same.labels);
  text.draw(1, 7, fewer.tokens, fewer.labels);
  text.draw(1, 8, step.tokens, step.labels);
  text.draw(2, 7, seed.tokens, seed.labels);
  CHECK(a.tokens == same.tokens);
  CHECK(a.labels == same.labels);
  CHECK(std::equal(fewer.tokens.begin(), fewer.tokens.end(), a.tokens.begin()));
  CHECK(a.tokens != step.tokens);
  CHECK(a.tokens != seed.tokens);
}

TEST_CASE("held-out windows cover the rest of the text once, in order") {
  temporary const folder;
  std::string const bytes = counting(2000);
  pp::text_data const text(folder.write("a.txt", bytes), 16);
  REQUIRE(text.held_out_windows() == 7);  // 100 bytes held out, 99 of them can be predicted
  std::string seen;
  long counted = 0;
  for (long first = 0; first < text.held_out_windows(); first += 2) {
    buffers b(2 * 16);
    counted += text.held_out(first, b.tokens, b.labels);
    for (std::size_t t = 0; t < b.labels.size(); ++t) {
      if (b.labels[t] >= 0) seen += char(b.labels[t]);
      REQUIRE(b.tokens[t] >= 0);
    }
  }
  CHECK(counted == 99);
  CHECK(seen == bytes.substr(1901));
}

TEST_CASE("a directory is read in the order of its paths, below it too") {
  temporary const folder;
  folder.write("text/b.txt", std::string(30, 'b'));
  folder.write("text/a/z.txt", std::string(30, 'z'));
  folder.write("text/c.txt", std::string(30, 'c'));
  for (char const* const name : {".git/config", "__MACOSX/a", "a/.DS_Store", "Thumbs.db"})
    folder.write(std::string("text/") + name, "not of the text");
  pp::text_data const text(folder.path / "text", 1);
  CHECK(text.files() == 3);
  CHECK(text.bytes() == 92);  // a zero between two files
  buffers b(92);
  text.held_out(0, b.tokens, b.labels);
  CHECK(b.tokens[0] == 'c');
  std::set<int> seen;
  for (std::uint64_t step = 0; step < 20; ++step) {
    text.draw(1, step, b.tokens, b.labels);
    for (std::size_t i = 0; i < b.tokens.size(); ++i) {
      seen.insert(b.tokens[i]);
      if (b.tokens[i] == 'z') REQUIRE((b.labels[i] == 'z' || b.labels[i] == 0));
      if (b.tokens[i] == 0) REQUIRE((b.labels[i] == 'b' || b.labels[i] == 'c'));
    }
  }
  CHECK(seen == std::set<int>{0, 'b', 'c', 'z'});
}

TEST_CASE("a text that cannot be used is refused in one sentence") {
  temporary const folder;
  CHECK(message(folder.path / "none", 8) == "cannot read the text at '" +
                                                (folder.path / "none").string() +
                                                "': No such file or directory");
  fs::create_symlink("itself", folder.path / "itself");
  CHECK(message(folder.path / "itself", 8) == "cannot read the text at '" +
                                                  (folder.path / "itself").string() +
                                                  "': Too many levels of symbolic links");
  fs::path const empty = folder.write("empty", "");
  CHECK(message(empty, 8) ==
        "the text in '" + empty.string() + "' is empty: expected at least 180 bytes");
  fs::create_directories(folder.path / "nothing");
  CHECK(message(folder.path / "nothing", 8) == "the text in '" +
                                                   (folder.path / "nothing").string() +
                                                   "' is empty: expected at least 180 bytes");
  fs::path const brief = folder.write("brief", std::string(179, 'x'));
  CHECK(message(brief, 8) ==
        "the text in '" + brief.string() +
            "' is too short: windows of 8 bytes need at least 180 bytes, found 179");
  folder.write("brief", std::string(180, 'x'));
  CHECK(message(brief, 8) == "no error");
  for (int const none : {0, -1, std::numeric_limits<int>::min()})
    CHECK(message(brief, none) ==
          "text_data: context: expected 1 byte or more, got " + std::to_string(none));
  CHECK_THAT(message(brief, std::numeric_limits<int>::max()),
             Catch::EndsWith("at least 42949672960 bytes, found 180"));
  CHECK(message("/dev/null", 8) ==
        "cannot read the text at '/dev/null': expected a file or a directory");
}

TEST_CASE("a text that has fewer bytes than its file says is refused with both numbers") {
  fs::path const attribute = "/sys/kernel/mm/transparent_hugepage/enabled";  // claims a page
  std::error_code error;
  std::uintmax_t const claimed = fs::file_size(attribute, error);
  if (error || claimed == 0) {
    WARN("no file here claims more bytes than it has");
    return;
  }
  std::ifstream in(attribute);
  std::string const all{std::istreambuf_iterator<char>(in), {}};
  REQUIRE(all.size() < claimed);
  CHECK(message(attribute, 8) == "cannot read '" + attribute.string() + "': expected " +
                                     std::to_string(claimed) + " bytes, got " +
                                     std::to_string(all.size()));
}

#if !PIPE_TESTS_SANITIZED  // a sanitizer ends the program that asks for so much
TEST_CASE("a text that memory has no room for is named with its bytes") {
  temporary const folder;
  fs::path const file = folder.write("a", "begins here");
  std::error_code refused;
  fs::resize_file(file, std::uintmax_t(1) << 40, refused);
  if (refused) {
    WARN("the file system has no sparse files of a terabyte");
    return;
  }
  resource_limit const limit(RLIMIT_AS, rlim_t(1) << 36);
  CHECK_THROWS_WITH(pp::text_data(file, 8),
                    "cannot read '" + file.string() + "': no memory for its 1099511627776 bytes");
  fs::path const before = folder.write("0", std::string(1000, 'x'));
  CHECK_THROWS_WITH(pp::text_data(folder.path, 8),
                    "cannot read '" + file.string() +
                        "': no memory for its 1099511627776 bytes after 1001 of other files");
}
#endif

TEST_CASE("a batch that is no whole number of windows is refused") {
  temporary const folder;
  pp::text_data const text(folder.write("a.txt", counting(400)), 16);
  buffers b(16);
  std::vector<int> more(24);
  CHECK_THROWS_WITH(
      text.draw(1, 1, b.tokens, more),
      "a batch of text: expected as many labels as tokens, in whole windows of 16, got " +
          std::to_string(b.tokens.size()) + " tokens and 24 labels");
  CHECK_THROWS_AS(text.held_out(0, more, more), pp::data_error);
}

TEST_CASE("held-out windows begin at the first, and beyond the last they are empty") {
  temporary const folder;
  pp::text_data const text(folder.write("a.txt", counting(400)), 16);
  buffers b(16);
  for (long const none : {-1L, -1000000L, std::numeric_limits<long>::min()})
    CHECK_THROWS_WITH(text.held_out(none, b.tokens, b.labels),
                      "held_out: first window: expected 0 or more, got " + std::to_string(none));
  for (long const far : {text.held_out_windows(), 1000000000L, std::numeric_limits<long>::max()}) {
    CHECK(text.held_out(far, b.tokens, b.labels) == 0);
    CHECK(b.labels == std::vector<int>(b.labels.size(), -1));
  }
}
