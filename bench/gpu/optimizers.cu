// SPDX-License-Identifier: BSL-1.0
//
// What the update of each optimizer takes on 123 million parameters, most of which are in matrices:
// the time of a step less that of its gradients alone, which are of few samples.
#include <algorithm>
#include <vector>

#include <pipe/pipe.hpp>

#include "measure.cuh"

using namespace pp;

namespace {

/// The layers of GPT-2 124M that are wide, twice.
struct Wide : Model<Input<768>, Repeat<26, Residual<Linear<3072>, GELUTanh, Linear<768>>>, MSE> {};

/// Median microseconds of an update; gradients and steps are measured in turns.
template <class Optimizer, class... More>
double microseconds_of_update() {
  using Trainer =
      Pipeline<Wide, MicroBatches<1>, MicroBatchSize<16>, BF16, Optimizer, Cuda, More...>;
  Trainer trainer;
  std::vector<float> const x(std::size_t(Trainer::samples * Trainer::inputs_per_sample), 0.5f),
      y(std::size_t(Trainer::samples * Trainer::outputs_per_sample), 1.0f);
  std::vector<double> all;
  for (int i = -3; i < 15; ++i) {
    double const gradients = trainer.accumulate({x, y}).seconds,
                 step = trainer.step({x, y}).seconds;
    if (i >= 0) all.push_back(1e6 * (step - gradients));
  }
  std::sort(all.begin(), all.end());
  return all[all.size() / 2];
}

}  // namespace

int main() {
  return bench::run("optimizers", [] {
    double const adamw = microseconds_of_update<AdamW>();
    bench::figure("update_us_adamw", adamw, 0);
    auto const measure = [&]<class Optimizer>(char const* name, Optimizer) {
      double const us = microseconds_of_update<Optimizer>();
      bench::figure(std::string("update_us_") + name, us, 0);
      bench::figure(std::string("update_over_adamw_") + name, us / adamw);
    };
    measure("lamb", LAMB{});
    measure("adafactor", Adafactor{});
    measure("muon", Muon{});
    using offloading = Pipeline<Wide, BF16, AdamW, Cuda, OffloadState>;
    double const us = microseconds_of_update<AdamW, OffloadState>();
    bench::figure("update_us_adamw_state_on_host", us, 0);
    bench::figure("link_gb_per_second_each_way",
                  double(offloading::plan.host_bytes[0]) * 1e-3 / us);
  });
}
