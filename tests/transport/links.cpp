// SPDX-License-Identifier: BSL-1.0
//
// The bytes that a plan counts are the bytes that a transport moves.
#include "catch.hpp"

#include "transport/counted.hpp"
#include "transport/messages.hpp"
#include "transport/models.hpp"

#include "laws/data.hpp"

using namespace pp;
using test_transports::Shared, test_transports::Small;

namespace {

using counted = test_transports::counted<test_transports::messages>;
struct Counted {
  using transport = counted;
};

/// Nothing needs a gradient before its first Linear.
struct Ends : Model<Input<2, 3>, GELUTanh, Flatten, Linear<5>, Tanh, Linear<4>, Positions, MSE> {};

template <class Trainer>
void moves_what_is_planned() {
  Trainer trainer({.seed = 3});
  laws::sample_batch<Trainer> const data(1);
  trainer.step(data.view());  // constructs
  counted::seen.clear();
  trainer.step(data.view());
  long all = 0;
  INFO(Trainer::plan().schedule << ", " << Trainer::plan().rank_count << " ranks");
  for (int from = 0; from < Trainer::plan().rank_count; ++from)
    for (int to = 0; to < Trainer::plan().rank_count; ++to) {
      INFO("from rank " << from << " to rank " << to);
      CHECK(counted::seen.sent[from][to] == test_transports::planned_bytes<Trainer>(from, to));
      all += counted::seen.sent[from][to];
    }
  CHECK(all > 0);
}

}  // namespace

TEST_CASE("a plan counts the bytes of every link") {
  // Always the same four stages.
  moves_what_is_planned<Small<Shared, Counted, Stages<4>, Interleaved<2>>>();
  moves_what_is_planned<Small<Shared, Counted, Stages<4>, ZeroBubbleV>>();
  moves_what_is_planned<Small<Shared, Counted, Stages<4>, GradientAccumulation<4>>>();
}
TEST_CASE("a plan counts the bytes of links without gradients") {
  using Trainer = Small<Ends, Counted, Stages<3>, Cut<1, 3>>;
  moves_what_is_planned<Trainer>();
  REQUIRE(Trainer::plan.links.count == 3);  // from rank 1 to rank 0 there is none
  CHECK(Trainer::plan.links[1].from == 1);
  CHECK(Trainer::plan.links[1].to == 2);
}
