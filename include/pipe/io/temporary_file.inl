// SPDX-License-Identifier: BSL-1.0
//
// Definitions of io/temporary_file.hpp.

#include <cerrno>
#include <ctime>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace pp::detail {

PIPE_DEFINED std::string_view folder_of(std::string_view path) {
  return path.substr(0, path.rfind('/') + 1);
}
PIPE_DEFINED std::string_view name_in_folder(std::string_view path) {
  return path.substr(folder_of(path).size());
}
PIPE_DEFINED temporary_names::temporary_names(std::string_view path)
    : folder_size_(folder_of(path).size()) {
  // File systems allow 255 bytes, some only 143. The cut is between UTF-8 characters, and a hash
  // keeps long names distinct.
  std::string_view const name = path.substr(folder_size_);
  std::size_t end = name.size();
  if (end > 90)
    for (end = 70; end > 0 && (static_cast<unsigned char>(name[end]) & 0xC0) == 0x80;) --end;
  bool const is_cut = end < name.size();
  start_ = joined_text({path.substr(0, folder_size_ + end), is_cut ? "~" : "",
                        is_cut ? hexadecimal(hash_of(name)).digits : "", ".tmp-"});
  char host[256] = "";
  if (::gethostname(host, sizeof host - 1) != 0) host[0] = 0;
  std::memcpy(host_, hexadecimal(hash_of(host)).digits + 8, sizeof host_);
}
PIPE_DEFINED std::string temporary_names::path(int number) const {
  return joined_text({start_.view(), host(), "-", ::getpid(), "-", number});
}
PIPE_DEFINED bool lock_temporary(file_descriptor const& file) {
  if (!file.lock()) return errno != EWOULDBLOCK;
  struct stat about{};
  return ::fstat(file.number(), &about) == 0 && about.st_nlink > 0;
}
PIPE_DEFINED void remove_stale_files(temporary_names const& names) noexcept {
  auto const is_ours = [&](std::string_view name) {  // HOST-PROCESS-NUMBER after the stem
    if (!name.starts_with(names.stem())) return false;
    name.remove_prefix(names.stem().size());
    if (name.size() < 12 || name.substr(0, 8).find_first_not_of("0123456789abcdef") != name.npos)
      return false;
    std::size_t const dash = name.find('-', 9);
    return name[8] == '-' && dash != name.npos && dash > 9 && dash + 1 < name.size() &&
           name.substr(9, dash - 9).find_first_not_of("0123456789") == name.npos &&
           name.substr(dash + 1).find_first_not_of("0123456789") == name.npos;
  };
  folder_reader folder(names.folder());
  while (dirent const* const entry = folder.next()) {
    if (!is_ours(entry->d_name)) continue;
    // A symbolic link is not followed, and opening a pipe of such a name does not block.
    int const flags = O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
    // Locks of network file systems need write access.
    auto const open_for = [&](int way) {
      return uninterrupted([&] { return ::openat(folder.number(), entry->d_name, way | flags); });
    };
    int number = open_for(O_RDWR);
    if (number < 0) number = open_for(O_RDONLY);
    // Once the lock is held, the name must still refer to the file that was opened: another program
    // may have removed the opened file and created a new file of the same name.
    struct stat open{}, named{};
    if (number >= 0 && ::fstat(number, &open) == 0 && S_ISREG(open.st_mode) &&
        uninterrupted([&] { return ::flock(number, LOCK_EX | LOCK_NB); }) == 0 &&
        ::fstatat(folder.number(), entry->d_name, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
        open.st_dev == named.st_dev && open.st_ino == named.st_ino) {
      bool const is_from_here =
          std::string_view(entry->d_name).substr(names.stem().size(), 8) == names.host();
      constexpr std::time_t day = 24 * 60 * 60;
      if (is_from_here || std::time(nullptr) - open.st_mtime > day)
        ::unlinkat(folder.number(), entry->d_name, 0);
    }
    if (number >= 0) ::close(number);
  }
}

}  // namespace pp::detail
