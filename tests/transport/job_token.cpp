// SPDX-License-Identifier: BSL-1.0
//
// The secret of a job: as a variable, as a file of a user, and as a proof; and the processes that
// the system knows of at a port.
#include "catch.hpp"

#include <pipe/transport/process/job_token.hpp>
#include <pipe/transport/process/loopback_job.hpp>

#include "message_of.hpp"

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <sys/stat.h>
#include <unistd.h>

using namespace pp;
using namespace pp::detail;

namespace {

char const* token_of_test = nullptr;
char const* variable(char const* name) {
  return std::string(name) == "PIPE_JOB_TOKEN" ? token_of_test : nullptr;
}
job_token token(char const* text) {
  token_of_test = text;
  return job_token::from(variable);
}

/// An empty folder, removed at the end.
struct folder {
  std::string path;
  folder() {
    char name[] = "/tmp/pipe-test-XXXXXX";
    path = mkdtemp(name);
  }
  folder(folder const&) = delete;
  folder& operator=(folder const&) = delete;
  ~folder() { std::filesystem::remove_all(path); }
  std::string own() const { return path + "/pipe-" + std::to_string(geteuid()); }
  std::string refusal() const {
    return message_of<error>([&] { key_of_user(path); });
  }
};

/// A folder as /proc, of processes with these variables.
struct fake_system : folder {
  void add(int number, int parent, std::vector<std::string> const& variables,
           std::string const& name = "train") const {
    std::string const of = path + "/" + std::to_string(number);
    std::filesystem::create_directory(of);
    std::ofstream block(of + "/environ", std::ios::binary);
    for (std::string const& v : variables) block << v << '\0';
    std::ofstream(of + "/stat") << number << " (" << name << ") S " << parent << " 1 1\n";
  }
  std::string twice(int port = 29500) const { return processes_at_port(port, path).twice(); }
};
std::vector<std::string> of_rank(int rank, std::string const& port = "29500") {
  return {"PATH=/bin", "RANK=" + std::to_string(rank), "WORLD_SIZE=4", "MASTER_PORT=" + port};
}

}  // namespace

TEST_CASE("a token is 16 bytes, and no message shows it") {
  job_token const one = token("000102030405060708090A0b0c0d0e0f");
  for (std::size_t i = 0; i < job_token::size; ++i) CHECK(one.bytes[i] == i);
  CHECK(one == token("000102030405060708090a0B0c0d0e0f"));
  CHECK_FALSE(one == token("000102030405060708090a0b0c0d0e0e"));
  CHECK(one.digits() == "000102030405060708090a0b0c0d0e0f");
  token_of_test = nullptr;
  CHECK_FALSE(job_token::is_given(variable));
  CHECK_FALSE(job_token::random() == job_token::random());
  for (char const* text :
       {"", "0", "000102030405060708090a0b0c0d0e0", "000102030405060708090a0b0c0d0e0g",
        "000102030405060708090a0b0c0d0e0f0"}) {
    std::string const said = message_of<error>([&] { token(text); });
    CHECK(said == "PIPE_JOB_TOKEN has " + std::to_string(std::string(text).size()) +
                      " characters: expected 32 hexadecimal digits, as of `openssl rand -hex 16`");
  }
}

TEST_CASE("a proof is of one token, role, hello and nonce") {
  using roles = job_proof::roles;
  job_token const t = job_token::random();
  nonce const n = nonce::drawn();
  std::string const said = "what a guest has said";
  auto const proof = [](job_token const& of, roles role, std::string const& text, nonce const& m) {
    return job_proof(of, role, std::span<char const>(text), m);
  };
  job_proof const right = proof(t, roles::guest, said, n);
  CHECK(right == proof(t, roles::guest, said, n));
  CHECK_FALSE(right == proof(t, roles::host, said, n));
  CHECK_FALSE(right == proof(job_token::random(), roles::guest, said, n));
  CHECK_FALSE(right == proof(t, roles::guest, said + "!", n));
  CHECK_FALSE(right == proof(t, roles::guest, said, nonce::drawn()));
  for (std::size_t i = 0; i < right.bytes.size(); ++i) {
    job_proof other = right;
    other.bytes[i] ^= 0x80;
    CHECK_FALSE(right == other);
  }
}

TEST_CASE("the processes of a user share a key that no other user can read") {
  folder const f;
  job_token const key = key_of_user(f.path);
  CHECK(key == key_of_user(f.path));
  struct stat s{};
  REQUIRE(stat((f.own() + "/key").c_str(), &s) == 0);
  CHECK((s.st_mode & 0777) == 0600);
  REQUIRE(stat(f.own().c_str(), &s) == 0);
  CHECK((s.st_mode & 0777) == 0700);
  CHECK_FALSE(key == key_of_user(folder().path));
  CHECK(token_at_port(key, 29500) == token_at_port(key, 29500));
  CHECK_FALSE(token_at_port(key, 29500) == token_at_port(key, 29501));
  CHECK_FALSE(token_at_port(key, 29500) == key);
}

