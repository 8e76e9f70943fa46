// SPDX-License-Identifier: BSL-1.0
//
// Metrics as JSON lines.
#include <cmath>
#include <string>

#include "catch.hpp"

#include <pipe/report/json_lines.hpp>
#include <train/folder.hpp>

TEST_CASE("a line per step, with user-defined names, and null for what is no number") {
  temporary_folder const folder;
  pp::json_lines_file file(folder.file("m.jsonl"));
  file.write({.step = 1,
              .loss = 1.5,
              .learning_rate = 3e-4,
              .gradient_norm = INFINITY,
              .samples_per_second = 20000,
              .seconds = 0.125,
              .bubble = NAN,
              .scalars = {{"a \"b\"\n", 0.1234567891}}});
  CHECK(content(file.path()) ==
        "{\"step\":1,\"loss\":1.5,\"learning_rate\":0.0003,\"gradient_norm\":null,"
        "\"samples_per_second\":20000,\"seconds\":0.125,\"bubble\":null,"
        "\"a \\\"b\\\"\\u000a\":0.123456789}\n");
}

TEST_CASE("lines of a resumed run follow those that it goes on from") {
  temporary_folder const folder;
  std::string const path = folder.file("m.jsonl");
  {
    pp::json_lines_file file(path);
    for (long step = 1; step <= 4; ++step) file.write({.step = step});
  }
  std::string const four = content(path), two = four.substr(0, four.find("{\"step\":3"));
  auto resumed = pp::json_lines_file::resumed(path, 2);
  CHECK(resumed.path() == path);
  CHECK(content(path) == two);
  CHECK(two + content(path + ".dropped") == four);
  resumed.write({.step = 3});
  CHECK(content(path) == four.substr(0, four.find("{\"step\":4")));
  folder.write("other", "{\"time\":1,\"step\":1}\n");
  CHECK(pp::json_lines_file::resumed(folder.file("other"), 2).path() == folder.file("other-2"));
  CHECK(content(folder.file("other")) == "{\"time\":1,\"step\":1}\n");
}
