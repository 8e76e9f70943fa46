// SPDX-License-Identifier: BSL-1.0
//
// The waits by which ranks that hold one chunk add to its gradients in the order of micro-batches.
#include "catch.hpp"

#include <pipe/runtime/host/core/sum_order.hpp>

#include <tuple>
#include <vector>

#include "transport/silent.hpp"

using namespace pp::detail;
using pp::transports::milestone;
using pp::transports::waited;

namespace {

/// Notes what is awaited and published: holder, milestone, number.
struct notes : silent::ranks {
  static constexpr bool copies = false;
  using event = std::tuple<int, milestone, int>;
  std::vector<event> awaited, published;
  waited outcome = waited::done;

  using silent::ranks::ranks;
  void publish(int holder, milestone m, int number) { published.push_back({holder, m, number}); }
  waited wait(int holder, milestone m, int number, pp::transports::failure_flag const&) {
    awaited.push_back({holder, m, number});
    return outcome;
  }
};
static_assert(pp::transports::transport<notes>);

/// A chunk with three holders. Launches 1 and 2 of its backward add; launch 0 and a launch that
/// only reads gradients do not. Micro-batches before number 2 recompute: one launch more.
struct shared_chunk {
  placed_operand operands[4]{{{region::record, 0}, 10},
                             {{region::parameter_gradients, 0}, 10},
                             {{region::buffer_sums, 0}, 10},
                             {{region::parameter_gradients, 0}, 0}};
  launch launches[5]{{0, 0, 1}, {0, 1, 1}, {0, 2, 1}, {0, 3, 1}, {0, 0, 1}};
  chunk_description chunk;
  pipeline_description d;
  job now;
  notes transport{1, 1, {}};
  pp::transports::failure_flag failed{false};
  activity doing;

  shared_chunk() {
    chunk.keeping.programs[int(program::backward)] = {launches, operands, 4, 4};
    chunk.dropping.programs[int(program::backward)] = {launches, operands, 5, 5};
    chunk.first_kept = 2;
    chunk.first_holder = 4, chunk.holders = 3;
    d.chunk = &chunk;
    now.what = job::kind::train;
  }
  shared_chunk(shared_chunk const&) = delete;
  /// Runs backward for a micro-batch; returns the time of its waits, of 1 ns each.
  long run(int micro_batch) {
    program_set const& set = chunk.set_for(micro_batch);
    sum_order<notes> const order(d, now, transport, failed,
                                 {pp::schedules::action_kind::backward, 0, micro_batch}, set,
                                 program::backward, shift);
    long waited_for = 0, time = 0;
    for (int i = 0; i < set.programs[int(program::backward)].count; ++i) {
      last = order.await(i, doing, waited_for, [&] { return time++; });
      order.publish(i);
    }
    order.end();
    return waited_for;
  }
  waited last = waited::done;
  int shift = 0;
};
using events = std::vector<notes::event>;
/// The number of a launch of a micro-batch: the larger set has five, and the end.
notes::event sum(int micro_batch, int launch) {
  return {4 + micro_batch % 3, milestone::gradient_sum, 6 * micro_batch + launch};
}

}  // namespace

TEST_CASE("a launch that adds waits for the same launch of the micro-batch before") {
  shared_chunk c;
  CHECK(c.run(1) == 2);
  CHECK(c.transport.awaited == events{sum(0, 1), sum(0, 2)});
  CHECK(c.transport.published == events{sum(1, 1), sum(1, 2), sum(1, 5)});
}
TEST_CASE("the first micro-batch waits for none") {
  shared_chunk c;
  CHECK(c.run(0) == 0);
  CHECK(c.transport.awaited.empty());
  CHECK(c.transport.published == events{sum(0, 1), sum(0, 2), sum(0, 5)});
}
TEST_CASE("in later steps numbers of micro-batches run on, but the first waits for none") {
  shared_chunk c;
  c.shift = 6;
  c.run(0);
  CHECK(c.transport.awaited.empty());
  CHECK(c.transport.published == events{sum(6, 1), sum(6, 2), sum(6, 5)});
  c.run(1);
  CHECK(c.transport.awaited == events{sum(6, 1), sum(6, 2)});
}
TEST_CASE("after other programs a launch waits for their end") {
  shared_chunk c;
  c.run(2);
  CHECK(c.transport.awaited == events{sum(1, 5), sum(1, 5)});
}
TEST_CASE("a wait that fails is told") {
  shared_chunk c;
  c.transport.outcome = waited::too_long;
  c.chunk.keeping.programs[int(program::backward)].count = 2;  // up to the first that adds
  c.run(3);
  CHECK(c.last == waited::too_long);
}
TEST_CASE("one holder keeps no order, nor does a run that does not train") {
  shared_chunk alone, evaluated;
  alone.chunk.holders = 1;
  evaluated.now.what = job::kind::evaluate;
  for (shared_chunk* c : {&alone, &evaluated}) {
    c->run(1);
    CHECK(c->transport.awaited.empty());
    CHECK(c->transport.published.empty());
  }
}
