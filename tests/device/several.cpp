// SPDX-License-Identifier: BSL-1.0
//
// The engine on several devices: the bits of one device, whatever the devices prefer; kernels read
// and write the memory of their own device only; and the rules of the machine that stands in.
#include <algorithm>
#include <string>
#include <vector>

#include "device/centered.hpp"
#include "device/device.hpp"
#include "laws/bit_law.hpp"
#include "laws/everything.hpp"

using namespace pp;

namespace {

using fake_gpu::gpu;
using fake_gpu::preference;
using fake_gpu::several_devices;

/// Skips over all stages, a table that is also the head, dropout.
template <int N>
using Linked =
    Pipeline<laws::Everything, on_host::Device, BF16, AdamW, MicroBatches<4>, MicroBatchSize<2>,
             Stages<4>, ZeroBubbleH1, RecomputeAllButLast, Devices<N>>;

/// A buffer that follows statistics, matrices that are updated whole, a loss that is scaled.
struct Followed : Model<Input<2, 3>, Custom<on_host::Centered>, Linear<4>, Tanh,
                        Custom<on_host::Centered>, Linear<2>, MSE> {};
template <int N>
using Scaled = Pipeline<Followed, on_host::Device, FP16, Muon, MicroBatches<3>, MicroBatchSize<2>,
                        Stages<3>, Averaging<9, 10>, Prefetching, Devices<N>>;

template <class One, class Many>
void trains_alike(typename One::settings const& a, typename Many::settings const& b) {
  One one(a);
  Many many(b);
  for (int i = 0; i < 4; ++i) {
    laws::sample_batch<One> const data(std::uint64_t(i) + 1), next(std::uint64_t(i) + 90);
    long const samples = One::samples - i % 2;
    auto const ours = data.view(samples);
    auto const theirs = data.template view<Many>(samples);
    many.prefetch(next.template view<Many>());
    CHECK(laws::same_bits(one.accumulate(ours).loss, many.accumulate(theirs).loss));
    auto const x = one.step(next.view()), y = many.step(prefetched);
    CHECK(laws::same_bits(x.loss, y.loss));
    CHECK(laws::same_bits(x.gradient_norm, y.gradient_norm));
    CHECK(x.skipped == y.skipped);
    CHECK(x.loss_scale == y.loss_scale);
    CHECK(laws::same_numbers(laws::snapshot(one).values, laws::snapshot(many).values));
    one.swap_averages(), many.swap_averages();
    CHECK(laws::same_bits(one.evaluate(ours), many.evaluate(theirs)));
    CHECK(laws::same_numbers(laws::snapshot(one).values, laws::snapshot(many).values));
    one.swap_averages(), many.swap_averages();
  }
}

}  // namespace

TEST_CASE("several devices give the bits of one", "[cuda]") {
  several_devices const machine(4);
  for (preference p : {preference::awaited, preference::last, preference::first}) {
    gpu.prefers = p;
    gpu.count = {};
    laws::train_alike_from_the_start<Linked<1>, Linked<4>>(7, 3, 3);
    CHECK(gpu.count.peer_copies > 0);
    laws::train_alike_from_the_start<Linked<1>, Linked<3>>(8, 2);
    for (bool const by_streams : {false, true})
      trains_alike<Scaled<1>, Scaled<2>>(
          {.seed = 5, .clip_value = 0.02, .clip_norm = 0.1},
          {.seed = 5, .clip_value = 0.02, .clip_norm = 0.1, .runtime = {.timeline = by_streams}});
  }
  gpu.prefers = preference::awaited;
  CHECK(gpu.foreign == 0);
  CHECK(gpu.memory.empty());
}

TEST_CASE("a trainer has the memory of its plan, rank by rank, on its devices", "[cuda]") {
  several_devices const machine(4);
  using trainer = Linked<3>;
  trainer t;
  std::vector<std::pair<int, long>> found, planned;
  for (auto const& [at, bytes] : gpu.memory) found.emplace_back(gpu.homes.at(at).device, bytes);
  for (int r = 0; r < 4; ++r)
    planned.emplace_back(r == 0 ? 0 : r == 1 ? 1 : 2, trainer::plan.rank_bytes[r]);
  std::sort(found.begin(), found.end()), std::sort(planned.begin(), planned.end());
  CHECK(found == planned);
  CHECK(t.runs_on() == "3 x a CPU, steps as CUDA graphs");
  // Received values and what each device needs are part of the plan.
  CHECK(trainer::plan.rank_bytes[1] > Linked<1>::plan.rank_bytes[1]);
}

TEST_CASE("the timeline of several devices has one clock", "[cuda]") {
  several_devices const machine(2);
  Scaled<2> t({.runtime = {.timeline = true}});
  laws::sample_batch<Scaled<2>> const data(1);
  gpu.count = {};
  auto const r = t.step(data.view());
  CHECK(std::isfinite(r.bubble));
  CHECK(gpu.count.timings > 0);  // which fails for events of two devices
}

TEST_CASE("calls of a trainer leave the current device as it was", "[cuda]") {
  several_devices const machine(4);
  REQUIRE(cudaSetDevice(2) == cudaSuccess);
  Scaled<2> t;
  laws::sample_batch<Scaled<2>> const data(1);
  CHECK(fake_gpu::current == 2);
  t.prefetch(data.view());
  t.step(prefetched);
  CHECK(fake_gpu::current == 2);
  CHECK(t.evaluate(data.view()) > 0);
  t.parameters();
  CHECK(fake_gpu::current == 2);
}

