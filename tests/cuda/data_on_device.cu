// SPDX-License-Identifier: BSL-1.0
//
// Mini-batches in device memory: the bits of the same ones in the host's, by graphs and by streams.
// Compiled wherever nvcc is; run wherever a GPU is.
#include <span>
#include <string>
#include <vector>

#include "cuda/device_laws.hpp"
#include "laws/everything.hpp"

using namespace pp;

namespace {

/// Numbers in device memory, copied there by the work of a stream, one element from the begin.
template <class T>
class device_array {
 public:
  explicit device_array(std::size_t size) : size_(size) {
    void* p = nullptr;
    cuda::check(cudaMalloc(&p, sizeof(T) * (size + 1)), "memory for a test");
    data_ = static_cast<T*>(p);
  }
  device_array(std::span<T const> values, cudaStream_t on) : device_array(values.size()) {
    if (size_ > 0)
      cuda::check(
          cudaMemcpyAsync(data_ + 1, values.data(), sizeof(T) * size_, cudaMemcpyHostToDevice, on),
          "data of a test");
  }
  device_array(device_array const&) = delete;
  ~device_array() { cudaFree(data_); }
  device_span<T> view() const { return {data_ + 1, size_}; }
  std::vector<T> read() const {
    std::vector<T> copy(size_);
    cuda::check(cudaMemcpy(copy.data(), data_ + 1, sizeof(T) * size_, cudaMemcpyDeviceToHost),
                "results of a test");
    return copy;
  }

 private:
  T* data_ = nullptr;
  std::size_t size_;
};

struct Small : Model<Input<12>, Linear<16>, GELUTanh, Linear<5>, CrossEntropy> {};
using Trainer = Pipeline<Small, Cuda, MicroBatches<3>, MicroBatchSize<2>>;

// [device_batch]
/// Only the loss comes to the host.
double train_and_infer(Trainer& trainer, device_span<float const> inputs,
                       device_span<int const> labels, device_span<float> outputs,
                       cudaStream_t stream) {
  Trainer::device_batch batch{inputs, labels};
  batch.ready_on(stream);
  step_result const r = trainer.step(batch);
  trainer.forward(batch, outputs);
  return r.loss;
}
// [/device_batch]

using Prefetched = Pipeline<Small, Cuda, MicroBatches<3>, MicroBatchSize<2>, Prefetching>;

// [prefetch]
/// Trains on mini-batches that load(i) returns, which may all be in the same arrays.
template <class Load>
void train(Prefetched& trainer, int count, Load load) {
  trainer.prefetch(load(0));
  for (int i = 1; i <= count; ++i) {
    if (i < count) trainer.prefetch(load(i));
    trainer.step(prefetched);  // on mini-batch i - 1, and uploads mini-batch i meanwhile
  }
}
// [/prefetch]

struct Weighted : Model<Input<12>, Linear<16>, GELUTanh, Dropout<1, 4>, Linear<16>, Tanh, Linear<5>,
                        With<CrossEntropy, Weights<"weight">, ClassWeights<3, 1, 0, 7, 2>>> {};

template <class M, class... Options>
void has_the_bits_of_the_hosts_arrays() {
  using trainer = Pipeline<M, Cuda, MicroBatches<3>, MicroBatchSize<2>, Stages<2>, Options...>;
  typename trainer::settings s{.seed = 5, .clip_norm = 0.1};
  trainer a(s);
  s.runtime.timeline = true;
  trainer by_streams(s);
  s.runtime.timeline = false;
  trainer by_graphs(s);
  cuda::stream const on;
  for (int i = 0; i < 5; ++i) {
    laws::sample_batch<trainer> const data(std::uint64_t(i) + 1);
    long const samples = trainer::samples - (i == 3 ? 1 : 0);
    auto const host = data.view(samples);
    device_array<typename trainer::input_type> const inputs(std::span(host.inputs), on);
    device_array<typename trainer::label_type> const labels(std::span(host.labels), on);
    device_array<float> const weights(host.named_numbers[1], on);
    typename trainer::device_batch batch{inputs.view(), labels.view()};
    batch.named_numbers[1] = weights.view();
    batch.ready_on(on);
    for (int k = 0; k < i % 2; ++k) {
      auto const x = a.accumulate(host);
      CHECK(laws::same_bits(x.loss, by_streams.accumulate(batch).loss));
      CHECK(laws::same_bits(x.loss, by_graphs.accumulate(batch).loss));
    }
    auto const x = a.step(host, 0.01), y = by_streams.step(batch, 0.01),
               z = by_graphs.step(batch, 0.01);
    CHECK(laws::same_bits(x.loss, y.loss));
    CHECK(laws::same_bits(x.loss, z.loss));
    CHECK(laws::same_bits(x.gradient_norm, z.gradient_norm));
    CHECK(laws::same_numbers(laws::snapshot(a).values, laws::snapshot(by_streams).values));
    CHECK(laws::same_numbers(laws::snapshot(a).values, laws::snapshot(by_graphs).values));
    std::vector<float> expected(std::size_t(samples * trainer::outputs_per_sample));
    device_array<float> outputs(expected.size());
    a.forward(host, expected);
    by_graphs.forward(batch, outputs.view());
    CHECK(laws::same_numbers(outputs.read(), expected));
  }
}

}  // namespace

