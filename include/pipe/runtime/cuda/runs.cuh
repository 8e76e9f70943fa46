// SPDX-License-Identifier: BSL-1.0
//
// Which launches of a pipeline's programs run together as one kernel on a device: see
// backend/cuda/narrow_mlp/runs.hpp.
#pragma once

#include <vector>

#include <pipe/backend/cuda/narrow_mlp/programs.hpp>
#include <pipe/backend/cuda/matmul/matmul_option.hpp>
#include <pipe/runtime/cuda/bodies.cuh>
#include <pipe/runtime/cuda/machine.cuh>

namespace pp {

namespace cuda {

/// The launches of a run, from their arguments. Kernels: a narrow_mlp.
template <class Kernels>
void launch_run(arguments const* each, cudaStream_t stream) {
  auto const launch = [&]<class... Body>(bodies<Body...>, auto const& a) {
    (launch_body<Body>(a, stream), ...);
  };
  launch(Kernels::kernels(), Kernels::pack(each, each[0].workspace));
}
template <class... Body>
constexpr long shared_bytes_of(bodies<Body...>) {
  long most = 0;
  for (long const bytes : {shared_bytes<Body>...}) most = bytes > most ? bytes : most;
  return most;
}

}  // namespace cuda

/// Those of P, a compiled pipeline. A block of some shares more memory than every device has; and
/// where all products may be cuBLASLt's, whose bits are its own, none run together.
template <class P>
std::vector<cuda_run> cuda_runs([[maybe_unused]] cudaDeviceProp const& device) {
  std::vector<cuda_run> all;
  if constexpr (!needs_cublaslt(P::products))
    cuda::for_each_narrow_run<P>([&]<class Kernels>(Kernels, launch const* first, int count) {
      if (cuda::shared_bytes_of(Kernels::kernels()) > long(device.sharedMemPerBlockOptin)) return;
      cuda::prepare_bodies(Kernels::kernels());
      all.push_back({first, count, &cuda::launch_run<Kernels>});
    });
  return all;
}

}  // namespace pp