TEST_CASE("processes that come to a key at once have the same one") {
  folder const f;
  std::vector<std::string> keys(8);
  std::vector<std::thread> all;
  for (std::string& key : keys)
    all.emplace_back([&key, &f] { key = key_of_user(f.path).digits(); });
  for (std::thread& t : all) t.join();
  CHECK(std::set<std::string>(keys.begin(), keys.end()).size() == 1);
  std::filesystem::directory_iterator const files(f.own());
  CHECK(std::distance(begin(files), end(files)) == 1);
}

TEST_CASE("a key that another user could have put there is not used") {
  auto const said = [](std::string const& what, std::string const& why) {
    return "the secret by which the processes of one user know each other cannot be kept: " + what +
           " " + why + ": set PIPE_JOB_TOKEN, as of `openssl rand -hex 16`, in all processes";
  };
  std::string const no_folder = "is no folder of this user alone",
                    no_file = "is no file of 16 bytes of this user alone";
  {
    folder const f;
    std::filesystem::create_directory(f.own());
    chmod(f.own().c_str(), 0755);
    CHECK(f.refusal() == said(f.own(), no_folder));
  }
  {
    folder const f;
    std::filesystem::create_directory_symlink("/", f.own());
    CHECK(f.refusal() == said(f.own(), no_folder));
  }
  {
    folder const f;
    std::ofstream(f.own()) << "a file";
    CHECK(f.refusal() == said(f.own(), no_folder));
  }
  for (int size : {0, 15, 17}) {
    folder const f;
    key_of_user(f.path);
    std::filesystem::resize_file(f.own() + "/key", std::uintmax_t(size));
    CHECK(f.refusal() == said(f.own() + "/key", no_file));
  }
  {
    folder const f;
    key_of_user(f.path);
    chmod((f.own() + "/key").c_str(), 0644);
    CHECK(f.refusal() == said(f.own() + "/key", no_file));
    std::filesystem::remove(f.own() + "/key");
    mkfifo((f.own() + "/key").c_str(), 0600);  // which would never be opened
    CHECK(f.refusal() == said(f.own() + "/key", no_file));
    std::filesystem::remove(f.own() + "/key");
    std::filesystem::create_symlink("/dev/zero", f.own() + "/key");
    CHECK(f.refusal() == said(f.own() + "/key", std::strerror(ELOOP)));
  }
  CHECK(message_of<error>([] { key_of_user("/nowhere"); }) ==
        said("/nowhere/pipe-" + std::to_string(geteuid()), std::strerror(ENOENT)));
}

TEST_CASE("two processes of one number at a port are seen") {
  fake_system const system;
  for (int rank = 0; rank < 4; ++rank) system.add(100 + rank, 1, of_rank(rank));
  system.add(200, 1, {"PATH=/bin"});
  system.add(201, 1, {});
  system.add(202, 1, of_rank(1, "29501"));
  system.add(203, 1, {"RANK=1", "MASTER_PORT=29500"});                  // half a launch
  system.add(204, 1, {"RANK=0", "WORLD_SIZE=1", "MASTER_PORT=29500"});  // alone
  std::vector<std::string> with_token = of_rank(1);
  with_token.push_back("PIPE_JOB_TOKEN=000102030405060708090a0b0c0d0e0f");
  system.add(205, 1, with_token);
  CHECK(system.twice().empty());
  // A program that a shell or a debugger has started with the same variables; and what it starts.
  system.add(301, 102, of_rank(2), "a (b) c) d");
  system.add(302, 301, of_rank(2));
  system.add(303, 301, of_rank(2));
  CHECK(system.twice().empty());
  system.add(401, 1, of_rank(3));
  CHECK(system.twice() == "process 3 is there twice, as 103 and as 401 of the system's processes");
  CHECK(system.twice(29501).empty());
}

TEST_CASE("a program that was started by srun is seen as well") {
  fake_system const system;
  std::vector<std::string> const one{"SLURM_STEP_ID=0", "SLURM_STEP_NUM_TASKS=2", "SLURM_PROCID=1",
                                     "MASTER_PORT=29500"};
  system.add(11, 1, one);
  CHECK(system.twice().empty());
  system.add(12, 1, one);
  CHECK(system.twice() == "process 1 is there twice, as 11 and as 12 of the system's processes");
}
