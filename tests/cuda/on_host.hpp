// SPDX-License-Identifier: BSL-1.0
//
// The CUDA kernel bodies as a backend of the host's machine: every group of a pipeline runs on the
// CPU, block by block and thread by thread, with its operands where the host's kernels would have
// them. So every law that holds for the host can be asked of them.
#pragma once

#include <cstddef>
#include <cstring>
#include <new>
#include <type_traits>
#include <utility>

#include <pipe/backend/cuda/lowering/lowering.hpp>
#include <pipe/pipe.hpp>

#include "cuda/run_bodies.hpp"

namespace on_host {

/// `state`: outlives the launch.
template <class T>
pp::cuda::arguments translated(pp::host::arguments<T> const& a, pp::cuda::run_state& state) {
  pp::cuda::arguments b;
  b.run = &state;
  for (int i = 0; i < pp::detail::group::max_operands; ++i) b.operand[i] = a.operand[i];
  b.loss = a.loss;
  state.loss_scale = float(a.loss_scale);
  if (a.further != nullptr) state.further = *a.further;
  static_cast<pp::detail::random_context&>(state) = a;
  b.valid_samples = a.valid_samples;
  b.accumulate = a.accumulate;
  b.training = a.training;
  b.wants_gradient = a.wants_gradient;
  return b;
}

/// Group G of P, with a workspace of exactly the size it asks for, full of NaN.
template <class P, int G>
void run(pp::host::arguments<typename P::element> const& a) {
  using kernels = pp::cuda::lowered<pp::cuda::source_of<P>, G>;
  constexpr std::size_t bytes = std::size_t(pp::cuda::workspace_of(kernels{}));
  pp::cuda::run_state state;
  pp::cuda::arguments b = translated(a, state);
  if constexpr (bytes > 0) {
    std::align_val_t const alignment{256};
    b.workspace = ::operator new(bytes, alignment);
    std::memset(b.workspace, 0xff, bytes);
    run_bodies(kernels{}, b);
    ::operator delete(b.workspace, alignment);
  } else {
    run_bodies(kernels{}, b);
  }
}

/// A user's own layer has functions for the host.
template <class P, int G>
void replace(pp::host::kernels<P>& k) {
  if constexpr (pp::detail::attributes_of(P::group_at(G).anchor) !=
                pp::detail::attribute_kind::custom)
    k.groups[G] = &run<P, G>;
}

/// The option that takes the place of Host.
struct Kernels : pp::PortableHost {
  static constexpr char const* name = "cuda on the host";
  static constexpr bool has_transposes = pp::Cuda::has_transposes;
  static constexpr int parts_for(pp::detail::group const&, int, int) { return 1; }

  template <class P>
  static pp::host::kernels<P> kernels() {
    auto k = pp::host::kernels_for<P, pp::host::isa::portable>();
    [&]<int... G>(std::integer_sequence<int, G...>) {
      (replace<P, G>(k), ...);
    }(std::make_integer_sequence<int, P::groups>{});
    return k;
  }
};

}  // namespace on_host
