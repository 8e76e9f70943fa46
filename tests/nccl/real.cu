// SPDX-License-Identifier: BSL-1.0
//
// The communicator with NCCL itself, in one process: it compiles and links, and without a GPU
// NCCL's own text arrives.
#include <cstdio>
#include <cstring>

#include <pipe/transport/nccl.cuh>
#include <pipe/transport/tcp_world.hpp>

int main() {
  pp::detail::tcp_start const alone;
  pp::detail::tcp_world world(alone);
  int count = 0;
  bool const has_device = cudaGetDeviceCount(&count) == cudaSuccess && count > 0;
  try {
    pp::cuda::nccl_communicator all(world);
    float* data = nullptr;
    pp::cuda::check(cudaMalloc(reinterpret_cast<void**>(&data), 2 * sizeof(float)), "memory");
    pp::cuda::check(cudaMemset(data, 0x3f, sizeof(float)), "a first value");
    all.group([&] {
      all.send(0, data, sizeof(float), nullptr);
      all.receive(0, data + 1, sizeof(float), nullptr);
    });
    all.wait(nullptr);
    float here[2]{};
    pp::cuda::check(cudaMemcpy(here, data, sizeof(here), cudaMemcpyDeviceToHost), "a result");
    cudaFree(data);
    std::printf("%s\n", here[0] == here[1] ? "sent to itself" : "wrong data");
    return here[0] == here[1] ? 0 : 1;
  } catch (pp::error const& e) {
    std::printf("%s\n", e.what());
    return !has_device &&
                   std::strstr(e.what(), "NCCL, construction of a communicator: ") == e.what()
               ? 0
               : 1;
  }
}
