// SPDX-License-Identifier: BSL-1.0
//
// No file is written over that is also read, whatever its names.
#include <filesystem>
#include <string>
#include <vector>

#include <sys/stat.h>

#include "catch.hpp"

#include <pipe/weights/distinct_files.hpp>

#include "folder.hpp"

namespace fs = std::filesystem;
using way = pp::files::file_use::way;

TEST_CASE("one file is one file under all of its names") {
  temporary_folder const folder;
  std::string const a = folder.write("a", "text"), b = folder.write("b", "text");
  fs::create_symlink("a", folder.file("soft"));
  fs::create_hard_link(a, folder.file("hard"));
  fs::create_symlink(".", folder.file("here"));
  fs::create_symlink("not yet", folder.file("ahead"));
  for (char const* const name : {"a", "./a", "soft", "hard", "here/a", "here/here/soft"})
    CHECK(pp::detail::same_file(a, folder.file(name)));
  CHECK(!pp::detail::same_file(a, b));
  CHECK(!pp::detail::same_file(a, folder.file("not yet")));
  for (char const* const name : {"not yet", "./not yet", "here/not yet", "ahead", "here/ahead"})
    CHECK(pp::detail::same_file(folder.file("not yet"), folder.file(name)));
  CHECK(!pp::detail::same_file(folder.file("not yet"), folder.file("nor this")));
  CHECK(!pp::detail::same_file(folder.file("none/a"), folder.file("other/a")));

  fs::path const before = fs::current_path();
  fs::current_path(folder.file(""));
  CHECK(pp::detail::same_file("a", a));
  CHECK(pp::detail::same_file("not yet", folder.file("not yet")));
  CHECK(pp::detail::is_in_folder("a", "."));
  CHECK(pp::detail::is_in_folder("not yet", folder.file("here")));
  fs::current_path(before);
}

TEST_CASE("a file is in a folder by its place or by another name") {
  temporary_folder const folder;
  fs::create_directories(folder.file("books/old"));
  fs::create_directories(folder.file("bookshelf"));
  std::string const inside = folder.write("books/old/a", "text"),
                    outside = folder.write("bookshelf/b", "text");
  std::string const linked = folder.write("c", "text");
  fs::create_hard_link(inside, folder.file("hard"));
  fs::create_symlink("books/old/a", folder.file("soft"));
  fs::create_symlink(linked, folder.file("books/leads out"));
  fs::create_symlink("books/old/not yet", folder.file("ahead"));
  std::string const books = folder.file("books");
  for (std::string const& path :
       {inside, folder.file("hard"), folder.file("soft"), linked, folder.file("ahead"),
        folder.file("books/new"), folder.file("books/old/new"), books + "/../books/x"})
    CHECK(pp::detail::is_in_folder(path, books));
  for (std::string const& path :
       {outside, folder.file("new"), folder.file("bookshelf/new"), books + "/../x", books})
    CHECK(!pp::detail::is_in_folder(path, books));
  CHECK(!pp::detail::is_in_folder(inside, folder.file("c")));
  CHECK(!pp::detail::is_in_folder(inside, folder.file("none")));
}

TEST_CASE("a program is told which of its files would be written over") {
  temporary_folder const folder;
  std::string const a = folder.write("a", "text"), b = folder.file("b");
  fs::create_hard_link(a, folder.file("hard"));
  fs::create_directories(folder.file("texts"));
  std::string const texts = folder.file("texts"), within = folder.file("texts/m");
  auto const said = [](std::vector<pp::files::file_use> const& uses) {
    return sentence<pp::data_error>([&] { pp::files::require_distinct(uses); });
  };
  CHECK(said({{"--data", a, way::read}, {"--load", a, way::read}, {"--save", b, way::written}}) ==
        "no error");
  CHECK(
      said({{"--data", "", way::read}, {"--load", "", way::read}, {"--save", "", way::written}}) ==
      "no error");
  CHECK(said({{"--data", a, way::read}, {"--save", folder.file("hard"), way::written}}) ==
        "--save '" + folder.file("hard") + "' would write over --data '" + a +
            "': they are the same");
  CHECK(said({{"--save", b, way::written}, {"--metrics", b, way::written}}) ==
        "--save '" + b + "' would write over --metrics '" + b + "': they are the same");
  CHECK(said({{"--metrics", within, way::written}, {"--data", texts, way::read}}) ==
        "--metrics '" + within + "' would write into the folder that is read, --data '" + texts +
            "'");
  CHECK(said({{"--data", texts, way::read}, {"--log", texts, way::added_to}}) ==
        "--log '" + texts + "' would write over --data '" + texts + "': they are the same");
  CHECK(said({{"--data", texts, way::read}, {"--log", within, way::added_to}}) ==
        "--log '" + within + "' would write into the folder that is read, --data '" + texts + "'");
  CHECK(said({{"--save", within, way::written},
              {"--log", texts, way::added_to},
              {"--data", a, way::read}}) == "no error");
  CHECK(said({{"--metrics", "/dev/null", way::written}, {"--save", "/dev/null", way::written}}) ==
        "no error");
}
