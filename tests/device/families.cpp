// SPDX-License-Identifier: BSL-1.0
//
// Every schedule on several devices: values arrive at the right action, whatever the devices
// prefer, and every wait for an event is needed.
#include <algorithm>
#include <vector>

#include <catch2/catch.hpp>

#include "device/schedule_on_devices.hpp"

using namespace pp;

namespace {

using fake_gpu::gpu;
using fake_gpu::preference;

/// Whether a trainer runs a family's tables: they end in a flush, and each chunk is on one rank.
bool is_for_trainers(family const& f, run_time_problem const& p) {
  return f.trains && !f.searches && replicas(f.where) == 1 && f.refuses(p) == nullptr &&
         detail::check_runs(make_dynamic_table(f, p)).ok();
}

/// after[i][j]: node j comes after node i. Nodes are in an order that edges allow.
using relation = std::vector<std::vector<bool>>;
relation closure_of(fake_gpu::graph const& g) {
  relation after(g.nodes.size(), std::vector<bool>(g.nodes.size()));
  for (fake_gpu::node const& n : g.nodes)
    for (int const before : n.after) {
      auto const to = std::size_t(n.number);
      after[std::size_t(before)][to] = true;
      for (relation::value_type& row : after)
        if (row[std::size_t(before)]) row[to] = true;
    }
  return after;
}

}  // namespace

TEST_CASE("every schedule on several devices", "[cuda]") {
  fake_gpu::several_devices const machine(4);
  long runs = 0;
  std::vector<std::string_view> families;
  for (family const& f : catalog) {
    for (int ranks = 1; ranks <= 8; ++ranks)
      for (int const micro_batches : {1, 2, 3, 5, 8, 12, 17}) {
        int const per_rank = f.chunks_per_rank == 0 ? 2 : f.chunks_per_rank;
        run_time_problem p;
        p.ranks = ranks, p.chunks = ranks * per_rank / replicas(f.where);
        p.micro_batches = micro_batches;
        p.costs.resize(std::size_t(p.chunks));
        if (!is_for_trainers(f, p)) continue;
        int const devices = 1 + (ranks * 7 + micro_batches) % std::min(ranks, 4);
        INFO(f.name << ", " << ranks << " ranks on " << devices << " devices, " << micro_batches
                    << " micro-batches");
        on_host::pipeline_of_hashes const made(f, ranks, per_rank, micro_batches, devices);
        on_host::hashing_executor executor(made);
        gpu.prefers = preference(runs % 3);
        for (bool const by_graph : {false, true})
          for (int const samples : {micro_batches, std::max(1, micro_batches - 2)}) {
            executor.run(samples, by_graph);
            CHECK(executor.is_right(samples));
            ++runs;
          }
        if (families.empty() || families.back() != f.name) families.push_back(f.name);
      }
  }
  gpu.prefers = preference::awaited;
  CHECK(gpu.foreign == 0);
  CHECK(families.size() >= 12);
  CHECK(runs > 1000);
}

TEST_CASE("a wait that is left out shows, unless others imply it", "[cuda]") {
  fake_gpu::several_devices const machine(4);
  long needed = 0, implied = 0;
  for (char const* name : {"1f1b", "zb-h1", "gpipe", "interleaved", "zb-v"}) {
    INFO(name);
    family const* const f = find_family(name);
    REQUIRE(f != nullptr);
    // Each rank is alone on its device: all waits are for other ranks, or for copies.
    int const micro_batches = 6, per_rank = f->chunks_per_rank == 0 ? 2 : f->chunks_per_rank;
    on_host::pipeline_of_hashes const made(*f, 4, per_rank, micro_batches, 4);
    on_host::hashing_executor executor(made);
    gpu.waits = 0;
    executor.run(micro_batches, true);
    REQUIRE(executor.is_right(micro_batches));
    relation const whole = closure_of(executor.captured);
    for (long left_out = 0, count = gpu.waits; left_out < count; ++left_out) {
      gpu.waits = 0, gpu.left_out = left_out;
      bool is_refused = false;
      try {
        executor.run(micro_batches, true);
      } catch (pp::error const&) {
        is_refused = true;  // the capture has work that nothing waits for
      }
      bool const is_right = !is_refused && executor.is_right(micro_batches),
                 is_implied = !is_refused && closure_of(executor.captured) == whole;
      INFO("wait " << left_out);
      CHECK(is_right == is_implied);
      ++(is_implied ? implied : needed);
      gpu.left_out = -1, gpu.held_back.clear();
    }
  }
  CHECK(needed > 100);
  CHECK(implied > 0);
}
