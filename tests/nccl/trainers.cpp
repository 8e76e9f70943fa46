// SPDX-License-Identifier: BSL-1.0
//
// Trainers in several processes with a device each: the real engine, transport and start-up, over
// the stand-ins for CUDA and NCCL. The bits are those of one process, whatever devices prefer.
#include <catch2/catch.hpp>

#include "device/centered.hpp"
#include "device/device.hpp"
#include "laws/bit_law.hpp"
#include "laws/everything.hpp"

#include <pipe/nccl.cuh>

#include "nccl/processes.hpp"

#include <string>
#include <vector>

using namespace pp;

namespace {

using fake_gpu::gpu;
using fake_gpu::preference;

/// Skips over all stages, a table that is also the head, dropout; four ranks.
template <class... More>
using Linked = Pipeline<laws::Everything, on_host::Device, BF16, AdamW, MicroBatches<4>,
                        MicroBatchSize<2>, Stages<4>, ZeroBubbleH1, RecomputeAllButLast, More...>;
/// A buffer that follows statistics, matrices that are updated whole, a loss that is scaled; two
/// ranks with two chunks each.
struct Followed : Model<Input<2, 3>, Custom<on_host::Centered>, Linear<4>, Tanh,
                        Custom<on_host::Centered>, Linear<2>, MSE> {};
template <class... More>
using Scaled = Pipeline<Followed, on_host::Device, FP16, Muon, MicroBatches<3>, MicroBatchSize<2>,
                        Stages<4>, ZeroBubbleV, Averaging<9, 10>, Prefetching, More...>;

/// The first difference that process has found, or "right".
class differences {
 public:
  void expect(bool is_so, std::string const& what) {
    if (!is_so && first_ == "right") first_ = what;
  }
  std::string first() const { return first_; }

 private:
  std::string first_ = "right";
};

/// The parameters of this process's ranks are those of the trainer that has all.
template <class One, class Many>
bool has_the_parameters(One& one, Many& many) {
  auto const all = one.parameters(), mine = many.parameters();
  bool same = all.size() == mine.size();
  std::size_t here = 0;
  for (std::size_t i = 0; same && i < all.size(); ++i) {
    if (mine[i].values.empty()) continue;
    ++here;
    same =
        laws::same_numbers(std::vector<float>(all[i].values.begin(), all[i].values.end()),
                           std::vector<float>(mine[i].values.begin(), mine[i].values.end())) &&
        laws::same_numbers(std::vector<float>(all[i].gradients.begin(), all[i].gradients.end()),
                           std::vector<float>(mine[i].gradients.begin(), mine[i].gradients.end()));
  }
  return same && here > 0;
}

template <class One, class Many>
std::string trains_alike(preference p) {
  gpu.prefers = p;
  gpu.devices = 8;
  differences found;
  {
    typename One::settings a{.seed = 5, .clip_value = 0.05, .clip_norm = 0.1};
    typename Many::settings b{.seed = 5, .clip_value = 0.05, .clip_norm = 0.1};
    One one(a);
    Many many(b);
    for (int i = 0; i < 3; ++i) {
      std::string const step = ", step " + std::to_string(i);
      laws::sample_batch<One> const data(std::uint64_t(i) + 1);
      long const samples = One::samples - i;
      auto const ours = data.view(samples);
      auto const theirs = data.template view<Many>(samples);
      if (i == 1) {
        auto const x = one.accumulate(ours), y = many.accumulate(theirs);
        found.expect(laws::same_bits(x.loss, y.loss), "loss of an accumulated mini-batch");
      }
      auto const x = one.step(ours), y = many.step(theirs);
      found.expect(laws::same_bits(x.loss, y.loss), "loss" + step);
      found.expect(laws::same_bits(x.gradient_norm, y.gradient_norm), "norm" + step);
      found.expect(x.loss_scale == y.loss_scale && x.skipped == y.skipped, "scale" + step);
      found.expect(has_the_parameters(one, many), "parameters" + step);
      found.expect(laws::same_bits(one.evaluate(ours), many.evaluate(theirs)), "evaluation" + step);
      std::vector<float> u(std::size_t(samples * One::outputs_per_sample)), v(u.size());
      one.forward(ours, u), many.forward(theirs, v);
      found.expect(laws::same_numbers(u, v), "outputs" + step);
    }
  }
  return found.first();
}

std::vector<std::string> same(int n, char const* text) {
  return std::vector<std::string>(std::size_t(n), text);
}

}  // namespace

TEST_CASE("trainers on GPUs in several processes have the bits of one") {
  for (int const n : {1, 2, 3, 4}) {
    fake_nccl::start_anew();
    fake_nccl::kernels_at_once = 1;
    CHECK(processes::launch(n, [&] {
            return trains_alike<Linked<>, Linked<Nccl>>(preference(n % 3));
          }) == same(n, "right"));
  }
  fake_nccl::start_anew();
  CHECK(processes::launch(2, [&] {
          return trains_alike<Scaled<>, Scaled<Nccl>>(preference::awaited);
        }) == same(2, "right"));
}

TEST_CASE("a drawing has the ranks of all processes") {
  fake_nccl::start_anew();
  CHECK(processes::launch(2, [] {
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
    auto const said = processes::launch(3, [&]() -> std::string {
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
  auto const said = processes::launch(2, [&]() -> std::string {
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
  using leaves = Pipeline<Followed, on_host::Device, Stages<2>, NcclReserving<16>>;
  STATIC_REQUIRE(cuda::source_of<leaves::compiled>::reserved_multiprocessors == 16);
  STATIC_REQUIRE(cuda::source_of<Linked<Nccl>::compiled>::reserved_multiprocessors == 0);
}

TEST_CASE("more processes than ranks are refused by all, unless they are a multiple") {
  fake_nccl::start_anew();
  using trainer = Pipeline<Followed, on_host::Device, Stages<2>, Nccl>;
  for (std::string const& text : processes::launch(3, [&]() -> std::string {
         gpu.devices = 8;
         trainer t;
         return "made";
       }))
    CHECK(text.find("the launcher has started 3 processes for a pipeline of 2 ranks") != std::string::npos);
}