TEST_CASE("devices that are too few, or differ, are refused by name", "[cuda]") {
  several_devices const machine(2);
  CHECK_THROWS_WITH(Linked<4>(), "no CUDA device 3: there are 2");
  CHECK(fake_gpu::current == 0);
  gpu.multiprocessors[1] = 114;
  CHECK_THROWS_WITH(Scaled<2>(), Catch::Contains("must be alike: CUDA device 0 (a CPU) is sm_90 "
                                                 "with 132 multiprocessors, and CUDA device 1"));
  gpu.multiprocessors[1] = 132;
}

TEST_CASE("devices that do not reach each other run by streams", "[cuda]") {
  several_devices const machine(2);
  gpu.are_peers = false;
  Scaled<2> t;
  CHECK(t.runs_on() ==
        "2 x a CPU, steps by streams: a device does not reach the memory of another");
  laws::sample_batch<Scaled<2>> const data(1);
  for (int i = 0; i < 3; ++i) CHECK(std::isfinite(t.step(data.view()).loss));
  gpu.are_peers = true;
}

TEST_CASE("a failure on any device leaves none with work", "[cuda]") {
  several_devices const machine(2);
  Scaled<2> t;
  laws::sample_batch<Scaled<2>> const data(1);
  t.step(data.view());
  t.evaluate(data.view());
  gpu.calls = 0;
  t.evaluate(data.view());
  long const calls = gpu.calls;
  for (long i = 0; i < calls; i += 7) {
    gpu.calls = 0, gpu.failing = i;
    try {
      t.evaluate(data.view());
    } catch (error const&) {
    }
    gpu.failing = -1;
    CHECK(gpu.is_idle());
    CHECK(cudaGetLastError() == cudaSuccess);
  }
  CHECK(t.step(data.view()).loss > 0);
}

TEST_CASE("the machine that stands in enforces the rules of several devices", "[cuda]") {
  using fake_gpu::node_kind;
  several_devices const machine(2);
  cudaStream_t streams[2];
  cudaEvent_t events[2];
  void *memory[2], *third;
  for (int k : {0, 1}) {
    REQUIRE(cudaSetDevice(k) == cudaSuccess);
    REQUIRE(cudaStreamCreateWithFlags(&streams[k], cudaStreamNonBlocking) == cudaSuccess);
    REQUIRE(cudaEventCreateWithFlags(&events[k], cudaEventDefault) == cudaSuccess);
    REQUIRE(cudaMalloc(&memory[k], 64) == cudaSuccess);
  }
  CHECK(cudaSetDevice(2) == cudaErrorInvalidDevice);
  // a launch into a stream of a device that is not current
  CHECK(gpu.answer_current(streams[0]->device) == cudaErrorInvalidResourceHandle);
  CHECK(gpu.answer_current(streams[1]->device) == cudaSuccess);
  // an event and a stream of two devices; but a stream may wait for any event
  CHECK(cudaEventRecord(events[0], streams[1]) == cudaErrorInvalidResourceHandle);
  CHECK(cudaEventRecord(events[0], streams[0]) == cudaSuccess);
  CHECK(cudaEventRecord(events[1], streams[1]) == cudaSuccess);
  CHECK(cudaStreamWaitEvent(streams[1], events[0], 0) == cudaSuccess);
  float ms = 0;
  CHECK(cudaEventElapsedTime(&ms, events[0], events[1]) == cudaErrorInvalidResourceHandle);
  // a kernel that uses the memory of another device
  gpu.foreign = 0;
  streams[1]->put([&] { *static_cast<int*>(memory[1]) = 1; });
  REQUIRE(cudaStreamSynchronize(streams[1]) == cudaSuccess);
  CHECK(gpu.foreign == 0);
  streams[1]->put([&] { *static_cast<int*>(memory[0]) = 1; });
  REQUIRE(cudaStreamSynchronize(streams[1]) == cudaSuccess);
  CHECK(gpu.foreign == 1);
  gpu.foreign = 0;
  // a copy on a stream of neither device, and one under capture without access
  REQUIRE(cudaMallocHost(&third, 64) == cudaSuccess);
  CHECK(cudaMemcpyAsync(memory[0], third, 64, cudaMemcpyHostToDevice, streams[1]) ==
        cudaErrorInvalidValue);
  auto const captures = [&] {
    cudaGraph_t g = nullptr;
    REQUIRE(cudaStreamBeginCapture(streams[0], cudaStreamCaptureModeThreadLocal) == cudaSuccess);
    cudaError_t const status =
        cudaMemcpyAsync(memory[1], memory[0], 64, cudaMemcpyDeviceToDevice, streams[0]);
    (void)cudaStreamEndCapture(streams[0], &g);
    (void)cudaGraphDestroy(g);
    return status;
  };
  CHECK(captures() == cudaErrorStreamCaptureUnsupported);
  for (int k : {0, 1}) {
    REQUIRE(cudaSetDevice(k) == cudaSuccess);
    CHECK(cudaDeviceEnablePeerAccess(1 - k, 0) == cudaSuccess);
    CHECK(cudaDeviceEnablePeerAccess(1 - k, 0) == cudaErrorPeerAccessAlreadyEnabled);
  }
  CHECK(captures() == cudaSuccess);
  for (int k : {0, 1}) {
    CHECK(cudaStreamDestroy(streams[k]) == cudaSuccess);
    CHECK(cudaEventDestroy(events[k]) == cudaSuccess);
    CHECK(cudaFree(memory[k]) == cudaSuccess);
  }
  CHECK(cudaFreeHost(third) == cudaSuccess);
  (void)cudaGetLastError();
}
