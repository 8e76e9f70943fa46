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

#include <cstdint>
#include <string>
#include <string_view>

#include <fcntl.h>

#include <pipe/base/config.hpp>
#include <pipe/base/joined_text.hpp>
#include <pipe/checkpoint/checkpoint_file.hpp>
#include <pipe/checkpoint/run_numbers.hpp>
#include <pipe/io/folder_reader.hpp>
#include <pipe/io/row_list.hpp>

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
[[gnu::cold]] std::string name_of_part(std::string const& of, part_number part, long saving);
/// The name of the checkpoint to which a part of this name belongs; "" for a name of no part.
[[gnu::cold]] std::string_view whole_of_part(std::string_view name);
/// Removes the parts of a checkpoint, of all savings, that are in the checkpoint's folder, except
/// those whose names are in `kept`. Parts that cannot be removed only take space.
[[gnu::cold]] void remove_parts(std::string_view path,
                                safetensors_metadata const& kept = {}) noexcept;
/// A number for the parts of a saving, by the time and the process.
[[gnu::cold]] long new_saving();

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
[[gnu::cold]] void list_parts(checkpoint_head& head, std::string const& path, int count,
                              long saving);

}  // namespace detail

}  // namespace pp
#ifdef PIPE_DEFINED
#include <pipe/checkpoint/checkpoint_parts.inl>
#endif
