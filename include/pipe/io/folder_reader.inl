// SPDX-License-Identifier: BSL-1.0
//
// Definitions of io/folder_reader.hpp.

#include <array>
#include <cerrno>

#include <fcntl.h>
#include <sys/stat.h>

namespace pp::detail {

PIPE_DEFINED folder_reader::folder_reader(std::string_view path) {
  char name[4096] = ".";  // the system takes no longer ones
  if (path.size() >= sizeof name) {
    error_ = ENAMETOOLONG;
    return;
  }
  if (!path.empty()) name[path.copy(name, path.size())] = 0;
  do folder_ = ::opendir(name);
  while (folder_ == nullptr && errno == EINTR);
  if (folder_ == nullptr) error_ = errno;
}
PIPE_DEFINED folder_reader::~folder_reader() {
  if (folder_ != nullptr) ::closedir(folder_);
}
PIPE_DEFINED dirent const* folder_reader::next() {
  while (folder_ != nullptr) {
    errno = 0;
    dirent const* const entry = ::readdir(folder_);
    if (entry == nullptr) {
      error_ = errno;
      break;
    }
    std::string_view const name(entry->d_name);
    if (name != "." && name != "..") return entry;
  }
  return nullptr;
}
PIPE_DEFINED bool folder_reader::is_folder(dirent const& entry) const {
  if (entry.d_type != DT_UNKNOWN) return entry.d_type == DT_DIR;
  struct stat about{};
  return ::fstatat(number(), entry.d_name, &about, AT_SYMLINK_NOFOLLOW) == 0 &&
         S_ISDIR(about.st_mode);
}
PIPE_DEFINED bool is_hidden(std::string_view name) {
  constexpr std::array<std::string_view, 7> others{"__MACOSX",
                                                   "Thumbs.db",
                                                   "desktop.ini",
                                                   "@eaDir",
                                                   "lost+found",
                                                   "$RECYCLE.BIN",
                                                   "System Volume Information"};
  for (std::string_view const other : others)
    if (name == other) return true;
  return name.starts_with('.');
}

}  // namespace pp::detail
