// SPDX-License-Identifier: BSL-1.0
//
// The headers of files, for the source of the library pipe::compiled: it compiles the .inl files of
// these headers, and of those that they include.

#include <pipe/checkpoint/checkpoint.hpp>
#include <pipe/weights/weights.hpp>
