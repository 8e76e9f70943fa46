// SPDX-License-Identifier: BSL-1.0
//
// A job on one machine to which no launcher has given a token. Its processes belong to one user,
// and have a secret that no other user can read: a file of that user. At most one job of a user may
// begin at a port: if the system knows of two processes with the same number at the port, either
// could belong to the job.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <pipe/base/error.hpp>
#include <pipe/base/sentence.hpp>
#include <pipe/base/sha256.hpp>
#include <pipe/io/file_descriptor.hpp>
#include <pipe/transport/process/job_token.hpp>
#include <pipe/transport/process/process_launch.hpp>

namespace pp::detail {

/// The secret of this user on this machine: 16 bytes in /tmp/pipe-USER/key, which the first process
/// draws. Folder and file are this user's alone, or are not used.
///
/// throws: error, which says that PIPE_JOB_TOKEN can be set instead
[[gnu::cold]] inline job_token key_of_user(std::string const& parent = "/tmp") {
  std::string const folder = parent + "/pipe-" + std::to_string(geteuid()), path = folder + "/key";
  auto const refuse = [&](std::string const& what, char const* why) {
    throw_error<error>(
        {"the secret by which the processes of one user know each other cannot be "
         "kept: ",
         std::string_view(what), " ", why,
         ": set PIPE_JOB_TOKEN, as of `openssl rand -hex 16`, in all processes"});
  };
  auto const is_own = [](struct stat const& s, mode_t kind) {
    return (s.st_mode & S_IFMT) == kind && s.st_uid == geteuid() && (s.st_mode & 077) == 0;
  };
  struct stat found{};
  if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) refuse(folder, std::strerror(errno));
  if (lstat(folder.c_str(), &found) != 0 || !is_own(found, S_IFDIR))
    refuse(folder, "is no folder of this user alone");
  job_token key;
  std::span<std::byte> const bytes = std::as_writable_bytes(std::span(key.bytes));
  for (int tries = 0; tries < 100; ++tries) {
    file_descriptor const file(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
    if (file.is_open()) {
      if (fstat(file.number(), &found) != 0 || !is_own(found, S_IFREG) ||
          found.st_size != job_token::size || file.read(0, bytes) != job_token::size)
        refuse(path, "is no file of 16 bytes of this user alone");
      return key;
    }
    if (errno != ENOENT) refuse(path, std::strerror(errno));
    // The file is complete before it has its name, which the first of several processes gives it.
    std::string const draft = path + "-" + job_token::random().digits();
    key = job_token::random();
    {
      file_descriptor const fresh(draft, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
      if (!fresh.is_open() || !fresh.write(bytes)) {
        int const reason = errno;
        unlink(draft.c_str());
        refuse(draft, std::strerror(reason));
      }
    }
    int const failed = link(draft.c_str(), path.c_str()) != 0 ? errno : 0;
    unlink(draft.c_str());
    if (failed != 0 && failed != EEXIST) refuse(path, std::strerror(failed));
  }
  refuse(path, "is removed again and again");
  return key;
}

/// The token of the user's job at a port of loopback: the token of one port opens no other port.
[[gnu::cold]] inline job_token token_at_port(job_token const& key, int port) {
  hmac_sha256 hash{std::span<unsigned char const>(key.bytes)};
  std::string const name = "pipe port " + std::to_string(port);
  hash.add(std::span<char const>(name));
  sha256::digest const all = hash.finish();
  job_token token;
  std::memcpy(token.bytes.data(), all.data(), token.bytes.size());
  return token;
}

/// The processes of this user, as the system lists them in a folder, that were started with this
/// MASTER_PORT and no PIPE_JOB_TOKEN. Processes that have not connected to the port are included.
///
/// note: variables that a process has set itself after its start are not seen
class processes_at_port {
 public:
  [[gnu::cold]] explicit processes_at_port(int port, std::string const& folder = "/proc") {
    DIR* const all = opendir(folder.c_str());
    if (all == nullptr) return;
    while (dirent const* const entry = readdir(all)) {
      char* end = nullptr;
      long const number = std::strtol(entry->d_name, &end, 10);
      if (number > 0 && *end == 0) look(folder + "/" + entry->d_name, number, port);
    }
    closedir(all);
  }

  /// "process 1 is there twice, as 4711 and as 4712": two processes of the same number, of which
  /// neither has started the other, as a debugger or a shell starts a program. Empty: there are
  /// none.
  [[gnu::cold]] std::string twice() const {
    for (one const& a : found_)
      for (one const& b : found_)
        if (a.number < b.number && a.rank == b.rank && is_first(a) && is_first(b))
          return sentence({"process ", a.rank, " is there twice, as ", a.number, " and as ",
                           b.number, " of the system's processes"})
              .begin();
    return {};
  }

 private:
  struct one {
    long number, parent;
    int rank;
  };

  /// Whether no process of the same rank has started this process.
  bool is_first(one const& a) const {
    for (one const& b : found_)
      if (b.number == a.parent && b.rank == a.rank) return false;
    return true;
  }
  /// Notes a process of this user: only its user can read the variables with which a program was
  /// started. A container with a network of its own has other ports.
  [[gnu::cold]] void look(std::string const& folder, long number, int port) {
    struct stat s{}, own{}, network{};
    if (stat(folder.c_str(), &s) != 0 || s.st_uid != geteuid()) return;
    if (stat("/proc/self/ns/net", &own) == 0 && stat((folder + "/ns/net").c_str(), &network) == 0 &&
        own.st_ino != network.st_ino)
      return;
    std::string const block = content(folder + "/environ");
    environment const all{std::string_view(block)};
    if (block.empty() || job_token::is_given(all)) return;
    char const* const given = all("MASTER_PORT");
    if (given == nullptr || std::atol(given) != port) return;
    try {
      process_launch const by = process_launch::from(all);
      if (by.processes > 1) found_.push_back({number, parent_of(folder), by.process});
    } catch (error const&) {
      return;  // that process throws the same error itself
    }
  }
  /// All bytes of a file whose size the system does not tell; at most 4 MiB.
  [[gnu::cold]] static std::string content(std::string const& path) {
    std::string text;
    file_descriptor const file(path, O_RDONLY);
    while (file.is_open() && text.size() < std::size_t(1) << 22) {
      char bytes[4096];
      auto const count = file.read(text.size(), std::as_writable_bytes(std::span(bytes)));
      if (count <= 0) break;
      text.append(bytes, std::size_t(count));
    }
    return text;
  }
  /// "4711 (name) S 4710 ...": a name may have any character.
  [[gnu::cold]] static long parent_of(std::string const& folder) {
    std::string const text = content(folder + "/stat");
    std::size_t const end = text.rfind(") ");
    return end == text.npos || text.size() < end + 4 ? 0 : std::atol(text.c_str() + end + 4);
  }

  std::vector<one> found_;
};

}  // namespace pp::detail
