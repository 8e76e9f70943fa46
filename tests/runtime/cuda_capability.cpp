// SPDX-License-Identifier: BSL-1.0
//
// What a program that trains on a GPU says to a machine that cannot run it.
#include "catch.hpp"

#include <pipe/runtime/cuda/capability.hpp>

using namespace pp;
using Catch::Matchers::Message;

TEST_CASE("a machine without a CUDA device is told so", "[runtime]") {
  CHECK_NOTHROW(cuda::check_there_is_device(0, 1, nullptr));
  CHECK_NOTHROW(cuda::check_there_is_device(7, 8, nullptr));
  CHECK_THROWS_MATCHES(cuda::check_there_is_device(0, 0, nullptr), error,
                       Message("no CUDA device"));
  CHECK_THROWS_MATCHES(cuda::check_there_is_device(0, 0, "the driver is too old"), error,
                       Message("no CUDA device: the driver is too old"));
  CHECK_THROWS_MATCHES(cuda::check_there_is_device(2, 2, nullptr), error,
                       Message("no CUDA device 2: there are 2"));
  CHECK_THROWS_MATCHES(cuda::check_there_is_device(-1, 2, nullptr), error,
                       Message("no CUDA device -1: there are 2"));
}

TEST_CASE("a GPU that the program has no code for is named, with the code there is", "[runtime]") {
  CHECK_NOTHROW(cuda::check_there_is_code({0, "NVIDIA A100", 80, 80, true}));
  CHECK_NOTHROW(cuda::check_there_is_code({0, "NVIDIA H200", 90, 80, true}));
  CHECK_THROWS_MATCHES(
      cuda::check_there_is_code({0, "Tesla V100", 70, 80, true}), error,
      Message(
          "CUDA device 0 (Tesla V100) is sm_70, and this program has code for sm_80 and newer"));
  CHECK_THROWS_MATCHES(
      cuda::check_there_is_code({1, "NVIDIA B200", 100, 90, false}), error,
      Message("CUDA device 1 (NVIDIA B200) is sm_100, and this program was compiled for others: "
              "-arch=sm_100 compiles it for this one"));
}
