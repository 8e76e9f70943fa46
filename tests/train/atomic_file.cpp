// SPDX-License-Identifier: BSL-1.0
//
// A file is there whole or not at all: whichever call of the system fails or is the program's last, its name leads to the old
// contents or to the new.
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <set>
#include <string>

#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include <pipe/train/atomic_file.hpp>

#include "folder.hpp"
#include "system_calls.hpp"

namespace {

using names = std::set<std::string>;

void replace(std::string const& path, std::string const& text) {
  pp::atomic_file file(path);
  file.write(text.substr(0, text.size() / 2));
  file.write(text.substr(text.size() / 2));
  file.commit();
}

constexpr char old_text[] = "what was there", new_text[] = "something else, and longer";

}  // namespace

TEST_CASE("an atomic file gets its name when it is whole") {
  temporary_folder const folder;
  std::string const path = folder.file("a");
  {
    pp::atomic_file file(path);
    file.write("half");
    CHECK(!std::filesystem::exists(path));
    file.write(" and half");
    file.commit();
  }
  CHECK(content(path) == "half and half");
  replace(path, new_text);
  CHECK(content(path) == new_text);
  CHECK(folder.names() == names{"a"});
}

TEST_CASE("an atomic file that is not committed leaves nothing") {
  temporary_folder const folder;
  std::string const path = folder.write("a", old_text);
  {
    pp::atomic_file(path).write("never seen");
  }
  CHECK(content(path) == old_text);
  CHECK(folder.names() == names{"a"});
}

TEST_CASE("two atomic files of one name do not meet, nor does one meet the rest of a killed program") {
  temporary_folder const folder;
  std::string const path = folder.file("a");
  std::string const rest = "a.tmp-" + std::to_string(getpid()) + "-0";
  folder.write(rest, "of a program of the same number");
  pp::atomic_file first(path), second(path);
  first.write("first");
  second.write("second");
  second.commit();
  CHECK(content(path) == "second");
  first.commit();
  CHECK(content(path) == "first");
  CHECK(folder.names() == names{"a", rest});
}

TEST_CASE("a relative path without a folder works") {
  temporary_folder const folder;
  std::filesystem::path const before = std::filesystem::current_path();
  std::filesystem::current_path(folder.file(""));
  replace("a", new_text);
  std::filesystem::current_path(before);
  CHECK(content(folder.file("a")) == new_text);
}

TEST_CASE("whichever call fails, the old contents stay and the sentence names file and reason") {
  for (int const reason : {EIO, ENOSPC}) {
    int calls = 0;
    for (bool happened = true; happened; ++calls) {
      temporary_folder const folder;
      std::string const path = folder.write("a", old_text);
      planned_mishap const plan(mishap::fails, calls, reason);
      std::string const said = sentence<pp::file_error>([&] { replace(path, new_text); });
      happened = plan.happened();
      INFO(calls);
      CHECK(folder.names() == names{"a"});
      if (!happened) {
        CHECK(said == "no error");
      } else if (calls < 4) {  // two writes, a sync, a rename
        CHECK(said == "cannot write '" + path + "': " + std::strerror(reason));
        CHECK(content(path) == old_text);
      } else {  // the sync of the folder: the file is there, but that is all we know
        CHECK(said == "cannot sync the folder of '" + path + "': " + std::strerror(reason));
        CHECK(content(path) == new_text);
      }
    }
    CHECK(calls == 6);
  }
}

TEST_CASE("whichever call is the program's last, the name leads to a whole file") {
  int calls = 0, status = 0;
  do {
    temporary_folder const folder;
    std::string const path = folder.write("a", old_text);
    pid_t const child = fork();
    if (child == 0) {
      planned_mishap const plan(mishap::dies, calls);
      replace(path, new_text);
      _exit(0);
    }
    REQUIRE(waitpid(child, &status, 0) == child);
    REQUIRE(WIFEXITED(status));
    REQUIRE((WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == dead_by_plan));
    CHECK(content(path) == (calls < 4 ? old_text : new_text));
    replace(path, "afterwards");
    CHECK(content(path) == "afterwards");
    ++calls;
  } while (WEXITSTATUS(status) == dead_by_plan);
  CHECK(calls == 6);
}

TEST_CASE("interrupted and short calls go on") {
  for (mishap const what : {mishap::interrupted, mishap::short_count})
    for (int at = 0; at < 3; ++at) {
      temporary_folder const folder;
      std::string const path = folder.write("a", old_text);
      planned_mishap const plan(what, at);
      replace(path, new_text);
      CHECK(plan.happened());
      CHECK(content(path) == new_text);
    }
}

TEST_CASE("a file system that cannot sync folders is no reason to fail") {
  temporary_folder const folder;
  planned_mishap const plan(mishap::fails, 4, EINVAL);
  replace(folder.file("a"), new_text);
  CHECK(plan.happened());
  CHECK(content(folder.file("a")) == new_text);
}

TEST_CASE("a disk that is full in the middle leaves the old contents") {
  temporary_folder const folder;
  std::string const path = folder.write("a", old_text);
  std::string said;
  {
    file_size_limit const limit(4096);
    said = sentence<pp::file_error>([&] { replace(path, std::string(10000, 'x')); });
  }
  CHECK(said == "cannot write '" + path + "': File too large");
  CHECK(content(path) == old_text);
  CHECK(folder.names() == names{"a"});
}

TEST_CASE("what cannot be written is refused before anything is done") {
  temporary_folder const folder;
  auto const said = [](std::string const& path) {
    return sentence<pp::file_error>([&] { pp::atomic_file file(path); });
  };
  CHECK(said(folder.file("none/a")) == "cannot write '" + folder.file("none/a") + "': No such file or directory");
  CHECK(said(folder.file("")) == "cannot write '" + folder.file("") + "': there is something else than a file");
  CHECK(said("/dev/null") == "cannot write '/dev/null': there is something else than a file");
  CHECK(said("") == "cannot write '': there is no name");
  CHECK(folder.names().empty());
}

TEST_CASE("a link is replaced, not what it leads to") {
  temporary_folder const folder;
  folder.write("a", old_text);
  std::filesystem::create_symlink("a", folder.file("link"));
  replace(folder.file("link"), new_text);
  CHECK(content(folder.file("a")) == old_text);
  CHECK(content(folder.file("link")) == new_text);
  CHECK(!std::filesystem::is_symlink(folder.file("link")));
}
