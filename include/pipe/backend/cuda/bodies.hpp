// SPDX-License-Identifier: BSL-1.0
//
// Kernels that run one after the other: what a group is lowered to.
#pragma once

namespace pp::cuda {

template <class... Body>
struct bodies {};

/// Bytes of workspace that they need.
template <class... Body>
constexpr long workspace_of(bodies<Body...>) {
  long most = 0;
  [[maybe_unused]] auto const look = [&]<class B>(B const*) {
    if constexpr (requires { B::workspace_bytes; })
      if (B::workspace_bytes > most) most = B::workspace_bytes;
  };
  (look(static_cast<Body const*>(nullptr)), ...);
  return most;
}

}  // namespace pp::cuda
