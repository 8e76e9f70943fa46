// SPDX-License-Identifier: BSL-1.0
//
// One timeline of all processes: every process has every action of every rank, on one clock.
#include "catch.hpp"

#include <cstdlib>
#include <string>
#include <vector>

#include <pipe/mpi.hpp>
#include <pipe/pipe.hpp>
#include <pipe/report/html.hpp>
#include <pipe/report/trainer_drawing.hpp>
#include <pipe/report/write_file.hpp>

#include "mpi/folder.hpp"

using namespace pp;

namespace {

struct Net : Model<Input<8>, Repeat<8, Seq<Linear<8>, Tanh>>, Linear<2>, MSE> {};
template <class... More>
using Timed = Pipeline<Net, MicroBatches<4>, MicroBatchSize<2>, SGD, Mpi, More...>;

template <class Trainer>
typename Trainer::batch batch_of(Trainer const& trainer) {
  static std::vector<float> const inputs(8 * 1024, 0.5f), labels(2 * 1024, 0.25f);
  auto const n = std::size_t(trainer.batch_samples());
  return {{inputs.data(), 8 * n}, {labels.data(), 2 * n}};
}

/// Whether all processes have the same number.
bool is_same_in_all(long number) {
  long range[] = {number, -number};
  MPI_Allreduce(MPI_IN_PLACE, range, 2, MPI_LONG, MPI_MAX, MPI_COMM_WORLD);
  return range[0] == -range[1];
}

/// The run has every action that the table has, in its order, one after the other; all processes
/// have the same run; this one's rows are what it executed.
template <class Trainer, class Actions>
void check_rows(Trainer const& trainer, executed_run const& run, Actions const& planned) {
  constexpr int ranks = Trainer::compiled::ranks;
  transports::process_place const here = Mpi::transport::place(ranks);
  CHECK(run.ranks == ranks);
  CHECK(run.replicas == here.replicas);
  CHECK(run.processes == Mpi::processes());
  REQUIRE(run.rows.size() == std::size_t(ranks * here.replicas));
  long sum = run.clock_error, least = 1L << 62;
  for (std::size_t row = 0; row < run.rows.size(); ++row) {
    INFO("row " << row << ", process " << Mpi::process() << " of " << Mpi::processes());
    int const rank = int(row) % ranks;
    std::vector<executed_action> const& done = run.rows[row];
    REQUIRE(int(done.size()) == planned.size(rank));
    long before = 0;
    for (int i = 0; i < planned.size(rank); ++i) {
      executed_action const& a = done[std::size_t(i)];
      CHECK(a.what == planned.at(rank, i));
      CHECK(a.start >= before);
      CHECK(a.end >= a.start);
      before = a.end;
      sum = sum * 31 + a.start + 7 * a.end;
    }
    least = std::min(least, done[0].start);
    if (int(row) / ranks != here.replica || !here.has(rank)) continue;
    auto const own = trainer.executed(rank);
    for (std::size_t i = 0; i < own.size(); ++i)
      CHECK(done[i].end - done[0].start == own[i].end - own[0].start);
  }
  CHECK(least >= 0);
  CHECK(is_same_in_all(sum));
}

/// No value is read before it was made, but for the error of clocks; its makers and readers are in
/// one replica.
void check_transfers(drawings::drawing const& d, int ranks) {
  CHECK(d.transfers.empty() == (ranks == 1));
  for (detail::drawn_transfer const& t : d.transfers) {
    CHECK(t.from_rank / ranks == t.to_rank / ranks);
    CHECK(d.at(t.to_rank, t.to).start >= d.at(t.from_rank, t.from).end - d.clock_error);
  }
}

/// The processes of this test are on one machine, so their clocks are one: rows are as far apart as
/// they are by it, up to the error.
template <class Trainer>
void check_clock(Trainer const& trainer, executed_run const& run) {
  constexpr int ranks = Trainer::compiled::ranks;
  transports::process_place const here = Mpi::transport::place(ranks);
  std::vector<long> truly(run.rows.size());
  long const began = detail::nanoseconds_of(trainer.processes().parameters.engine->began());
  for (int r = here.first_rank; r < here.first_rank + here.ranks; ++r)
    truly[std::size_t(here.replica * ranks + r)] = began + trainer.executed(r)[0].start;
  MPI_Allreduce(MPI_IN_PLACE, truly.data(), int(truly.size()), MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  for (std::size_t a = 0; a < truly.size(); ++a)
    for (std::size_t b = 0; b < a; ++b) {
      long const apart = run.rows[a][0].start - run.rows[b][0].start;
      CHECK(std::abs(apart - (truly[a] - truly[b])) <= run.clock_error);
    }
  CHECK((run.clock_error > 0) == (Mpi::processes() > 1));
}

template <class Trainer>
void check_timeline() {
  constexpr int ranks = Trainer::compiled::ranks;
  Trainer trainer({.seed = 3});
  auto const batch = batch_of(trainer);
  for (int step = 0; step < 2; ++step) trainer.step(batch);
  executed_run const run = gather_executed(trainer);
  check_rows(trainer, run, Trainer::compiled::table());
  check_clock(trainer, run);
  check_transfers(drawings::of_run<Trainer>(run), ranks);
  trainer.evaluate(batch);
  check_rows(trainer, gather_executed(trainer), Trainer::compiled::work::evaluation());
}

}  // namespace

TEST_CASE("every process has the actions of all ranks on one clock") {
  check_timeline<Timed<Stages<4>, OneFOneB>>();
  check_timeline<Timed<Stages<4>, ZeroBubbleV>>();
}
TEST_CASE("replicas have rows of their own") {
  check_timeline<Timed<>>();
  check_timeline<Timed<Stages<2>, GradientAccumulation<8>>>();
}
TEST_CASE("one page has all ranks, predicted above measured") {
  using Trainer = Timed<Stages<2>>;
  Trainer trainer({.seed = 3});
  trainer.step(batch_of(trainer));
  std::string const path = processes::in_folder("step.html");
  // [page]
  drawings::drawing const measured = drawings::of_last_run(trainer);  // in all processes
  if (Mpi::process() == 0)
    files::write_file(path, drawings::as_html(drawings::of_plan<Trainer>(), measured));
  // [/page]
  transports::process_place const here = Mpi::transport::place(2);
  CHECK(measured.ranks.size() == std::size_t(2 * here.replicas));
  if (Mpi::process() != 0) return;
  std::string const page = processes::bytes_of(path);
  std::string const last = "rank 1\"";
  CHECK(page.find("\"" + last) != page.npos);
  if (here.replicas > 1)
    CHECK(page.find("\"replica " + std::to_string(here.replicas - 1) + ", " + last) != page.npos);
  bool const says =
      page.find("times of " + std::to_string(Mpi::processes()) + " processes within") != page.npos;
  CHECK(says == (Mpi::processes() > 1));
}
TEST_CASE("kernels of all processes are inside the actions that launched them") {
  using Trainer = Timed<Stages<2>>;
  Trainer trainer({.seed = 3});
  drawings::seen_kernels<Trainer> kernels;
  trainer.watch(batch_of(trainer), kernels.watcher());
  kernels.gather(trainer);
  drawings::drawing d = drawings::of_last_run(trainer);
  kernels.add_to(d);
  for (std::size_t row = 0; row < d.ranks.size(); ++row) {
    stage_plan const& stage = Trainer::plan.stages[int(row % 2)];
    detail::drawn_rank const& r = d.ranks[row];
    CHECK(int(r.details.size()) ==
          Trainer::plan.micro_batches * (stage.forward_kernels + stage.backward_kernels));
    std::size_t inside = 0;
    for (detail::drawn_detail const& k : r.details)
      for (detail::drawn_action const& a : r.actions)
        inside += a.start <= k.start && k.start <= k.end && k.end <= a.end;
    CHECK(inside >= r.details.size());
  }
}
