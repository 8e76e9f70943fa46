// SPDX-License-Identifier: BSL-1.0
//
// A run in several processes is recorded in one log, and made again by one process; and the other
// way round.
#include <filesystem>
#include <string>

#include <pipe/checkpoint/checkpoint.hpp>
#include <pipe/checkpoint/replay.hpp>

#include "mpi/resumed.hpp"

using namespace pp;

namespace {

/// Trainers of checkpoint.cpp.
template <class... More>
using Of = processes::Divided<AdamW, More...>;

template <class Trainer>
step_result make_step(Trainer& trainer) {
  laws::sample_batch<Of<>> const data{std::uint64_t(trainer.steps()) + 1};
  return trainer.step(data.template view<Trainer>());
}

/// Records a run of a Trainer, and makes it again in an Again.
template <class Trainer, class Again>
void records_and_repeats(char const* name) {
  INFO("process " << Between::process() << " of " << Between::processes());
  std::string const path = processes::in_folder(name), checkpoint = path + "-checkpoint";
  bool const reports = Between::process() == 0;
  Trainer first({.seed = 3});
  if (reports) std::filesystem::remove(path);
  step_log log(path, first, 2);
  CHECK(log.path() == (reports ? path : ""));
  for (int step = 1; step <= 4; ++step) {
    log.record(first, make_step(first));
    if (step == 1) first.save(checkpoint);
  }
  // The log is complete for all: each process hears of all others after the last row.
  CHECK(first.processes().agree(true));
  Again again({.seed = 4});
  again.load(checkpoint);
  auto const r = replay(again, read_step_log(path), [&] { return make_step(again); });
  CHECK(r.difference == "");
  CHECK(r.steps == 3);
  CHECK(r.hashes == 2);
}

}  // namespace

TEST_CASE("steps of several processes are recorded and made again") {
  using states = Of<Between, Stages<2>, ZeRO<1>>;
  using all = Of<Between, ZeRO<3>>;
  records_and_repeats<states, all>("steps");
  records_and_repeats<all, Of<>>("divided");
}