TEST_CASE("mini-batches in device memory have the bits of the host's", "[gpu]") {
  has_the_bits_of_the_hosts_arrays<laws::Everything>();
  has_the_bits_of_the_hosts_arrays<Weighted>();
}
TEST_CASE("outputs of a step and an inference stay on the device", "[gpu]") {
  Trainer found({.seed = 5}), expected({.seed = 5});
  laws::sample_batch<Trainer> const data(1);
  device_array<float> const inputs(std::span<float const>(data.inputs), nullptr);
  device_array<int> const labels(std::span<int const>(data.labels), nullptr);
  std::vector<float> y(std::size_t(4 * Trainer::outputs_per_sample));
  device_array<float> outputs(y.size());
  double const loss = train_and_infer(found, inputs.view().first(4 * Trainer::inputs_per_sample),
                                      labels.view().first(4), outputs.view(), nullptr);
  CHECK(laws::same_bits(loss, expected.step(data.view(4)).loss));
  expected.forward(data.view(4), y);
  CHECK(laws::same_numbers(outputs.read(), y));
}
TEST_CASE("prefetched mini-batches have the bits of others", "[gpu]") {
  Prefetched found({.seed = 5}), expected({.seed = 5});
  laws::sample_batch<Prefetched> data(1);
  train(found, 4, [&](int i) {
    data = laws::sample_batch<Prefetched>(std::uint64_t(i) + 1);
    return data.view();
  });
  for (int i = 0; i < 4; ++i)
    expected.step(laws::sample_batch<Prefetched>(std::uint64_t(i) + 1).view());
  CHECK(laws::same_numbers(laws::snapshot(found).values, laws::snapshot(expected).values));
}
TEST_CASE("16-bit values of numbers in device memory have the bits of the host's", "[gpu]") {
  has_the_bits_of_the_hosts_arrays<Weighted, BF16>();
  has_the_bits_of_the_hosts_arrays<Weighted, FP16>();
}

TEST_CASE("a number in device memory that is out of range is refused", "[gpu]") {
  using trainer = Pipeline<laws::Everything, Cuda, MicroBatches<3>, MicroBatchSize<2>, Stages<2>>;
  trainer t;
  laws::sample_batch<trainer> data(1);
  data.inputs[17] = data.inputs[9] = 11;
  device_array<int> const inputs(std::span<int const>(data.inputs), nullptr),
      labels(std::span<int const>(data.labels), nullptr);
  auto const before = laws::snapshot(t).values;
  CHECK_THROWS_WITH(t.step({inputs.view(), labels.view()}),
                    "token 11 at position 9 is not in [-1, 11)");
  CHECK(laws::same_numbers(laws::snapshot(t).values, before));
  CHECK(t.steps() == 0);
}
