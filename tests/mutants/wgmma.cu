// SPDX-License-Identifier: BSL-1.0
//
// Products by TMA, mbarrier and wgmma on the executor of tests/ptx, which mutates their kernels
// (tests/ptx/mutants.hpp): prints the bits of all that was computed.
#include <cstdio>
#include <vector>

#include <pipe/runtime/cuda/kernel_list.cuh>

#include "cuda/wgmma_agreement.hpp"
#include "ptx/runtime.hpp"

using namespace pp;
using namespace wgmma_agreement;

namespace {

template <class T>
T* on_device(std::vector<T> const& list) {
  void* p = nullptr;
  cuda::check(cudaMalloc(&p, list.size() * sizeof(T)), "memory");
  cuda::check(cudaMemcpy(p, list.data(), list.size() * sizeof(T), cudaMemcpyHostToDevice),
              "upload");
  return static_cast<T*>(p);
}

/// The tiles of a product alone, nine slabs deep.
template <class P>
void multiply(char const* name) {
  using o = operands<P>;
  using kernels = cuda::kernel_list<cuda::wgmma_tiles<P, 0, cuda::wgmma_plan{128, 4}>>;
  using out = typename o::out;
  std::vector<out> c(o::size_of(2));
  std::vector<typename P::element> z(o::size_of(4) + 1);
  cuda::arguments a;
  a.operand[0] = on_device(o::numbers(0)), a.operand[1] = on_device(o::numbers(1));
  a.operand[2] = on_device(c), a.operand[3] = on_device(o::numbers(3)), a.operand[4] = on_device(z);
  cuda::prepare_kernels(kernels{});
  cuda::launch_kernels(kernels{}, a, nullptr);
  cuda::check(cudaDeviceSynchronize(), "run of a product");
  unsigned long long hash = 14695981039346656037u;  // FNV-1a, of 64 bits
  auto const add = [&](auto& list, void const* from) {
    cuda::check(cudaMemcpy(list.data(), from, list.size() * sizeof list[0], cudaMemcpyDeviceToHost),
                "download");
    auto const* const bytes = reinterpret_cast<unsigned char const*>(list.data());
    for (std::size_t i = 0; i < list.size() * sizeof list[0]; ++i)
      hash = (hash ^ bytes[i]) * 1099511628211u;
  };
  add(c, a.operand[2]), add(z, a.operand[4]);
  std::printf("%s %016llx\n", name, hash);
}

}  // namespace

int main() {
  pipe_ptx_run_mutants();
  try {
    multiply<one_product<bf16, op_kind::matmul, 256, 552, 136>>("rows");
    multiply<one_product<fp16, op_kind::matmul_weight_gradient, 552, 256, 136>>("columns");
    return 0;
  } catch (error const& e) {
    std::printf("%s\n", e.what());
    return 1;
  }
}
