// SPDX-License-Identifier: BSL-1.0
//
// A communicator of NCCL over the processes of MPI, by which its id travels; with the stand-in.
#include <cstdio>
#include <string>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <pipe/mpi.hpp>
#include <pipe/transport/nccl/nccl.cuh>

using pp::detail::mpi_world;

namespace {

/// Memory of the stand-in that all processes have: process 0's, opened by the others.
void share_memory(mpi_world& world) {
  char name[64]{};
  int file = -1;
  if (world.process() == 0) {
    file = memfd_create("nccl", 0);
    if (ftruncate(file, fake_nccl::shared_size) != 0) return;
    std::snprintf(name, sizeof(name), "/proc/%d/fd/%d", int(getpid()), file);
  }
  world.broadcast(0, name, sizeof(name));
  if (file < 0) file = open(name, O_RDWR);
  fake_nccl::share(file);
}

}  // namespace

int main() {
  mpi_world& world = mpi_world::get();
  share_memory(world);
  bool is_good = true;
  try {
    pp::cuda::nccl_communicator all(world);
    cudaStream_t on{};
    cudaStreamCreateWithFlags(&on, cudaStreamNonBlocking);
    int const n = all.processes(), p = all.process();
    long const sent = 100 + p;
    long got = sent;
    if (n > 1)
      all.group([&] {
        all.send((p + 1) % n, &sent, sizeof(sent), on);
        all.receive((p + n - 1) % n, &got, sizeof(got), on);
      });
    all.wait(on);
    is_good = got == 100 + (p + n - 1) % n;
    cudaStreamDestroy(on);
  } catch (pp::error const& e) {
    std::printf("process %d: %s\n", world.process(), e.what());
    is_good = false;
  }
  std::printf("process %d of %d: %s\n", world.process(), world.processes(),
              is_good ? "good" : "bad");
  std::fflush(stdout);
  return is_good ? 0 : 1;
}
