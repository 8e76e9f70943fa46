// SPDX-License-Identifier: BSL-1.0
//
// Definitions of checkpoint/checkpoint_parts.hpp.

#include <cstddef>
#include <cstdio>
#include <ctime>
#include <utility>

#include <unistd.h>

#include <pipe/base/hash.hpp>
#include <pipe/io/temporary_file.hpp>

namespace pp::detail {

PIPE_DEFINED std::string name_of_part(std::string const& of, part_number part, long saving) {
  char ending[48];
  std::snprintf(ending, sizeof ending, ".%d-of-%d.%08lx", part.number, part.count,
                static_cast<unsigned long>(saving));
  return of + ending;
}
PIPE_DEFINED std::string_view whole_of_part(std::string_view name) {
  auto const has_only = [](std::string_view text, std::string_view characters) {
    return !text.empty() && text.find_first_not_of(characters) == text.npos;
  };
  std::size_t const last = name.rfind('.'),
                    before = last == name.npos ? last : name.substr(0, last).rfind('.');
  if (before == name.npos) return "";
  std::string_view const saving = name.substr(last + 1),
                         number = name.substr(before + 1, last - before - 1);
  std::size_t const of = number.find("-of-");
  bool const is_part = saving.size() == 8 && has_only(saving, "0123456789abcdef") &&
                       of != number.npos && has_only(number.substr(0, of), "0123456789") &&
                       has_only(number.substr(of + 4), "0123456789");
  return is_part ? name.substr(0, before) : "";
}
PIPE_DEFINED void remove_parts(std::string_view path, safetensors_metadata const& kept) noexcept {
  folder_reader folder(folder_of(path));
  while (dirent const* const entry = folder.next()) {
    if (whole_of_part(entry->d_name) != name_in_folder(path)) continue;
    bool is_kept = false;
    for (auto const& [key, name] : kept)
      is_kept = is_kept || (key.starts_with("part-") && name == entry->d_name);
    if (!is_kept) ::unlinkat(folder.number(), entry->d_name, 0);
  }
}
PIPE_DEFINED long new_saving() {
  fnv_hash hash;
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  hash.add(now.tv_sec * 1'000'000'000L + now.tv_nsec);
  hash.add(::getpid());
  return long(hash.value >> 32);
}
PIPE_DEFINED void list_parts(checkpoint_head& head, std::string const& path, int count,
                             long saving) {
  run_numbers parts{parts_name, stored_type::u64, {}};
  for (int i = 1; i <= count; ++i) {
    std::string const name = name_of_part(path, {i, count}, saving);
    checkpoint_reader const part(name);
    parts.bits.push_back(part.bytes());
    parts.bits.push_back(part.checksum());
    head.metadata.set(joined_text({"part-", i}), name_in_folder(name));
  }
  head.numbers.push_back(std::move(parts));
}

}  // namespace pp::detail
