// error: workspace_bytes
// errors: 2
// SPDX-License-Identifier: BSL-1.0
//
// A host kernel that does not say how much workspace it needs.
#include <pipe/backend/host/backend.hpp>
#include <pipe/graph/layers.hpp>

#include "new_op_kind.hpp"  // PIPE_EXPECT_OK: softmax

#ifndef PIPE_EXPECT_OK
template <>
struct pp::host::portable::kernel_of<kind> {
  template <class P, int G>
  static void run(pp::host::arguments<typename P::element> const&) {}
};
#endif

constexpr long workspace() {
  long bytes = 0;
  pp::detail::ask_kernel<pp::host::portable::kernel_of, kind>(kind, bytes, [](auto kernel) {
    return kernel.template workspace_bytes<float>(lone_group::group_at(0), 1, 1);
  });
  return bytes;
}
static_assert(workspace() > 0);
