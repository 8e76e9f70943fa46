// SPDX-License-Identifier: BSL-1.0
//
// The optimizer's state in the memory of the host: the same bits, arenas that are smaller by it,
// page-locked memory as planned, and no copy of it between the two.
#include <algorithm>
#include <string>
#include <vector>

#include "device/device.hpp"
#include "device/optimizer_laws.hpp"
#include "laws/bit_law.hpp"
#include "laws/everything.hpp"

using namespace pp;

namespace {

using fake_gpu::gpu;
using fake_gpu::preference;

/// Sizes of allocations, ascending.
std::vector<long> sizes_of(std::map<void*, long> const& all) {
  std::vector<long> sizes;
  for (auto const& [at, size] : all) sizes.push_back(size);
  std::sort(sizes.begin(), sizes.end());
  return sizes;
}

/// Memory that a trainer has allocated, and bytes that its steps have copied.
struct use_of_memory {
  std::vector<long> device, pinned;
  long downloaded = 0, uploaded = 0, launches = 0;
};
template <class Trainer>
use_of_memory of_a_step() {
  REQUIRE((gpu.memory.empty() && gpu.pinned.empty()));
  Trainer t;
  laws::sample_batch<Trainer> const data(1);
  gpu.count = {};
  t.step(data.view());
  return {sizes_of(gpu.memory), sizes_of(gpu.pinned), gpu.count.downloaded, gpu.count.uploaded,
          gpu.count.launches};
}

/// `With` is `Without` and OffloadState.
template <class Without, class With>
void moves_exactly_the_state() {
  auto const &before = Without::plan, &after = With::plan;
  std::vector<long> device, pinned;
  for (int r = 0; r < before.rank_count; ++r) {
    INFO("rank " << r);
    long state = 0;
    for (stage_plan const& s : after.stages)
      if (s.rank == r) state += s.host_bytes;
    CHECK(state > 0);
    CHECK(after.host_bytes[r] == state);
    CHECK(before.host_bytes[r] == 0);
    CHECK(after.rank_bytes[r] == before.rank_bytes[r] - state);
    long shares = 0;
    for (detail::memory_share const& share : after.memory_of(r)) shares += share.bytes;
    CHECK(shares == after.rank_bytes[r]);
    device.push_back(after.rank_bytes[r]), pinned.push_back(after.host_bytes[r]);
  }
  for (int s = 0; s < before.stage_count; ++s) {
    stage_plan const &a = before.stages[s], &b = after.stages[s];
    CHECK(b.optimizer_bytes == a.optimizer_bytes - b.host_bytes);
    CHECK(b.bytes == a.bytes - b.host_bytes);
  }
  use_of_memory const a = of_a_step<Without>(), b = of_a_step<With>();
  std::sort(device.begin(), device.end());
  CHECK(b.device == device);
  pinned.insert(pinned.end(), a.pinned.begin(), a.pinned.end());
  std::sort(pinned.begin(), pinned.end());
  CHECK(b.pinned == pinned);
  // Kernels reach it where it is.
  CHECK(a.downloaded == b.downloaded);
  CHECK(a.uploaded == b.uploaded);
  CHECK(a.launches == b.launches);
}

/// After each of some steps.
template <class Without, class With>
void has_the_bits_of_state() {
  Without a({.seed = 3});
  With b({.seed = 3});
  for (int step = 0; step < 3; ++step) {
    laws::sample_batch<Without> const data(std::uint64_t(step) + 1);
    a.step(data.view()), b.step(data.template view<With>());
    for (int s = 0; s < With::plan.stage_count; ++s) {
      std::size_t const bytes = std::size_t(With::plan.stages[s].host_bytes);
      auto const of = [&](auto const& t) {
        char const* const state = t.processes().parameters.engine->state(s);
        return std::vector<char>(state, state + bytes);
      };
      std::vector<char> const x = of(a), y = of(b);
      CHECK(x == y);
      CHECK((x.empty() || std::count(x.begin(), x.end(), 0) < long(bytes)));
    }
  }
}

/// With two stages for each rank.
template <class Optimizer, class Precision>
void holds_for() {
  using without = laws::trained<Optimizer, Precision, Stages<4>, ZeroBubbleV>;
  using with = laws::trained<Optimizer, Precision, Stages<4>, ZeroBubbleV, OffloadState>;
  laws::gives_the_bits_of<without, with>(preference::last);
  has_the_bits_of_state<without, with>();
  moves_exactly_the_state<without, with>();
}

template <class... More>
using Net = Pipeline<laws::Everything, on_host::Device, BF16, AdamW, MicroBatches<4>,
                     MicroBatchSize<2>, Stages<4>, ZeroBubbleH1, RecomputeAllButLast, More...>;

}  // namespace

TEST_CASE("state on the host: single elements", "[cuda]") {
  holds_for<AdamW, FP16>();
  holds_for<Lion, FP32>();
}
TEST_CASE("state on the host: whole tensors", "[cuda]") {
  holds_for<LAMB, BF16>();
  holds_for<Adafactor, FP32>();
}
TEST_CASE("state on the host: matrices", "[cuda]") { holds_for<Muon, BF16>(); }
TEST_CASE("state on the host of several devices", "[cuda]") {
  fake_gpu::several_devices const machine(4);
  for (preference p : {preference::awaited, preference::last, preference::first}) {
    gpu.prefers = p;
    laws::train_alike_from_the_start<Net<Devices<4>>, Net<Devices<4>, OffloadState>>(7, 3, 3);
  }
  gpu.prefers = preference::awaited;
  CHECK(gpu.foreign == 0);
  moves_exactly_the_state<Net<Devices<4>>, Net<Devices<4>, OffloadState>>();
}

TEST_CASE("explain lists state on the host by rank", "[cuda]") {
  using trainer = Net<OffloadState>;
  long all = 0;
  for (long const bytes : trainer::plan.host_bytes) all += bytes;
  std::string const text = explain<trainer>();
  INFO(text);
  CHECK(text.find("allocated  on the host\n") != text.npos);
  CHECK(text.find(" in all, and " + console::readable_bytes(all) +
                  " of optimizer state on the host\n") != text.npos);
  CHECK(explain<Net<Devices<4>>>().find("on the host") == std::string::npos);
}

TEST_CASE("state on the host in a graph and by streams", "[cuda]") {
  laws::graphs_have_the_bits_of_streams<Net<OffloadState>, Net<OffloadState, NoGraphs>>();
}

TEST_CASE("memory that cannot be page-locked is refused by rank and size, and nothing is left",
          "[cuda]") {
  using trainer = Net<OffloadState>;
  auto const& of = trainer::plan.host_bytes;
  long all = 0, locked = 0;
  for (long const bytes : of) all += bytes;
  {
    trainer t;
    for (long const bytes : sizes_of(gpu.pinned)) locked += bytes;
  }
  locked -= all;  // by what is not state: little
  for (int r = 0; r < 4; ++r) {
    gpu.most_pinned = locked;
    CHECK_THROWS_WITH(trainer(), "rank " + std::to_string(r) +
                                     ": no page-locked memory on the host for " +
                                     std::to_string(of[r]) +
                                     " bytes of the optimizer's state, of " + std::to_string(all) +
                                     " that the plan needs in all: CUDA, allocation of "
                                     "page-locked memory: out of memory");
    CHECK((gpu.memory.empty() && gpu.pinned.empty()));
    CHECK(gpu.is_idle());
    locked += of[r];
  }
  gpu.most_pinned = locked;
  trainer();
  gpu.most_pinned = LONG_MAX;
  (void)cudaGetLastError();
}
