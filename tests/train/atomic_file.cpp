// SPDX-License-Identifier: BSL-1.0
//
// A file is there whole or not at all: whichever call of the system fails or is the program's last,
// its name leads to the old contents or to the new.
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <set>
#include <string>

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "catch.hpp"

#include <pipe/base/utf8.hpp>
#include <pipe/io/atomic_file.hpp>

#include "folder.hpp"
#include "system_calls.hpp"

namespace {

using names = std::set<std::string>;

void replace(std::string const& path, std::string const& text) {
  pp::files::atomic_file file(path);
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
    pp::files::atomic_file file(path);
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
    pp::files::atomic_file(path).write("never seen");
  }
  CHECK(content(path) == old_text);
  CHECK(folder.names() == names{"a"});
}

TEST_CASE("two atomic files of one name do not meet") {
  temporary_folder const folder;
  std::string const path = folder.file("a");
  pp::files::atomic_file first(path), second(path);
  CHECK(folder.names().size() == 2);
  first.write("first");
  second.write("second");
  second.commit();
  CHECK(content(path) == "second");
  first.commit();
  CHECK(content(path) == "first");
  CHECK(folder.names() == names{"a"});
}

TEST_CASE("what killed programs left is removed by the next one, and nothing else is") {
  temporary_folder const folder;
  std::string const path = folder.file("a");
  pp::detail::temporary_names const mine(path);
  std::string const own_host(mine.host());
  auto const name = [&](std::string const& host, std::string const& rest) {
    return "a.tmp-" + host + rest;
  };
  names const stay{"a.tmp",
                   "a.tmp-1-0",
                   name(own_host, ""),
                   name(own_host, "-1-"),
                   name(own_host, "-1-0.old"),
                   name("0123456G", "-1-0"),
                   "b.tmp-" + own_host + "-1-0",
                   name(own_host, "-7-0")};
  names all = stay;
  for (std::string const& n : stay) folder.write(n, "of somebody");
  // A lock is held by an open file: of this machine's, or of another's.
  pp::detail::file_descriptor const held(folder.file(name(own_host, "-7-0")), O_RDWR);
  REQUIRE(pp::detail::lock_temporary(held));
  folder.write(name(own_host, "-1-0"), "of a program that is gone");
  folder.write(name(own_host, "-" + std::to_string(getpid()) + "-0"), "of one that had our number");
  replace(path, new_text);
  all.insert("a");
  CHECK(folder.names() == all);

  // Of other machines locks may not be seen: time decides.
  std::string const other = own_host == "01234567" ? "76543210" : "01234567";
  folder.write(name(other, "-1-0"), "may be at work");
  folder.write(name(other, "-2-0"), "not for a day");
  std::filesystem::last_write_time(
      folder.file(name(other, "-2-0")),
      std::filesystem::file_time_type::clock::now() - std::chrono::hours(25));
  std::filesystem::create_symlink("b", folder.file(name(own_host, "-3-0")));
  std::filesystem::create_directory(folder.file(name(own_host, "-4-0")));
  replace(path, new_text);
  all.insert({name(other, "-1-0"), name(own_host, "-3-0"), name(own_host, "-4-0")});
  CHECK(folder.names() == all);
}

TEST_CASE("programs that write one file at the same time do not remove each other's") {
  temporary_folder const folder;
  std::string const path = folder.file("a");
  constexpr int programs = 4, times = 200;
  for (int p = 0; p < programs; ++p)
    if (fork() == 0) {
      int failures = 0;
      for (int i = 0; i < times; ++i)
        failures += sentence<pp::file_error>([&] { replace(path, new_text); }) != "no error";
      _exit(failures > 0);
    }
  int failures = 0, status = 0;
  while (wait(&status) > 0) failures += status != 0;
  CHECK(failures == 0);
  CHECK(content(path) == new_text);
  CHECK(folder.names() == names{"a"});
}

TEST_CASE("a replaced file keeps its mode, and its owner where that is allowed") {
  temporary_folder const folder;
  std::string const path = folder.write("a", old_text);
  for (mode_t const mode : {0600u, 0640u, 0666u, 0400u}) {
    REQUIRE(chmod(path.c_str(), mode) == 0);
    bool const is_root = geteuid() == 0;
    if (is_root) REQUIRE(chown(path.c_str(), 12345, 54321) == 0);
    replace(path, new_text);
    struct stat now{};
    REQUIRE(stat(path.c_str(), &now) == 0);
    CHECK((now.st_mode & 07777) == mode);
    if (is_root) CHECK((now.st_uid == 12345 && now.st_gid == 54321));
    CHECK(content(path) == new_text);
  }
  mode_t const mask = umask(027);
  replace(folder.file("b"), new_text);
  umask(mask);
  struct stat fresh{};
  REQUIRE(stat(folder.file("b").c_str(), &fresh) == 0);
  CHECK((fresh.st_mode & 07777) == 0640);
}

TEST_CASE("the temporary file of a private file is never readable by others") {
  temporary_folder const folder;
  std::string const path = folder.write("a", old_text);
  REQUIRE(chmod(path.c_str(), 0600) == 0);
  pp::files::atomic_file const file(path);
  for (std::string const& name : folder.names()) {
    struct stat about{};
    REQUIRE(stat(folder.file(name).c_str(), &about) == 0);
    CHECK((about.st_mode & 0777) == 0600);
  }
}

TEST_CASE("every name that a file may have can be written") {
  temporary_folder const folder;
  std::string accents;
  while (accents.size() < 254) accents += "\xC3\xA9";  // é
  for (std::string const& name :
       {std::string(255, 'x'), std::string(91, 'x'), std::string(90, 'x'), accents}) {
    std::string const path = folder.file(name);
    replace(path, new_text);
    CHECK(content(path) == new_text);
    CHECK(folder.names() == names{name});
    pp::detail::temporary_names const temporary(path);
    CHECK(temporary.path(999).size() - temporary.folder().size() <= 143);
    CHECK(pp::detail::valid_utf8_bytes(temporary.stem()) == temporary.stem().size());
    CHECK(temporary.stem() != pp::detail::temporary_names(folder.file("y" + name)).stem());
    folder.write(temporary.path(0).substr(temporary.folder().size()), "of a program that is gone");
    replace(path, "again");
    CHECK(folder.names() == names{name});
    std::filesystem::remove(path);
  }
  CHECK(sentence<pp::file_error>([&] {
          pp::files::atomic_file file(folder.file(std::string(256, 'x')));
        }).ends_with("': File name too long"));
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
    CHECK(folder.names() == names{"a"});
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
    return sentence<pp::file_error>([&] { pp::files::atomic_file file(path); });
  };
  CHECK(said(folder.file("none/a")) ==
        "cannot write '" + folder.file("none/a") + "': No such file or directory");
  CHECK(said(folder.file("")) ==
        "cannot write '" + folder.file("") + "': it exists and is not a regular file");
  CHECK(said("/dev/null") == "cannot write '/dev/null': it exists and is not a regular file");
  CHECK(said("") == "cannot write '': the file name is empty");
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
