// SPDX-License-Identifier: BSL-1.0
//
// A step with Lengths, of samples that fill an eighth, a quarter and a half of the context, against
// a step of the same samples by a model of that context, and against the step that computes the
// padding too. The model is the example GPT with four blocks, one thread; all take turns.
//
// Then, simulated: the bubble of 1F1B with 4 stages and 16 micro-batches of the same model, for
// texts of 32 to 512 tokens, each length half as frequent as the one before, by their composition.
//
// Argument: rounds (default 15).
#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <pipe/pipe.hpp>
#include <pipe/plan/compiled/planned.hpp>
#include <pipe/report/explain_lengths.hpp>

#include "peer/machine.hpp"
#include "peer/turns.hpp"
#include "steps/networks.hpp"

using namespace pp;

namespace {

constexpr int context = 512, samples = 16;

template <int Context, class... Options>
using trainer =
    Pipeline<bench::GPT<96, 3, 4, Context>, MicroBatches<4>, MicroBatchSize<4>, AdamW, Options...>;

/// Ids of `real` positions in each sample, then -1 up to `positions`.
std::vector<int> tokens(int real, int positions) {
  std::vector<int> all;
  unsigned seed = 1;
  for (int s = 0; s < samples; ++s)
    for (int t = 0; t < positions; ++t) {
      seed = seed * 1664525u + 1013904223u;
      all.push_back(t < real ? int(seed >> 24) : -1);
    }
  return all;
}

/// The time of a step with Lengths over that of a model of context `Real`.
template <int Real>
double measure(trainer<context>& padded, trainer<context, Lengths<>>& dense, int rounds) {
  trainer<Real> own;
  std::vector<int> const given = tokens(Real, context), short_given = tokens(Real, Real);
  bench::turns const t({[&] { padded.step({given, given}); }, [&] { dense.step({given, given}); },
                        [&] { own.step({short_given, short_given}); }},
                       rounds, bench::thread_seconds);
  std::printf("%8d %10.2f %10.2f %10.2f %10.3f %10.3f\n", Real, 1e3 * t.median(0),
              1e3 * t.median(1), 1e3 * t.median(2), t.ratio(1, 2), t.ratio(1, 0));
  return t.ratio(1, 2);
}

/// Prints the bubbles of the compositions beside that of equal samples.
void simulate_compositions() {
  using texts = Planned<bench::GPT<96, 3, 4, context>, Stages<4>, MicroBatches<16>,
                        MicroBatchSize<4>, AdamW, Lengths<>>;
  std::vector<int> lengths;
  unsigned seed = 1;
  for (int s = 0; s < 6400; ++s) {
    seed = seed * 1664525u + 1013904223u;
    lengths.push_back(32 << std::min(4, std::countl_one(seed)));
  }
  std::printf("\n%s", explain_lengths<texts>(lengths).c_str());
  detail::expected_epochs<texts::compiled> const expected(lengths);
  std::printf("figure lengths_bubble_equal %.3f\n", expected.padded().bubble);
  using enum detail::composition;
  std::printf("figure lengths_bubble_as_they_come %.3f\n", expected.of(as_they_come).bubble);
  std::printf("figure lengths_bubble_by_length %.3f\n", expected.of(by_length).bubble);
  std::printf("figure lengths_bubble_by_tokens %.3f\n", expected.of(by_tokens).bubble);
  std::printf("figure lengths_bubble_packed %.3f\n", expected.of(packed).bubble);
}

}  // namespace

int main(int count, char** arguments) {
  int const rounds = count > 1 ? std::max(1, std::atoi(arguments[1])) : 15;
  std::printf(
      "a step of 16 samples of a context of %d, with %s, one thread; medians of %d rounds\n",
      context, bench::instruction_set(), rounds);
  std::printf("%8s %10s %10s %10s %10s %10s\n", "tokens", "padded, ms", "Lengths", "own model",
              "of own", "of padded");
  trainer<context> padded;
  trainer<context, Lengths<>> dense;
  double const eighth = measure<context / 8>(padded, dense, rounds),
               quarter = measure<context / 4>(padded, dense, rounds),
               half = measure<context / 2>(padded, dense, rounds);
  std::printf("figure lengths_eighth_over_own_model %.3f\n", eighth);
  std::printf("figure lengths_quarter_over_own_model %.3f\n", quarter);
  std::printf("figure lengths_half_over_own_model %.3f\n", half);
  simulate_compositions();
}
