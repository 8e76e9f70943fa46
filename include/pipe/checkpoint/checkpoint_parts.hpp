// SPDX-License-Identifier: BSL-1.0
//
// Checkpoints of several files: the names of the parts that processes write, and the file that
// makes them one checkpoint.
//
//     step-12.safetensors                      the run's numbers, and the list of parts
//     step-12.safetensors.2-of-4.5f3a01c7      states that one process has; pieces of states
//
// Each is a file as in checkpoint_file.hpp. The parts of each saving have new names, so that they
// replace no earlier part; the first file is written when all parts are on disk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <string>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

#include <pipe/base/hash.hpp>
#include <pipe/base/joined_text.hpp>
#include <pipe/checkpoint/checkpoint_file.hpp>
#include <pipe/checkpoint/run_numbers.hpp>
#include <pipe/io/folder_reader.hpp>
#include <pipe/io/row_list.hpp>
#include <pipe/io/temporary_file.hpp>

namespace pp {

/// The files of a checkpoint of several processes.
enum class checkpoint_files : unsigned char {
  one,        ///< one file, which one process writes
  by_process  ///< beside that file a part by each process that has states
};

namespace detail {

/// The tensor of the first file that has the size and the checksum of each part, and the entries of
/// the metadata with their names: "part-1", ... In a part the metadata has "part": "1 of 4".
inline constexpr char parts_name[] = "run/parts", part_key[] = "part";
/// A tensor of some consecutive numbers of a state, in the order of memory: piece/BEGIN/NAME.
inline constexpr char piece_prefix[] = "piece/";

/// Part `number` of `count`, counted from 1; 0: none.
struct part_number {
  int number = 0, count = 1;
  std::string text() const { return joined_text({number, " of ", count}); }
};

/// The name of a part of the checkpoint `of`, a name or a path.
///
/// saving: a number of 32 bits, a new one for each saving
[[gnu::cold]] inline std::string name_of_part(std::string const& of, part_number part,
                                              long saving) {
  char ending[48];
  std::snprintf(ending, sizeof ending, ".%d-of-%d.%08lx", part.number, part.count,
                static_cast<unsigned long>(saving));
  return of + ending;
}
/// The name of the checkpoint to which a part of this name belongs; "" for a name of no part.
[[gnu::cold]] inline std::string_view whole_of_part(std::string_view name) {
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
/// Removes the parts of a checkpoint, of all savings, that are in the checkpoint's folder, except
/// those whose names are in `kept`. Parts that cannot be removed only take space.
[[gnu::cold]] inline void remove_parts(std::string_view path,
                                       safetensors_metadata const& kept = {}) noexcept {
  folder_reader folder(folder_of(path));
  while (dirent const* const entry = folder.next()) {
    if (whole_of_part(entry->d_name) != name_in_folder(path)) continue;
    bool is_kept = false;
    for (auto const& [key, name] : kept)
      is_kept = is_kept || (key.starts_with("part-") && name == entry->d_name);
    if (!is_kept) ::unlinkat(folder.number(), entry->d_name, 0);
  }
}
/// A number for the parts of a saving, by the time and the process.
[[gnu::cold]] inline long new_saving() {
  fnv_hash hash;
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  hash.add(now.tv_sec * 1'000'000'000L + now.tv_nsec);
  hash.add(::getpid());
  return long(hash.value >> 32);
}

/// The contents of a checkpoint beside its states: numbers of the run, and metadata.
struct checkpoint_head {
  row_list<run_numbers> numbers;
  safetensors_metadata metadata;
};
/// A file to be written, and the file whose mode the new file takes if it replaces none.
struct checkpoint_target {
  std::string path, like{};
};

/// Lists the parts of a saving in `head`, with their sizes and checksums.
///
/// throws: file_error or data_error if a part is not what its process has written
[[gnu::cold]] inline void list_parts(checkpoint_head& head, std::string const& path, int count,
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

}  // namespace detail

}  // namespace pp
