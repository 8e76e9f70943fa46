// SPDX-License-Identifier: BSL-1.0
//
// The check that a program can run on a machine's GPUs, decided from what the CUDA runtime says of
// them. No call of it is made here, so that the decisions and their sentences are tested where
// there is no GPU.
#pragma once

#include <pipe/base/error.hpp>
#include <pipe/base/sentence.hpp>

namespace pp::cuda {

/// A GPU, and the code that a program has for it. Capabilities are 10 * major + minor: 80 for
/// sm_80.
struct device_and_code {
  int index = 0;
  char const* name = "";
  int capability = 0;    ///< of the device
  int least = 0;         ///< that the program was compiled for
  bool has_code = true;  ///< whether the driver found code in the program that runs on the device
};

/// why: what the runtime said instead of a number; null if it only found none
///
/// throws: pp::error "no CUDA device"
inline void check_there_is_device(int index, int count, char const* why) {
  if (why != nullptr) complain<error>({"no CUDA device: ", why});
  if (count == 0) complain<error>({"no CUDA device"});
  if (index < 0 || index >= count)
    complain<error>({"no CUDA device ", index, ": there are ", count});
}

/// throws: pp::error that names the device and the code, if the device is older than the code, or
///         so new that code for one model only, as sm_90a, is of no use
inline void check_there_is_code(device_and_code const& d) {
  if (d.capability < d.least)
    complain<error>({"CUDA device ", d.index, " (", d.name, ") is sm_", d.capability,
                     ", and this program has code for sm_", d.least, " and newer"});
  if (!d.has_code)
    complain<error>({"CUDA device ", d.index, " (", d.name, ") is sm_", d.capability,
                     ", and this program was compiled for others: -arch=sm_", d.capability,
                     " compiles it for this one"});
}

}  // namespace pp::cuda
