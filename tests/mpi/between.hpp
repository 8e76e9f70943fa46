// SPDX-License-Identifier: BSL-1.0
//
// The option of the tests over processes: the same laws hold by MPI and by sockets.
#pragma once

#ifdef BY_SOCKETS
#include <pipe/tcp.hpp>
using Between = pp::Tcp;
inline constexpr char const* folder_of_tests = "pipe-tests-tcp";
#else
#include <pipe/mpi.hpp>
using Between = pp::Mpi;
inline constexpr char const* folder_of_tests = "pipe-tests-mpi";
#endif
