// SPDX-License-Identifier: BSL-1.0
//
// Run-time errors. Each is a `pp::error` whose text is one sentence: what failed, where, what was
// expected and what was found. Errors that can be known at compile time are diagnostics instead
// (graph/diagnostics.hpp).
#pragma once

#include <stdexcept>
#include <string>

namespace pp {

/// Base of every exception that the library throws itself.
struct error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Unusable input: a token out of range, a batch of the wrong size, too short a text, a damaged
/// file.
struct data_error : error {
  using error::error;
};

/// A file or folder that the operating system refuses to open, read or write. The text has its name
/// and the reason.
struct file_error : error {
  using error::error;
};

/// A step whose loss or gradient is not finite, perhaps because an input is not.
///
/// law: parameters and optimizer state are as before the step
struct not_finite : error {
  using error::error;
};

/// A run in which no rank made progress within the deadline. The text says what each rank was
/// doing. Over several processes also a failure in another one, or its loss.
struct rank_error : error {
  using error::error;
};

}  // namespace pp
