// SPDX-License-Identifier: BSL-1.0
//
// Checkpoints of runs in several processes: the bytes are those that one process writes, wherever a
// state lives, and any division among processes and replicas reads them.
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include <pipe/checkpoint/checkpoint.hpp>
#include <pipe/checkpoint/checkpoints.hpp>
#include <pipe/train/stop_request.hpp>

#include "mpi/resumed.hpp"
#include "train/folder.hpp"
#include "transport/models.hpp"

using namespace pp;
using processes::own, processes::step_alike;

namespace {

template <class Optimizer, class... More>
using Of = processes::Divided<Optimizer, More...>;
/// Of one replica, with up to eight processes.
template <class... More>
using Long = Pipeline<test_transports::Shared, PortableHost, AdamW, Averaging<9, 10>,
                      MicroBatches<2>, MicroBatchSize<2>, More...>;

/// What one process and all of them save is the same, in one file or in parts. Returns the path of
/// the latter.
template <class One, class Many>
std::string saves_alike(One& one, Many& many) {
  std::string const path = processes::in_folder("run"), parts = processes::in_folder("parts");
  many.save(path, "here");
  one.save(own("alone"), "here");
  CHECK(same_content(own("alone"), path));
  many.save(parts, "here", checkpoint_files::by_process);
  One same;
  CHECK(same.load(parts).position.text == "here");
  same.save(own("same"), "here");
  CHECK(same_content(own("same"), path));
  return one.steps() % 2 == 0 ? parts : path;
}

/// A run that many processes begin goes on in others, with one process beside them.
template <class One, class Many, class Others, int Accumulated = 0>
void resumes() {
  INFO("process " << Between::process() << " of " << Between::processes());
  One one({.seed = 3, .clip_norm = 0.1});
  Many many({.seed = 3, .clip_norm = 0.1});
  Others others({.seed = 4, .clip_norm = 0.1});
  others.step(laws::sample_batch<Others>(9).view());
  for (std::uint64_t step = 1; step <= 2; ++step) step_alike(one, many, step);
  if constexpr (Accumulated > 0)
    for (int i = 0; i < Accumulated; ++i) {
      one.accumulate(laws::sample_batch<One>(5).view());
      many.accumulate(laws::sample_batch<Many>(5).view());
    }
  resumed_run const r = others.load(saves_alike(one, many));
  CHECK(r.steps == 2);
  CHECK(r.position.text == "here");
  saves_alike(one, others);
  step_alike(one, others, 3);
  saves_alike(one, others);
  One again({.seed = 5, .clip_norm = 0.1});
  again.load(processes::in_folder("run"));
  step_alike(again, others, 4);
}

}  // namespace

TEST_CASE("a run of several ranks is resumed by others") {
  using many = Long<Between, Stages<8>>;
  resumes<Long<>, many, many, 2>();
}
TEST_CASE("a run of replicas is resumed, however they divide the states") {
  using whole = Of<AdamW, Between>;
  using states = Of<AdamW, Between, Stages<2>, ZeRO<1>>;
  using all = Of<AdamW, Between, ZeRO<3>>;
  resumes<Of<AdamW>, whole, states>();
  resumes<Of<AdamW>, states, all>();
  resumes<Of<AdamW>, all, whole>();
  using tensors = Of<LAMB, Between, ZeRO<1>>;
  resumes<Of<LAMB>, tensors, tensors>();
}
TEST_CASE("a checkpoint that one process cannot load is loaded by none") {
  using many = Of<AdamW, Between, Stages<2>, ZeRO<1>>;
  Of<AdamW> one({.seed = 3});
  many all({.seed = 3}), other({.seed = 4});
  other.step(laws::sample_batch<many>(1).view());
  other.save(processes::in_folder("other"));
  bool const is_last = Between::process() + 1 == Between::processes();
  std::string const path = is_last ? own("nowhere") : processes::in_folder("other");
  CHECK_THROWS_AS(all.load(path), error);
  CHECK_THROWS_AS(all.save(processes::in_folder("no folder/run")), file_error);
  saves_alike(one, all);
  step_alike(one, all, 2);
}
TEST_CASE("a folder of checkpoints is written by one process, and all resume from it") {
  using many = Of<AdamW, Between, Stages<2>, ZeRO<1>>;
  std::string const run = processes::in_folder("folder"), other = processes::in_folder("beside");
  bool const is_first = many::engine::writes_files();
  std::vector<std::string> told;
  auto const settings = [&](checkpoints<many>::settings s) {
    s.warn = [&](std::string_view text) { told.emplace_back(text); };
    return s;
  };
  for (bool const asynchronous : {true, false}) {
    Of<AdamW> one({.seed = 3});
    many all({.seed = 3});
    auto const step = [&](checkpoints<many>& saved, std::uint64_t seed) {
      step_alike(one, all, seed);
      saved.after_step(all, all.steps(), 1);
    };
    {
      checkpoints<many> saved(run, settings({.every_steps = 2, .asynchronous = asynchronous}));
      saved.set_aside(all);  // that of the loop before
      CHECK(saved.resume(all).path.empty());
      step(saved, 1), step(saved, 2);
      saved.finish(all, 2);
      step(saved, 3);
      CHECK(saved.finish(all, 3) == (is_first ? run + "/step-3.safetensors" : ""));
      one.save(own("alone"), 3);
      CHECK(same_content(own("alone"), run + "/step-3.safetensors"));
      if (is_first) std::ofstream(run + "/step-4.safetensors") << "damaged";
    }
    many again({.seed = 5});
    told.clear();
    checkpoints<many> saved(
        run, settings({.every = std::chrono::nanoseconds(1), .asynchronous = asynchronous}));
    resumed_checkpoint const r = saved.resume(again);
    CHECK(r.steps == 3);
    CHECK(r.skipped.size() == 1);
    CHECK(told.size() == (is_first ? 1u : 0u));
    step_alike(one, again, 4);
    saved.after_step(again, 4);
    step_alike(one, again, 5);
    saved.after_step(again, 5);
    saved.finish(again, 5);
    one.save(own("alone"), 5);
    CHECK(same_content(own("alone"), run + "/step-5.safetensors"));
    // Where nothing can be written all go on, and have the same warning.
    if (is_first) std::ofstream(other) << "a file";
    checkpoints<many> nowhere(other, settings({.every_steps = 1, .asynchronous = asynchronous}));
    nowhere.resume(again);
    step_alike(one, again, 6);
    nowhere.after_step(again, 6);
  }
}
TEST_CASE("a request to stop one process stops all, at the same step") {
  using many = Of<AdamW, Between>;
  many trainer;
  stop_request stop;
  CHECK_FALSE(stop.is_requested(trainer));
  if (Between::process() + 1 == Between::processes()) std::raise(SIGTERM);
  CHECK(stop.is_requested(trainer));
  CHECK(stop.exit_code() == 143);
}
