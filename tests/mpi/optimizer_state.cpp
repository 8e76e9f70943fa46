// SPDX-License-Identifier: BSL-1.0
//
// Optimizer state of runs in several processes, in PyTorch's files: the bytes are those that one
// process writes, and any division among processes and replicas reads them.
#include <string>

#include <pipe/checkpoint/optimizer_state.hpp>

#include "laws/data.hpp"
#include "mpi/resumed.hpp"
#include "train/folder.hpp"

using namespace pp;
using processes::own, processes::step_alike;

namespace {

template <class Optimizer, class... More>
using Of = processes::Divided<Optimizer, More...>;
using states = Of<AdamW, Between, Stages<2>, ZeRO<1>>;

/// Whether one process and all of them save the same.
template <class One, class Many>
bool saves_alike(One& one, Many& many) {
  save_optimizer_state(many, processes::in_folder("all"));
  save_optimizer_state(one, own("alone"));
  return same_content(own("alone"), processes::in_folder("all"));
}

/// A run that many processes begin goes on in others, with one process beside them.
template <class One, class Many, class Others>
void goes_on() {
  INFO("process " << Between::process() << " of " << Between::processes());
  One one({.seed = 3});
  Many many({.seed = 3});
  Others others({.seed = 4});
  for (std::uint64_t step = 1; step <= 2; ++step) step_alike(one, many, step);
  save_weights(many, processes::in_folder("weights"));
  CHECK(saves_alike(one, many));
  load_weights(others, processes::in_folder("weights"));
  load_optimizer_state(others, processes::in_folder("all"));
  CHECK(others.steps() == 2);
  CHECK(saves_alike(one, others));
  step_alike(one, others, 3);
  CHECK(saves_alike(one, others));
}

}  // namespace

TEST_CASE("optimizer state goes on, however processes divide it") {
  using whole = Of<AdamW, Between>;
  using all = Of<AdamW, Between, ZeRO<3>>;
  goes_on<Of<AdamW>, whole, states>();
  goes_on<Of<AdamW>, states, all>();
  goes_on<Of<AdamW>, all, whole>();
  using tensors = Of<Adafactor, Between, ZeRO<1>>;
  goes_on<Of<Adafactor>, tensors, tensors>();
}
TEST_CASE("optimizer state that one process cannot load is loaded by none") {
  Of<AdamW> one({.seed = 3});
  states all({.seed = 3}), other({.seed = 4});
  other.step(laws::sample_batch<states>(1).view());
  save_optimizer_state(other, processes::in_folder("other"));
  bool const is_last = Between::process() + 1 == Between::processes();
  std::string const path = is_last ? own("nowhere") : processes::in_folder("other");
  CHECK_THROWS_AS(load_optimizer_state(all, path), error);
  CHECK_THROWS_AS(save_optimizer_state(all, processes::in_folder("no folder/state")), file_error);
  CHECK(all.steps() == 0);
  CHECK(saves_alike(one, all));
  step_alike(one, all, 2);
}
