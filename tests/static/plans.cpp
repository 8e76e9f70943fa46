// SPDX-License-Identifier: BSL-1.0
//
// The plan is a constant: what it says can be asserted. Compiling is passing.
#include <pipe/pipe.hpp>
#include <pipe/tcp.hpp>

using namespace pp;
using namespace pp::detail;

namespace {

/// Layers without a bias, a norm or a loss worth mentioning, so that equal counts are nearly equal
/// stages.
struct Even : Model<Input<64>, Repeat<8, Linear<64>>, MSE> {};
template <int P, int M, class... More>
using Even1F1B = Pipeline<Even, Stages<P>, MicroBatches<M>, ByCount, PortableHost, More...>;

constexpr bool near(double a, double b, double by) { return a - b < by && b - a < by; }
/// The bubble of 1F1B and of GPipe is (P-1)/(M+P-1) with equal stages; with unequal ones the faster
/// wait for the slowest besides.
template <class Pipeline>
constexpr bool has_the_ideal_bubble() {
  constexpr double p = Pipeline::plan.stage_count, m = Pipeline::plan.micro_batches;
  return near(Pipeline::plan.bubble, 1 - (m / (m + p - 1)) / Pipeline::plan.imbalance, 0.03);
}

static_assert(Even1F1B<1, 5>::plan.bubble == 0);
static_assert(has_the_ideal_bubble<Even1F1B<4, 8>>());
static_assert(has_the_ideal_bubble<Even1F1B<4, 32>>());
static_assert(has_the_ideal_bubble<Even1F1B<4, 8, GPipe>>());
static_assert(has_the_ideal_bubble<Even1F1B<2, 1>>());
static_assert(Even1F1B<4, 8>::plan.imbalance < 1.1 && Even1F1B<4, 8>::plan.imbalance >= 1);

// What is planned, stage by stage.
using four = Even1F1B<4, 8>;
static_assert(four::plan.stage_count == 4 && four::plan.rank_count == 4);
static_assert(four::plan.micro_batches == 8 && four::plan.micro_batch_size == 1 &&
              four::samples == 8);
static_assert(four::plan.stages[0].first_layer == 0 && four::plan.stages[0].end_layer == 2 &&
              four::plan.stages[3].end_layer == 8);
static_assert(four::plan.stages[1].rank == 1 && four::plan.stages[1].in == sample_shape(64) &&
              four::plan.stages[1].out == sample_shape(64));
static_assert(four::plan.parameters == 8 * (64 * 64 + 64));
static_assert(four::plan.stages[2].parameters == 2 * (64 * 64 + 64));
static_assert(four::plan.stages[0].in_flight == 4 && four::plan.stages[3].in_flight == 1 &&
              four::plan.peak_in_flight == 4);
static_assert(Even1F1B<4, 8, GPipe>::plan.peak_in_flight == 8);

// Exact sizes, where they can be written down: one Linear of 16 x 16, everything a multiple of a
// cache line.
struct Tiny : Model<Input<16>, Linear<16>, MSE> {};
using tiny = Pipeline<Tiny, SGD, PortableHost, MicroBatchSize<2>>;
static_assert(tiny::plan.stages[0].parameter_bytes == 4 * (16 * 16 + 16));
static_assert(tiny::plan.stages[0].gradient_bytes == 4 * (16 * 16 + 16));
static_assert(tiny::plan.stages[0].optimizer_bytes == 4 * (16 * 16 + 16));
static_assert(tiny::plan.stages[0].transposed_bytes == 0);  // nobody asks for the input's gradient
static_assert(tiny::plan.stages[0].saved_bytes ==
              2 * 16 * 4);  // the output, which its gradient overwrites
static_assert(tiny::plan.stages[0].boundary_bytes == 0);
static_assert(tiny::plan.stages[0].forward_flops == 2 * (2 * 16 * 16 + 16 + 8 * 16));
static_assert(Pipeline<Tiny, AdamW, PortableHost>::plan.stages[0].optimizer_bytes ==
              2 * 4 * (16 * 16 + 16));
static_assert(Pipeline<Tiny, SGD, FP64, PortableHost>::plan.stages[0].parameter_bytes ==
              8 * (16 * 16 + 16));

// A convolution has no matrix of columns in memory, of K x K x C numbers for each pixel: patches
// are gathered in blocks, whose size is bounded. Plain, in groups and transposed.
template <int K>
struct Windows
    : Model<Input<64, 64, 16>, Conv2d<16, K, Padding<K / 2>>, Tanh,
            Conv2d<16, K, Padding<K / 2>, Groups<2>>, ConvTranspose2d<16, K, Padding<K / 2>>, MSE> {
};
template <int K>
using Convolved = Pipeline<Windows<K>, SGD, PortableHost, MicroBatchSize<2>>;
template <int K>
constexpr long columns_bytes = 2L * 64 * 64 * K * K * 16 * 4;
// All that a rank has beside parameters and what is as large: values and workspace among it.
template <class Pipeline>
constexpr long bytes_beside_parameters() {
  stage_plan const& s = Pipeline::plan.stages[0];
  return Pipeline::plan.bytes - s.parameter_bytes - s.gradient_bytes - s.optimizer_bytes -
         s.transposed_bytes;
}
static_assert(bytes_beside_parameters<Convolved<3>>() < columns_bytes<3>);
static_assert(bytes_beside_parameters<Convolved<7>>() == bytes_beside_parameters<Convolved<5>>() &&
              bytes_beside_parameters<Convolved<7>>() <
                  bytes_beside_parameters<Convolved<3>>() + 128 * 1024);

// What takes a rank's memory is all of it, the largest first.
template <class Pipeline>
constexpr bool shares_add_up(int rank) {
  long sum = 0, last = Pipeline::plan.rank_bytes[rank];
  for (memory_share const& share : Pipeline::plan.memory_of(rank)) {
    if (share.bytes > last) return false;
    last = share.bytes;
    sum += share.bytes;
  }
  return sum == Pipeline::plan.rank_bytes[rank];
}
static_assert(shares_add_up<four>(0) && shares_add_up<four>(3) && shares_add_up<tiny>(0));
static_assert(Pipeline<Tiny, AdamW, PortableHost>::plan.memory_of(0)[0].bytes >=
              2 * 4 * (16 * 16 + 16));

// On a host all memory is the host's.
static_assert(Pipeline<Tiny, AdamW, PortableHost, OffloadState>::plan.rank_bytes[0] ==
              Pipeline<Tiny, AdamW, PortableHost>::plan.rank_bytes[0]);
static_assert(Pipeline<Tiny, AdamW, PortableHost, OffloadState>::plan.host_bytes[0] == 0);

// What passes between ranks: 64 floats each way for each micro-batch.
static_assert(four::plan.links.count == 6 && tiny::plan.links.count == 0);
static_assert(four::plan.links[0].from == 0 && four::plan.links[0].to == 1 &&
              four::plan.links[0].values == 4 * 64 && four::plan.links[0].gradients == 0);
static_assert(four::plan.links[1].from == 1 && four::plan.links[1].to == 0 &&
              four::plan.links[1].values == 0 && four::plan.links[1].gradients == 4 * 64);
static_assert(four::plan.step_bytes_of(four::plan.links[5]) == 8 * 4 * 64);
static_assert(Even1F1B<4, 8, GradientAccumulation<2>>::plan.step_bytes_of(four::plan.links[5]) ==
              2 * 8 * 4 * 64);
// Per unit of the time of the slowest rank, which has a share of it all: bytes over time.
static_assert([] {
  long slowest = 0;
  for (int s = 0; s < 4; ++s) {
    schedules::chunk_cost const& c = four::compiled::times().cost(s);
    long const time = c.forward + c.backward_input + c.backward_weight;
    slowest = time > slowest ? time : slowest;
  }
  return four::plan.links[0].bandwidth == 256.0 / double(slowest);
}());
// Two chunks of a rank share its link, forth and back, and its time.
using loop = Pipeline<Even, Stages<4>, MicroBatches<8>, ByCount, PortableHost, Interleaved<2>>;
static_assert(loop::plan.rank_count == 2 && loop::plan.links.count == 2 &&
              loop::plan.links[0].values == 2 * 256 && loop::plan.links[0].gradients == 256 &&
              loop::plan.links[1].values == 256 && loop::plan.links[1].gradients == 2 * 256);
// Replicas exchange gradients twice, and one loss each.
static_assert(four::plan.exchange_bytes_of(0, 1) == 0);
static_assert(four::plan.exchange_bytes_of(0, 4) == 3 * 2 * four::plan.stages[0].gradient_bytes);
static_assert(four::plan.exchange_bytes_of(3, 4) ==
              3 * (2 * four::plan.stages[3].gradient_bytes + 4 * 8));

// However many blocks, the kernels are those of two: the first, and all others.
template <int N>
struct Gpt : Model<Tokens<96, 32>, Embedding<48>, Positions,
                   Repeat<N, Residual<LayerNorm, Attention<4>>,
                          Residual<LayerNorm, Linear<192>, GELUTanh, Linear<48>>>,
                   LayerNorm, Linear<96>, CrossEntropy> {};
template <int N, class... More>
using compiled = compiled_pipeline<Gpt<N>, option_set<PortableHost, More...>>;
static_assert(compiled<2>::groups == compiled<96>::groups);
static_assert(compiled<4, Stages<2>>::groups == compiled<40, Stages<2>>::groups);
static_assert(Gpt<96>::graph.size.units == 2 + 2 * 96 + 2);

namespace replicas {
// [replicas]
struct Net
    : Model<Input<512>, Linear<512>, ReLU,
            Residual<LayerNorm, Linear<2048>, GELUTanh, Linear<512>>,  // four fifths of the time
            Linear<512>, ReLU, Linear<10>, CrossEntropy> {};
using Three = Pipeline<Net, Stages<3>, MicroBatches<16>, AdamW>;
using Six = Pipeline<Net, StageReplicas<1, 4, 1>, MicroBatches<16>, AdamW>;  // on 6 ranks
static_assert(Three::plan.imbalance > 2.3 && Six::plan.imbalance < 1.25);
static_assert(Six::plan.stages[1].rank == 1 && Six::plan.stages[1].ranks == 4);
// The numbers of ranks for which three stages on six ranks are fastest.
static_assert(std::is_same_v<BalancedReplicas<Net, 3, 6>, StageReplicas<1, 4, 1>>);
// [/replicas]
// [replicas_between]
using Between = Pipeline<Net, StageReplicas<1, 4, 1>, MicroBatches<16>, AdamW, Tcp>;
// Ranks 1 to 4 have the second stage's weights and gradients each, rank 1 its optimizer's state.
static_assert(Between::plan.stages[1].copied_bytes > 0 && Six::plan.stages[1].copied_bytes == 0);
// From rank 1 to rank 2 go the sums of micro-batches 0, 4, 8 and 12, in numbers of 4 bytes.
constexpr link_plan link = Between::plan.links[16];
static_assert(link.from == 1 && link.to == 2);
static_assert(link.sums == 4 * Between::plan.stages[1].trained * 4);
// [/replicas_between]
static_assert(Six::plan.stages[1].first_layer == 2 && Six::plan.stages[1].end_layer == 3);
static_assert(Six::plan.rank_bytes[2] < Six::plan.rank_bytes[1] / 10);
}  // namespace replicas

namespace threads {
struct MLP : Model<Input<784>, Linear<2048>, ReLU, Linear<2048>, ReLU, Linear<10>, CrossEntropy> {};
// [threads]
using Trainer = Pipeline<MLP, Stages<2>, MicroBatches<4>, HostThreads<8>, AdamW>;  // 16 cores
static_assert(Trainer::plan.threads == 8);
// [/threads]
// Each thread has a workspace as large as that of a rank of one thread, or smaller.
using Alone = Pipeline<MLP, Stages<2>, MicroBatches<4>, AdamW>;
static_assert(Trainer::plan.bytes > Alone::plan.bytes);
static_assert(Trainer::plan.bytes <= Alone::plan.bytes + 2 * 7 * Alone::compiled::workspace);
}  // namespace threads

}  // namespace
