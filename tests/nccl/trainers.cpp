// SPDX-License-Identifier: BSL-1.0
//
// Trainers in several processes with a device each: the real engine, transport and start-up, over
// the stand-ins for CUDA and NCCL. The bits are those of one process, whatever devices prefer.
#include "catch.hpp"

#include "nccl/alike.hpp"

#include <string>
#include <vector>

using namespace pp;
using namespace processes;

TEST_CASE("trainers on GPUs in several processes have the bits of one") {
  for (int const n : {1, 2, 3, 4}) {
    fake_nccl::start_anew();
    fake_nccl::kernels_at_once = 1;
    CHECK(launch(n, [&] { return trains_alike<Linked<>, Linked<Nccl>>(preference(n % 3)); }) ==
          same(n, "right"));
  }
  fake_nccl::start_anew();
  CHECK(launch(2, [&] {
          return trains_alike<Scaled<>, Scaled<Nccl, OffloadState>>(preference::awaited);
        }) == same(2, "right"));
}

TEST_CASE("a drawing has the ranks of all processes") {
  fake_nccl::start_anew();
  CHECK(launch(2, [] {
          gpu.prefers = preference::first;
          gpu.devices = 8;
          differences found;
          using trainer = Linked<Nccl>;
          trainer t({.seed = 5, .runtime = {.timeline = true}});
          laws::sample_batch<trainer> const data(1);
          t.step(data.view());
          executed_run const run = gather_executed(t);
          found.expect(run.processes == 2 && run.ranks == 4 && run.rows.size() == 4, "size");
          auto const& planned = trainer::compiled::table();
          for (int r = 0; r < int(run.rows.size()); ++r) {
            auto const& row = run.rows[std::size_t(r)];
            found.expect(int(row.size()) == planned.size(r), "actions of a rank");
            long before = 0;
            for (int i = 0; i < int(row.size()); ++i) {
              executed_action const& a = row[std::size_t(i)];
              found.expect(a.what == planned.at(r, i), "order of a rank");
              found.expect(a.start >= before && a.end >= a.start, "times of a rank");
              before = a.end;
            }
          }
          return found.first();
        }) == same(2, "right"));
}
TEST_CASE("a process that is lost ends the runs of the others, and their trainers are broken") {
  for (bool const in_a_run : {false, true}) {
    fake_nccl::start_anew();
    auto const said = launch(3, [&]() -> std::string {
      gpu.devices = 8;
      using trainer = Linked<Nccl>;
      trainer t;
      laws::sample_batch<trainer> const data(1);
      t.step(data.view());
      if (Nccl::process() == 1 && !in_a_run) kill(getpid(), SIGKILL);
      auto const dies = [&](launch_seen const& seen) {
        if (Nccl::process() == 1 && seen.micro_batch == 2) kill(getpid(), SIGKILL);
      };
      std::string text;
      try {
        in_a_run ? t.watch(data.view(), dies) : t.step(data.view());
      } catch (rank_error const& e) {
        text = e.what();
      }
      try {
        t.step(data.view());
        return "a broken trainer goes on";
      } catch (error const&) {
      }
      return text;
    });
    CHECK(said[1] == "ended by signal 9");
    for (std::size_t const p : {0u, 2u}) {
      INFO(said[p]);
      CHECK(said[p].find("process 1 was lost: killed") != std::string::npos);
    }
  }
}

TEST_CASE("a run that fails in one process ends those of the others") {
  fake_nccl::start_anew();
  auto const said = launch(2, [&]() -> std::string {
    gpu.devices = 8;
    using trainer = Linked<Nccl>;
    trainer t;
    laws::sample_batch<trainer> const data(1);
    t.step(data.view());
    if (Nccl::process() == 1) gpu.failing = gpu.calls + 40;
    try {
      t.step(data.view());
    } catch (rank_error const& e) {
      return std::string("rank_error: ") + e.what();
    } catch (error const& e) {
      return std::string("error: ") + e.what();
    }
    return "no error";
  });
  INFO(said[0] << "; " << said[1]);
  CHECK(said[0].find("rank_error: ") == 0);
  CHECK(said[0].find("CUDA, ") != std::string::npos);
  CHECK(said[1].find("error: CUDA, ") == 0);
}

TEST_CASE("multiprocessors that are left to NCCL are a constant of the kernels") {
  using accumulations = Pipeline<Followed, on_host::Device, Stages<2>, NcclReserving<16>>;
  STATIC_REQUIRE(cuda::source_of<accumulations::compiled>::reserved_multiprocessors == 16);
  STATIC_REQUIRE(cuda::source_of<Linked<Nccl>::compiled>::reserved_multiprocessors == 0);
}

TEST_CASE("more processes than ranks are refused by all, unless they are a multiple") {
  fake_nccl::start_anew();
  using trainer = Pipeline<Followed, on_host::Device, Stages<2>, Nccl>;
  for (std::string const& text : launch(3, [&]() -> std::string {
         gpu.devices = 8;
         trainer t;
         return "made";
       }))
    CHECK(text.find("the launcher has started 3 processes for a pipeline of 2 ranks") !=
          std::string::npos);
}
