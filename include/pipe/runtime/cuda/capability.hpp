// SPDX-License-Identifier: BSL-1.0
//
// The check that a program can run on a GPU of this machine, as functions of what the CUDA runtime
// reports. These functions make no CUDA calls, so decisions and messages are tested on machines
// without a GPU.
#pragma once

#include <pipe/base/error.hpp>
#include <pipe/base/sentence.hpp>

namespace pp::cuda {

/// A GPU, and the code that the program contains for it.
///
/// units: capabilities are 10 * major + minor: 80 for sm_80
struct device_and_code {
  int index = 0;
  char const* name = "";
  int capability = 0;    ///< capability of the device
  int least = 0;         ///< lowest capability that the program was compiled for
  bool has_code = true;  ///< the driver found code for the device
  int multiprocessors = 0;
};

/// Checks that device `index` is one of `count`. `why`: the runtime's error message if the query
/// failed, else null.
///
/// throws: pp::error "no CUDA device ..."
inline void check_there_is_device(int index, int count, char const* why) {
  if (why != nullptr) detail::throw_error<error>({"no CUDA device: ", why});
  if (count == 0) detail::throw_error<error>({"no CUDA device"});
  if (index < 0 || index >= count)
    detail::throw_error<error>({"no CUDA device ", index, ": there are ", count});
}

/// Checks that the program has code for the device.
///
/// throws: pp::error that names the device and the code, if the device is older than the code, or
///         if it is newer and the code is for one model only, such as sm_90a
inline void check_there_is_code(device_and_code const& d) {
  if (d.capability < d.least)
    detail::throw_error<error>({"CUDA device ", d.index, " (", d.name, ") is sm_", d.capability,
                                ", and this program has code for sm_", d.least, " and newer"});
  if (!d.has_code)
    detail::throw_error<error>({"CUDA device ", d.index, " (", d.name, ") is sm_", d.capability,
                                ", and this program was compiled for others: -arch=sm_",
                                d.capability, " compiles it for this one"});
}

/// Checks that the devices of one trainer are alike: on different devices a library may compute a
/// product in different orders.
///
/// throws: pp::error that names both devices
inline void check_are_alike(device_and_code const& a, device_and_code const& b) {
  if (a.capability != b.capability || a.multiprocessors != b.multiprocessors)
    detail::throw_error<error>({"the devices of a trainer must be alike: CUDA device ", a.index,
                                " (", a.name, ") is sm_", a.capability, " with ", a.multiprocessors,
                                " multiprocessors, and CUDA device ", b.index, " (", b.name,
                                ") is sm_", b.capability, " with ", b.multiprocessors});
}

}  // namespace pp::cuda
