// SPDX-License-Identifier: BSL-1.0
//
// The parts of launches: every op is in one, whether or not B and W are one program, and the work
// of a fused op is what it adds to the launch.
#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "catch.hpp"

#include <pipe/pipe.hpp>
#include <pipe/passes/heap_compilation.hpp>
#include <pipe/passes/launch_parts.hpp>

namespace {

using namespace pp;
using namespace pp::detail;
using parts = std::vector<launch_part>;

struct Net : Model<Input<6>, Linear<8>, ReLU, Linear<4>, MSE> {};
struct Words : Model<Tokens<9, 4>, Embedding<6>, Positions, Residual<LayerNorm, Linear<6>>, Tanh,
                     Linear<9>, CrossEntropy> {};

template <class M>
heap_compilation compiled(int stages, bool splits, recompute_rule again = {}) {
  return heap_compilation(
      M::graph, {.stages = stages, .samples = 3, .splits_backward = splits, .recompute = again},
      [](auto const& times, int layers, int count, auto& cuts) {
        ByCost::cut(times, layers, count, cuts);
      });
}

/// The parts of the launches of a program.
std::vector<parts> parts_of(heap_compilation const& c, int stage, program p, bool drops = false) {
  heap_stage const s(c, stage, drops);
  return list_launch_parts(c.kernels(), p, s.order(p), {});
}

/// Layers and lists of the parts of all programs, each once.
template <class M>
void covers_every_op(bool splits) {
  heap_compilation const c = compiled<M>(2, splits);
  std::map<std::pair<int, op_list>, int> expected, found;
  for (op_list l : {op_list::forward, op_list::input_gradients, op_list::weight_gradients})
    for (op const& o : c.kernels().ops[l]) expected[{o.unit, l}] = 1;
  for (int stage = 0; stage < 2; ++stage)
    for (program p : programs_of(splits, false)) {
      std::vector<parts> const launches = parts_of(c, stage, p);
      CHECK(int(launches.size()) == heap_stage(c, stage, false).order(p).size());
      for (parts const& of : launches) {
        std::map<std::pair<int, op_list>, int> here;
        for (launch_part const& x : of) {
          CHECK(x.work > 0);
          CHECK((p != program::backward_weight || x.list == op_list::weight_gradients));
          CHECK(++here[{x.layer, x.list}] == 1);
          found[{x.layer, x.list}] = 1;
        }
      }
    }
  CHECK(found == expected);
}

}  // namespace

TEST_CASE("every layer has its part of a launch, in each list", "[passes]") {
  for (bool const splits : {false, true}) {
    covers_every_op<Net>(splits);
    covers_every_op<Words>(splits);
  }
}

TEST_CASE("the work of a fused op is what it adds to the launch", "[passes]") {
  std::vector<parts> const forward = parts_of(compiled<Net>(1, false), 0, program::forward);
  REQUIRE(forward.size() >= 2);
  // The product reads 6 numbers and the launch writes 8. Bias and ReLU read and write registers:
  // what is left of them is one FLOP and eight for each element.
  CHECK(forward[0] == parts{{0, op_list::forward, 2 * 6 * 8 + 8 * 4 * (6 + 8) + 8},
                            {1, op_list::forward, 8 * 8}});
  // The second layer begins another launch.
  CHECK(forward[1].front().layer == 2);
  CHECK(forward[1].front().work >= 2 * 8 * 4 + 8 * 4 * (8 + 4));

  // A table of positions is a parameter, which all samples share.
  std::vector<parts> const text = parts_of(compiled<Words>(1, false), 0, program::forward);
  CHECK(text[0] == parts{{0, op_list::forward, 24 + 8 * 8 * 24}, {1, op_list::forward, 24}});
}

TEST_CASE("what runs again is apart from what backward makes", "[passes]") {
  heap_compilation const c = compiled<Net>(1, false, rule_of<RecomputeAll>());
  long again = 0, made = 0;
  for (parts const& of : parts_of(c, 0, program::backward, true))
    for (launch_part const& x : of) {
      CHECK(x.list != op_list::forward);
      (x.list == op_list::recompute ? again : made) += x.work;
    }
  CHECK(again > 0);
  CHECK(made > again);
}
