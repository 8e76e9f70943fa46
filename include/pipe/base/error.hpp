// SPDX-License-Identifier: BSL-1.0
//
// Run-time errors. Each is a `pp::error`: one sentence that says what, where, what was expected and
// what was found. What can be known earlier never gets here: it is a compile-time diagnostic (see
// graph/diagnostics.hpp).
#pragma once

#include <stdexcept>
#include <string>

namespace pp {

/// Base of everything the library throws.
struct error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Input that cannot be used: a token out of range, a batch of the wrong size, text too short, a
/// file that is damaged.
struct data_error : error {
  using error::error;
};

/// A file or folder that the operating system does not let us open, read or write: the text names
/// it and the reason.
struct file_error : error {
  using error::error;
};

/// A step whose loss or gradient is not a finite number, perhaps because one in its batch is not.
/// Parameters and optimizer state are as before the step.
struct not_finite : error {
  using error::error;
};

/// A run in which no rank made progress for as long as the deadline. The text says what each rank
/// was doing.
struct rank_error : error {
  using error::error;
};

}  // namespace pp
