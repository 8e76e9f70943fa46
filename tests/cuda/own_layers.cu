// SPDX-License-Identifier: BSL-1.0
//
// A layer with CUDA kernels of a user's own. Compiled wherever nvcc is; run wherever a GPU is.
#include "catch.hpp"

#include "laws/centered.hpp"
#include "laws/data.hpp"

using namespace pp;

namespace {

// [kernels]
/// y = x + factor[c] * x^3, in any precision: values are T, sums are float.
struct Cubic {
  static constexpr sample_shape result(sample_shape in) { return in; }
  static constexpr int parameters = 1;
  static constexpr custom::parameter parameter(int, sample_shape in) {
    return {1, in.columns(), "factor", {distribution::constant, 0.1f}, false};
  }

  // for the host

  template <class T>
  static void forward(custom::forward<T> const& a) {
    for (long i = 0; i < a.samples * a.in.elements(); ++i)
      a.y[i] = a.x[i] + a.parameter[0][i % a.in.columns()] * a.x[i] * a.x[i] * a.x[i];
  }
  template <class T>
  static void input_gradient(custom::input_gradient<T> const& a) {
    for (long i = 0; i < a.samples * a.in.elements(); ++i)
      a.dx[i] = a.dy[i] * (T(1) + T(3) * a.parameter[0][i % a.in.columns()] * a.x[i] * a.x[i]);
  }
  template <class T>
  static void weight_gradient(custom::weight_gradient<T> const& a) {
    for (long i = 0; i < a.samples * a.in.elements(); ++i)
      a.gradient[0][i % a.in.columns()] += a.dy[i] * a.x[i] * a.x[i] * a.x[i];
  }

  // for a GPU: the same with a stream. Kernels get a copy of what the functions get.

  template <class T>
  static void forward(custom::forward<T> const& a, cudaStream_t stream);
  template <class T>
  static void input_gradient(custom::input_gradient<T> const& a, cudaStream_t stream);
  template <class T>
  static void weight_gradient(custom::weight_gradient<T> const& a, cudaStream_t stream);
};

template <class T>
__global__ void cubic_forward(custom::forward<T> a, int count, int columns) {
  int const i = int(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= count) return;
  float const x = float(a.x[i]);
  a.y[i] = T(x + float(a.parameter[0][i % columns]) * x * x * x);
}
template <class T>
__global__ void cubic_input_gradient(custom::input_gradient<T> a, int count, int columns) {
  int const i = int(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= count) return;
  float const x = float(a.x[i]);
  a.dx[i] = T(float(a.dy[i]) * (1 + 3 * float(a.parameter[0][i % columns]) * x * x));
}
/// A thread for each column: the order of additions is always the same.
template <class T>
__global__ void cubic_weight_gradient(custom::weight_gradient<T> a, int count, int columns) {
  int const c = int(blockIdx.x * blockDim.x + threadIdx.x);
  if (c >= columns) return;
  float sum = a.gradient[0][c];
  for (int i = c; i < count; i += columns) {
    float const x = float(a.x[i]);
    sum += float(a.dy[i]) * x * x * x;
  }
  a.gradient[0][c] = sum;
}

template <class T>
void Cubic::forward(custom::forward<T> const& a, cudaStream_t stream) {
  int const count = int(a.samples * a.in.elements());
  cubic_forward<<<unsigned((count + 255) / 256), 256, 0, stream>>>(a, count, a.in.columns());
}
template <class T>
void Cubic::input_gradient(custom::input_gradient<T> const& a, cudaStream_t stream) {
  int const count = int(a.samples * a.in.elements());
  cubic_input_gradient<<<unsigned((count + 255) / 256), 256, 0, stream>>>(a, count, a.in.columns());
}
template <class T>
void Cubic::weight_gradient(custom::weight_gradient<T> const& a, cudaStream_t stream) {
  int const columns = a.in.columns();
  cubic_weight_gradient<<<unsigned((columns + 255) / 256), 256, 0, stream>>>(
      a, int(a.samples * a.in.elements()), columns);
}
// [/kernels]

/// laws::Centered with kernels for a GPU.
struct Centered : laws::Centered {
  using laws::Centered::forward, laws::Centered::input_gradient, laws::Centered::statistics;
  template <class T>
  static void forward(custom::forward<T> const& a, cudaStream_t stream);
  template <class T>
  static void input_gradient(custom::input_gradient<T> const& a, cudaStream_t stream);
  template <class T>
  static void statistics(custom::statistics<T> const& a, cudaStream_t stream);
};

template <class T>
__global__ void center(custom::forward<T> a, int count, int columns) {
  int const i = int(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) a.y[i] = T(float(a.x[i]) - a.buffer[0][i % columns]);
}
/// A thread for each column: the order of additions is always the same.
template <class T>
__global__ void add_columns(custom::statistics<T> a, int count, int columns) {
  int const c = int(blockIdx.x * blockDim.x + threadIdx.x);
  if (c >= columns) return;
  float sum = a.sum[0][c];
  for (int i = c; i < count; i += columns) sum += float(a.x[i]);
  a.sum[0][c] = sum;
}

template <class T>
void Centered::forward(custom::forward<T> const& a, cudaStream_t stream) {
  int const count = int(a.samples * a.in.elements());
  center<<<unsigned((count + 255) / 256), 256, 0, stream>>>(a, count, a.in.columns());
}
template <class T>
void Centered::input_gradient(custom::input_gradient<T> const& a, cudaStream_t stream) {
  cudaMemcpyAsync(a.dx, a.dy, sizeof(T) * std::size_t(a.samples * a.in.elements()),
                  cudaMemcpyDeviceToDevice, stream);
}
template <class T>
void Centered::statistics(custom::statistics<T> const& a, cudaStream_t stream) {
  int const columns = a.in.columns();
  add_columns<<<unsigned((columns + 255) / 256), 256, 0, stream>>>(
      a, int(a.samples * a.in.elements()), columns);
}

struct Net : Model<Input<6>, Linear<20>, Custom<Cubic>, Custom<Centered>, Linear<4>, MSE> {};

template <class Precision>
void agrees_with_the_host(double tolerance) {
  using host = Pipeline<Net, PortableHost, AdamW, MicroBatches<3>, MicroBatchSize<4>>;
  using device =
      Pipeline<Net, Cuda, Precision, AdamW, MicroBatches<3>, MicroBatchSize<4>, Stages<3>>;
  host expected({.seed = 2});
  device found({.seed = 2});
  for (int step = 0; step < 3; ++step) {
    laws::sample_batch<host> const data(std::uint64_t(step) + 1);
    laws::copy_parameters(expected, found);
    auto const a = expected.gradients(data.view()),
               b = found.gradients(data.template view<device>());
    CHECK(b.loss == Approx(a.loss).epsilon(tolerance));
    CHECK(b.gradient_norm == Approx(a.gradient_norm).epsilon(tolerance));
    expected.step(data.view());
    while (found.step(data.template view<device>()).skipped) {
    }
    auto const ours = expected.parameters(), theirs = found.parameters();
    for (std::size_t p = 0; p < ours.size(); ++p)
      for (std::size_t i = 0; ours[p].gradients.empty() && i < ours[p].values.size(); ++i)
        CHECK(theirs[p].values[i] ==
              Approx(ours[p].values[i]).epsilon(tolerance).margin(tolerance));
  }
}

}  // namespace

TEST_CASE("a layer with kernels of its own trains on the device as on the host", "[gpu]") {
  agrees_with_the_host<FP32>(1e-5);
  agrees_with_the_host<BF16>(3e-2);
  agrees_with_the_host<FP16>(1e-2);
}
