// SPDX-License-Identifier: BSL-1.0
//
// The bit law over MPI's processes. Started by mpirun: see run.py. Every process trains one stage
// by itself, too, and compares what it has of the pipeline.
#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>

#include <pipe/mpi.hpp>

#include "laws/families.hpp"
#include "transport/models.hpp"

#include <cstdio>

using namespace pp;
using transports::Shared, transports::Small;

namespace {

/// Whether the parameters and gradients that a process has are those of one stage.
template <class One, class Many>
bool same_parameters(One& one, Many& many) {
  auto const all = one.parameters();
  for (auto const& mine : many.parameters())
    for (auto const& p : all)
      if (p.index == mine.index && (!laws::same_numbers(p.values, mine.values) ||
                                    !laws::same_numbers(p.gradients, mine.gradients)))
        return false;
  return true;
}

template <class One, class Many>
void trains_like_one() {
  One one({.seed = 3, .clip_norm = 0.1});
  Many many({.seed = 3, .clip_norm = 0.1});
  CHECK(same_parameters(one, many));
  long const fewer = One::samples > 6 ? 3 : 1;
  for (int step = 0; step < 3; ++step) {
    laws::sample_batch<One> const data(step);
    long const samples = One::samples - fewer * step;
    if (samples < 1) break;
    auto const ours = data.view(samples);
    auto const theirs = data.template view<Many>(samples);
    auto const a = one.step(ours), b = many.step(theirs);
    CHECK(laws::same_bits(a.loss, b.loss));
    CHECK(laws::same_bits(a.gradient_norm, b.gradient_norm));
    CHECK(same_parameters(one, many));
    CHECK(laws::same_bits(one.evaluate(ours), many.evaluate(theirs)));
    std::vector<float> x(std::size_t(samples * One::outputs_per_sample)), y(x.size());
    one.forward(ours, x);
    many.forward(theirs, y);
    CHECK(laws::same_numbers(x, y));
  }
}

}  // namespace

TEST_CASE("skips, shared weights and further inputs give the bits of one stage") {
  trains_like_one<Small<Shared>, Small<Shared, Mpi, Stages<8>>>();
}

int main(int count, char** arguments) {
  int const code = Catch::Session().run(count, arguments);
  std::printf("process %d of %d: %s\n", Mpi::process(), Mpi::processes(),
              code == 0 ? "good" : "bad");
  std::fflush(stdout);
  return code;
}
