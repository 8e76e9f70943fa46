// SPDX-License-Identifier: BSL-1.0
//
// Layers measured on a device: a chain of narrow layers is one launch, whose time is shared between
// them; what it computes again of forward is of B, but with the loss, which runs once, of F.
#include <vector>

#include "device/chains_alike.hpp"
#include "laws/given_times.hpp"

using namespace pp;
using namespace on_host;

namespace {

struct Narrow : Model<Input<24>, Linear<40>, ReLU, Linear<40>, Tanh, Linear<10>, MSE> {};
using Chained = on_device<Narrow, MicroBatches<2>>;
using Launched = by_launches<Narrow, MicroBatches<2>>;

/// The sets of layers that have times of F, of B and of W.
std::vector<std::vector<bool>> layers_with_times(detail::layer_times const& times) {
  std::vector<std::vector<bool>> found(3);
  for (detail::layer_time const& t : times.each) {
    found[0].push_back(t.forward > 0);
    found[1].push_back(t.backward_input > 0);
    found[2].push_back(t.backward_weight > 0);
  }
  return found;
}

long total(detail::layer_times const& times) {
  long sum = 0;
  for (detail::layer_time const& t : times.each) sum += t.all();
  return sum;
}
template <class Trainer>
using last_programs =
    typename Trainer::compiled::passes::template programs<Trainer::compiled::stages - 1, false,
                                                          typename Trainer::compiled::work::chains>;

}  // namespace

TEST_CASE("the launch of a chain is shared between its layers", "[cuda]") {
  auto const chained = laws::times_add_up<Chained>(), launched = laws::times_add_up<Launched>();
  REQUIRE(chained.each.size() == 5);
  CHECK(layers_with_times(chained) == layers_with_times(launched));
  CHECK(layers_with_times(chained)[0] == std::vector<bool>(5, true));
  // Forward, loss and backward are one launch.
  STATIC_REQUIRE(last_programs<Chained>::has_loss_in_backward);
  CHECK(total(chained) == 1000000);
  CHECK(total(launched) > 5000000);
}

// Not the last stage: its forward runs, and backward computes it again, which is longer for that.
TEST_CASE("what a chain computes again is of B", "[cuda]") {
  using Halves = on_device<Narrow, MicroBatches<2>, Stages<2>, Cut<4>>;
  using First =
      typename Halves::compiled::passes::template programs<0, false,
                                                           typename Halves::compiled::work::chains>;
  STATIC_REQUIRE(First::chains_recompute && !First::has_loss_in_backward);
  auto const times = laws::times_add_up<Halves>();
  long forward = 0;
  for (std::size_t l = 0; l < 4; ++l) forward += times.each[l].forward;
  CHECK(forward == 1000000);
}

TEST_CASE("ranks of a device and split programs are measured as well", "[cuda]") {
  laws::times_add_up<on_device<Narrow, MicroBatches<2>, Stages<2>, Cut<3>, ZeroBubbleH1>>();
}
