// SPDX-License-Identifier: BSL-1.0
//
// Buffers: memory of a layer that a step writes once, from statistics of its mini-batch. The same
// bits under every schedule, cut, recomputation and number of threads, over a transport that copies
// as within the process.
#include <catch2/catch.hpp>

#include <array>
#include <limits>
#include <string>
#include <vector>

#include "laws/bit_law.hpp"
#include "laws/centered.hpp"
#include "laws/schedules.hpp"
#include "transport/messages.hpp"

#include <pipe/train/copy_weights.hpp>
#include <pipe/train/planned.hpp>
#include <pipe/train/weights.hpp>

using namespace pp;
using laws::Centered, laws::sample_batch;

namespace {

struct Net : Model<Input<2, 3>, Custom<Centered>, Linear<4>, GELU, Custom<Centered>, Linear<4>,
                   Custom<Centered>, Linear<2>, MSE> {};
template <class... More>
using Of = Pipeline<Net, PortableHost, AdamW, MicroBatches<4>, MicroBatchSize<2>, More...>;
using one = Of<>;

/// The first layer's buffer after a mini-batch of these samples, in double precision.
std::array<double, 3> followed(std::array<double, 3> m, std::vector<float> const& x, long samples) {
  double sum[3]{};
  for (long i = 0; i < samples * 6; ++i) sum[i % 3] += double(x[std::size_t(i)]);
  for (std::size_t c = 0; c < 3; ++c) m[c] += 0.25 * (sum[c] / double(2 * samples) - m[c]);
  return m;
}
template <class Trainer>
void check_first(Trainer& t, std::array<double, 3> const& expected) {
  auto const found = t.parameters()[0].values;
  for (std::size_t c = 0; c < 3; ++c) CHECK(double(found[c]) == Approx(expected[c]).epsilon(1e-5));
}
template <class Trainer>
std::vector<float> buffers_of(Trainer& t) {
  std::vector<float> all;
  for (auto const& p : t.parameters())
    if (p.name.find("running") != std::string::npos)
      all.insert(all.end(), p.values.begin(), p.values.end());
  return all;
}

}  // namespace

TEST_CASE("a step commits the mean of its mini-batch once", "[laws][buffers]") {
  one t({.seed = 3});
  auto const all = t.parameters();
  REQUIRE(all.size() == 9);
  CHECK(all[0].name == "0.running_mean");
  CHECK(all[0].file_shape == std::vector<long>{3});
  CHECK(all[0].gradients.empty());
  CHECK(buffers_of(t) == std::vector<float>(3 + 4 + 4));
  std::array<double, 3> m{};
  for (long samples : {8, 8, 5, 1}) {  // the last micro-batch may be partial, others absent
    sample_batch<one> const data(std::uint64_t(samples + 3));
    t.step(data.view(samples));
    m = followed(m, data.inputs, samples);
    check_first(t, m);
  }
}

TEST_CASE("what is no step writes no buffer", "[laws][buffers]") {
  laws::looking_changes_nothing<one>(4);
  one t({.seed = 4});
  sample_batch<one> data(5), other(6);
  t.step(data.view());
  auto const before = buffers_of(t);
  t.evaluate(other.view());
  t.gradients(other.view());
  t.accumulate(other.view());
  CHECK(buffers_of(t) == before);
  t.parameters_changed();  // forgets what was accumulated
  data.inputs[7] = std::numeric_limits<float>::quiet_NaN();
  CHECK_THROWS_AS(t.step(data.view()), not_finite);
  CHECK(buffers_of(t) == before);
}

TEST_CASE("accumulated mini-batches are committed as one", "[laws][buffers]") {
  one t({.seed = 5});
  sample_batch<one> const first(7), second(8);
  t.accumulate(first.view());
  CHECK(buffers_of(t) == std::vector<float>(11));
  t.step(second.view(3));
  std::vector<float> x = first.inputs;
  x.insert(x.end(), second.inputs.begin(), second.inputs.begin() + 3 * 6);
  check_first(t, followed({}, x, 11));
}

TEST_CASE("buffers have the bits of one stage", "[laws][buffers]") {
  // Mini-batches of 8, 5 and 2 samples.
  constexpr int layers = Net::graph.size.units;
  laws::same_as_one_stage<one, Of<Stages<layers>, laws::LateWeights>>(7, 3, 3);
  laws::same_as_one_stage<one, Of<Stages<3>, RecomputeAll>>(7, 3, 3);
  laws::same_as_one_stage<one, Of<Stages<4>, Interleaved<2>, RecomputeAllButLast>>(7, 3, 3);
  laws::same_as_one_stage<one, Of<Stages<4>, ZeroBubbleV, Recompute<op_kind::custom>>>(7, 3, 3);
  laws::same_as_one_stage<one, Of<Stages<2>, HostThreads<2>>>(7, 3, 3);
  laws::same_as_one_stage<one, Of<Stages<4>, Messages, RecomputeAll>>(7, 3, 3);
}
