// SPDX-License-Identifier: BSL-1.0
//
// The communicator with NCCL itself, in one process: what it sends to itself arrives, and after an
// abort nothing is sent. Without a GPU it compiles and links, and NCCL's own text arrives.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <vector>

#include <pipe/runtime/cuda/resources.cuh>
#include <pipe/transport/nccl/nccl.cuh>
#include <pipe/transport/tcp/tcp_world.hpp>

int main() {
  pp::detail::tcp_start const alone;
  pp::detail::tcp_world world(alone);
  int count = 0;
  bool const has_device = cudaGetDeviceCount(&count) == cudaSuccess && count > 0;
  try {
    pp::cuda::nccl_communicator all(world);
    constexpr long bytes = 100L << 20;  // longer than any buffer of NCCL's
    pp::cuda::device_buffer memory(2 * bytes);
    char* const data = memory.as<char>();
    pp::cuda::check(cudaMemset(data, 0x3f, bytes), "what is sent");
    for (long const size : {4L, 1L << 20, bytes}) {
      pp::cuda::check(cudaMemset(data + bytes, 0, bytes), "what is received");
      all.group([&] {
        all.send(0, data, size, nullptr);
        all.receive(0, data + bytes, size, nullptr);
      });
      all.wait(nullptr);
      std::vector<char> here(static_cast<std::size_t>(bytes));
      pp::cuda::check(cudaMemcpy(here.data(), data + bytes, here.size(), cudaMemcpyDeviceToHost),
                      "a result");
      if (std::count(here.begin(), here.end(), 0x3f) != size) {
        std::printf("%ld bytes: wrong data\n", size);
        return 1;
      }
    }
    all.abort();
    try {
      all.group([] {});
      std::printf("a group after an abort\n");
      return 1;
    } catch (pp::rank_error const& e) {
      std::printf("sent to itself; after an abort: %s\n", e.what());
      return 0;
    }
  } catch (pp::error const& e) {
    std::printf("%s\n", e.what());
    return !has_device &&
                   std::strstr(e.what(), "NCCL, construction of a communicator: ") == e.what()
               ? 0
               : 1;
  }
}
