// SPDX-License-Identifier: BSL-1.0
//
// Definitions of checkpoint/checkpoint_tensors.hpp.

#include <sys/stat.h>
#include <unistd.h>

namespace pp::detail {

PIPE_DEFINED checkpoint_target part_saving::target() const {
  struct stat there{};
  bool const is_there = ::stat(to.path.c_str(), &there) == 0;
  return {name_of_part(to.path, part, number), is_there ? to.path : to.like};
}
PIPE_DEFINED void part_saving::complete() const {
  checkpoint_head all = head;
  list_parts(all, to.path, part.count, number);
  tensor_file<float>(to, all, {}).commit();
}
PIPE_DEFINED void part_saving::remove() const {
  if (part.number == 0) return;
  std::string const mine = target().path;
  try {
    checkpoint_reader const first(to.path);
    kept_text const* const listed = first.metadata(joined_text({"part-", part.number}));
    if (listed != nullptr && listed->view() == name_in_folder(mine)) return;
  } catch (error const&) {
    // There is no such part.
  }
  ::unlink(mine.c_str());
}

}  // namespace pp::detail
