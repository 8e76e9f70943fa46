// SPDX-License-Identifier: BSL-1.0
//
// The laws of a pipeline over processes. Started by mpirun: see run.py.
#include "mpi/alike.hpp"

#include "transport/models.hpp"

using namespace pp;
using transports::Shared, transports::Small;

TEST_CASE("skips, shared weights and further inputs give the bits of one stage") {
  processes::trains_alike<Small<Shared>, Small<Shared, Mpi, Stages<8>>>();
}
