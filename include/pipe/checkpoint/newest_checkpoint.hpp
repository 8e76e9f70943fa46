// SPDX-License-Identifier: BSL-1.0
//
// The newest checkpoint in a folder, for programs that decide what to do before they make a
// trainer.
#pragma once
#ifndef PIPE_SHOWS_WARNINGS
#pragma GCC system_header
#endif

#include <climits>
#include <string>

#include <pipe/base/error.hpp>
#include <pipe/checkpoint/checkpoint_folder.hpp>
#include <pipe/checkpoint/open_checkpoint.hpp>
#include <pipe/checkpoint/resumed_run.hpp>

namespace pp {

/// A checkpoint in a folder. An empty path: there is none.
struct found_checkpoint {
  std::string path;
  long steps = 0;
  data_position position;
};

/// The newest checkpoint in a folder after at most `last` steps, of those whose headers, including
/// headers of parts, are sound. Tensors are not read.
///
/// throws: file_error if the folder cannot be read, or memory is exhausted
inline found_checkpoint newest_checkpoint(std::string const& folder, long last = LONG_MAX) {
  detail::checkpoint_folder const from(folder);
  for (long const step : from.steps()) try {
      if (step > last) continue;
      detail::open_checkpoint const file(from.file_of(step));
      detail::kept_text const* const position = file.metadata("position");
      return {file.name(), step, position == nullptr ? "" : std::string(*position)};
    } catch (detail::no_memory_for_file const&) {
      throw;
    } catch (error const&) {
      // resume() will say why.
    }
  return {};
}

}  // namespace pp
