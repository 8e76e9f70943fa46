// SPDX-License-Identifier: BSL-1.0
//
// TMA, mbarrier and wgmma as nvcc compiles them, on a Hopper GPU or from PTX: a small product in
// every layout of its operands. Sums of small integers are exact, whatever order tensor cores add
// in.
#include "catch.hpp"

#include <cmath>
#include <memory>
#include <vector>

#include <pipe/runtime/cuda/kernel_list.cuh>

#include "cuda/ring_product.hpp"
#include "cuda/wgmma_agreement.hpp"

using namespace pp;
using cuda::major;

namespace {

bool is_hopper() {
  cudaDeviceProp p{};
  cuda::check(cudaGetDeviceProperties(&p, 0), "properties");
  return p.major == 9;
}

template <class T>
class device_array {
 public:
  explicit device_array(std::size_t n) {
    void* p = nullptr;
    cuda::check(cudaMalloc(&p, n * sizeof(T)), "memory");
    at_ = static_cast<T*>(p);
  }
  device_array(device_array const&) = delete;
  device_array& operator=(device_array const&) = delete;
  ~device_array() { cudaFree(at_); }
  T* at() const { return at_; }

 private:
  T* at_ = nullptr;
};

template <class T, int N, int Consumers, int Slabs, major A, major B>
void is_exact() {
  using body = hopper::ring_product<T, N, Consumers, Slabs, A, B>;
  constexpr int M = body::rows, K = body::inner;
  std::vector<T> left(std::size_t(M * K)), right(std::size_t(N * K));
  auto const a = [](int m, int k) { return (3 * m + 5 * k + m * k % 11) % 9 - 4; };
  auto const b = [](int k, int n) { return (7 * n + k + n * k % 13) % 7 - 3; };
  for (int k = 0; k < K; ++k) {
    for (int m = 0; m < M; ++m)
      left[std::size_t(A == major::k ? m * K + k : k * M + m)] = T(float(a(m, k)));
    for (int n = 0; n < N; ++n)
      right[std::size_t(B == major::k ? n * K + k : k * N + n)] = T(float(b(k, n)));
  }
  device_array<T> const x(left.size()), y(right.size());
  device_array<float> const z(std::size_t(M * N));
  std::vector<float> out(std::size_t(M * N), NAN);
  auto const copy = [](void* to, void const* from, std::size_t bytes, cudaMemcpyKind kind) {
    cuda::check(cudaMemcpy(to, from, bytes, kind), "copy");
  };
  copy(x.at(), left.data(), left.size() * sizeof(T), cudaMemcpyHostToDevice);
  copy(y.at(), right.data(), right.size() * sizeof(T), cudaMemcpyHostToDevice);
  copy(z.at(), out.data(), out.size() * sizeof(float), cudaMemcpyHostToDevice);
  cuda::prepare_body<body>();
  cuda::launch_roles<body>({x.at(), y.at(), z.at()}, nullptr);
  cuda::check(cudaDeviceSynchronize(), "run of a product");
  copy(out.data(), z.at(), out.size() * sizeof(float), cudaMemcpyDeviceToHost);
  int wrong = 0;
  for (int m = 0; m < M; ++m)
    for (int n = 0; n < N; ++n) {
      int expected = 0;
      for (int k = 0; k < K; ++k) expected += a(m, k) * b(k, n);
      wrong += out[std::size_t(m * N + n)] != float(expected);
    }
  CHECK(wrong == 0);
}

}  // namespace

TEST_CASE("hopper: a product by TMA, mbarrier and wgmma is exact", "[gpu]") {
  if (!is_hopper()) {
    WARN("no GPU of compute capability 9.0");
    return;
  }
  is_exact<bf16, 64, 1, 3, major::k, major::k>();
  is_exact<fp16, 128, 2, 3, major::k, major::mn>();
  is_exact<bf16, 64, 2, 5, major::mn, major::mn>();
  is_exact<fp16, 256, 1, 2, major::mn, major::k>();
}

namespace {

using namespace wgmma_agreement;

/// The bytes of all that a product's kernels write on the device.
template <class P, class Kernels>
std::vector<unsigned char> results_on_device(Kernels kernels, bool accumulate) {
  using o = operands<P>;
  std::vector<std::vector<unsigned char>> host(5);
  auto const set = [&](int index, auto const& list) {
    auto const* const from = reinterpret_cast<unsigned char const*>(list.data());
    host[std::size_t(index)].assign(from, from + list.size() * sizeof list[0]);
  };
  using out = typename o::out;
  set(0, o::numbers(0)), set(1, o::numbers(1)), set(3, o::numbers(3));
  set(2, std::vector<out>(o::size_of(2), out(accumulate ? 3.0f : NAN)));
  if (P::is_weight) set(3, std::vector<float>(o::size_of(3), accumulate ? 3.0f : NAN));
  set(4, std::vector<out>(o::size_of(4) + 1, out(NAN)));
  cuda::arguments a;
  std::vector<std::unique_ptr<device_array<unsigned char>>> device;
  for (std::size_t index = 0; index < host.size(); ++index) {
    device.push_back(std::make_unique<device_array<unsigned char>>(host[index].size()));
    a.operand[index] = device.back()->at();
    cuda::check(cudaMemcpy(device.back()->at(), host[index].data(), host[index].size(),
                           cudaMemcpyHostToDevice),
                "upload");
  }
  device_array<unsigned char> const workspace(std::size_t(cuda::workspace_of(kernels)) + 1);
  device_array<unsigned> const tickets(std::size_t(cuda::most_tickets));
  cuda::check(cudaMemset(tickets.at(), 0, cuda::most_tickets * sizeof(unsigned)), "tickets");
  a.workspace = workspace.at(), a.tickets = tickets.at(), a.accumulate = accumulate;
  cuda::prepare_kernels(kernels);
  cuda::launch_kernels(kernels, a, nullptr);
  cuda::check(cudaDeviceSynchronize(), "run of a product");
  std::vector<unsigned char> all;
  for (std::size_t index = 2; index < host.size(); ++index) {
    std::vector<unsigned char> bytes(host[index].size());
    cuda::check(cudaMemcpy(bytes.data(), device[index]->at(), bytes.size(), cudaMemcpyDeviceToHost),
                "download");
    all.insert(all.end(), bytes.begin(), bytes.end());
  }
  return all;
}
template <class P, cuda::wgmma_plan Plan>
void agrees(bool accumulate = false) {
  auto const expected = results_on_device<P>(cuda::lower_contraction<P, 0>(), accumulate);
  CHECK((results_on_device<P>(cuda::lower_wgmma<P, 0, Plan>(), accumulate) == expected));
}

}  // namespace

TEST_CASE("hopper: a product by wgmma is that of the kernels for every GPU", "[gpu]") {
  if (!is_hopper()) {
    WARN("no GPU of compute capability 9.0");
    return;
  }
  constexpr cuda::wgmma_plan wide{256, 3}, narrow{128, 4};
  agrees<one_product<bf16, op_kind::matmul, 150, 328, 136>, narrow>();
  agrees<one_product<fp16, op_kind::matmul_input_gradient, 24, 264, 264, true>, wide>();
  agrees<one_product<bf16, op_kind::matmul_weight_gradient, 136, 152, 72>, narrow>(true);
  agrees<one_product<bf16, op_kind::matmul, 8, 8, 128 * 134>, narrow>();  // two tiles of a block
}
