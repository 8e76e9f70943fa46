// SPDX-License-Identifier: BSL-1.0
//
// Trainers in several processes with a device each against one that has all ranks and
// accumulations, which every process trains, too.
#pragma once

#include "device/centered.hpp"
#include "device/device.hpp"
#include "laws/bit_law.hpp"
#include "laws/everything.hpp"

#include <pipe/nccl.cuh>

#include "nccl/processes.hpp"

#include <string>
#include <vector>

namespace processes {

using fake_gpu::gpu;
using fake_gpu::preference;

/// Skips over all stages, a table that is also the head, dropout; four ranks.
template <class... More>
using Linked = pp::Pipeline<laws::Everything, on_host::Device, pp::BF16, pp::AdamW,
                            pp::MicroBatches<4>, pp::MicroBatchSize<2>, pp::Stages<4>,
                            pp::ZeroBubbleH1, pp::RecomputeAllButLast, More...>;
/// A buffer that follows statistics, matrices that are updated whole, a loss that is scaled; two
/// ranks with two chunks each.
struct Followed : pp::Model<pp::Input<2, 3>, pp::Custom<on_host::Centered>, pp::Linear<4>, pp::Tanh,
                            pp::Custom<on_host::Centered>, pp::Linear<2>, pp::MSE> {};
template <class... More>
using Scaled = pp::Pipeline<Followed, on_host::Device, pp::FP16, pp::Muon, pp::MicroBatches<3>,
                            pp::MicroBatchSize<2>, pp::Stages<4>, pp::ZeroBubbleV,
                            pp::Averaging<9, 10>, pp::Prefetching, More...>;

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
bool has_the_values(One& one, Many& many) {
  auto const all = one.parameters(), mine = many.parameters();
  bool same = all.size() == mine.size();
  std::size_t here = 0;
  for (std::size_t i = 0; same && i < all.size(); ++i) {
    if (mine[i].values.empty()) continue;
    ++here;
    same = laws::same_numbers(all[i].values, mine[i].values);
  }
  return same && here > 0;
}
/// So are their gradients.
template <class One, class Many>
bool has_the_parameters(One& one, Many& many) {
  bool same = has_the_values(one, many);
  auto const all = one.parameters(), mine = many.parameters();
  for (std::size_t i = 0; same && i < all.size(); ++i)
    same = mine[i].values.empty() || laws::same_numbers(all[i].gradients, mine[i].gradients);
  return same;
}

/// Three steps, the later ones on shorter mini-batches, of which the last replicas have nothing.
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
    pp::transports::process_place const place =
        Many::compiled::transport::place(Many::compiled::ranks);
    for (int r = place.first_rank; r < place.first_rank + place.ranks; ++r)
      found.expect(
          many.allocated_bytes(r) == Many::plan.rank_bytes_of(r, place.replicas, place.replica),
          "planned bytes");
    for (int i = 0; i < 3; ++i) {
      std::string const step = ", step " + std::to_string(i);
      laws::sample_batch<One> const data(std::uint64_t(i) + 1);
      long const samples = One::samples * (4 - i) / 4 - i;
      auto const ours = data.view(samples);
      auto const theirs = data.template view<Many>(samples);
      if constexpr (One::compiled::sum::accumulations == 1)
        if (i == 1) {
          auto const x = one.accumulate(ours), y = many.accumulate(theirs);
          found.expect(laws::same_bits(x.loss, y.loss), "loss of an accumulated mini-batch");
        }
      auto const x = one.step(ours), y = [&] {
        if constexpr (Many::compiled::prefetching::is_on)
          if (i > 0) return many.prefetch(theirs), many.step(pp::prefetched);
        return many.step(theirs);
      }();
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

inline std::vector<std::string> same(int n, char const* text) {
  return std::vector<std::string>(std::size_t(n), text);
}

/// Checks that trains_alike finds no difference with this number of processes.
template <class One, class Many>
void train_alike(int processes) {
  INFO(processes << " processes");
  fake_nccl::start_anew();
  CHECK(launch(processes, [&] { return trains_alike<One, Many>(preference(processes % 3)); }) ==
        same(processes, "right"));
}

}  // namespace processes
