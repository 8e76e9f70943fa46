// SPDX-License-Identifier: BSL-1.0
//
// The bytes that a plan counts are the bytes that MPI is given: between ranks, and between
// replicas.
#include "catch.hpp"

#include <pipe/mpi.hpp>

#include "laws/data.hpp"
#include "transport/counted.hpp"
#include "transport/models.hpp"

using namespace pp;
using test_transports::Shared, test_transports::Small;

namespace {

using counted = test_transports::counted<detail::mpi>;
struct Counted {
  using transport = counted;
};

long in_all(long here) {
  MPI_Allreduce(MPI_IN_PLACE, &here, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  return here;
}

template <class Trainer>
void moves_what_is_planned() {
  constexpr int ranks = Trainer::compiled::ranks;
  Trainer trainer({.seed = 3});
  laws::sample_batch<Trainer> const data(1);
  trainer.step(data.view());
  counted::seen.clear();
  trainer.step(data.view());
  int const replicas = counted::place(ranks).replicas;
  INFO(Trainer::plan().schedule << ", " << ranks << " ranks, " << replicas << " replicas");
  for (int from = 0; from < ranks; ++from) {
    for (int to = 0; to < ranks; ++to) {
      INFO("from rank " << from << " to rank " << to);
      CHECK(in_all(counted::seen.sent[from][to]) ==
            replicas * test_transports::planned_bytes<Trainer>(from, to, replicas));
    }
    CHECK(in_all(counted::seen.exchanged[from]) ==
          Trainer::plan().exchange_bytes_of(from, replicas));
  }
}

/// Gradients of two buckets, the second of which is not full.
struct Wide : Model<Input<1000>, Linear<2200>, Tanh, Linear<3>, MSE> {};

}  // namespace

TEST_CASE("MPI moves the bytes that are planned") {
  moves_what_is_planned<Small<Shared, Counted, Stages<8>, ZeroBubbleV, GradientAccumulation<2>>>();
}
TEST_CASE("ranks of a stage send the sums and weights that are planned") {
  moves_what_is_planned<Small<Shared, Counted, StageReplicas<3, 2, 3>, GradientAccumulation<2>>>();
  moves_what_is_planned<Small<Shared, Counted, Stages<8>, Chimera>>();
}
TEST_CASE("replicas exchange the bytes that are planned") {
  moves_what_is_planned<Small<Shared, Counted, Stages<2>, GradientAccumulation<8>>>();
  moves_what_is_planned<Small<Wide, Counted, Stages<1>, GradientAccumulation<8>>>();
}
