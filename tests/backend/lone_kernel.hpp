// SPDX-License-Identifier: BSL-1.0
//
// One kernel of a compiled model, called by a test itself: the first whose anchor is of a given
// kind, on every instruction set of this machine, with operands that the test owns.
#pragma once

#include "backend/host_kernels.hpp"

#include <pipe/pipe.hpp>

namespace lone {

/// What options make of a model, without a trainer.
template <class M, class... Options>
using compiled =
    pp::detail::compiled_pipeline<M, pp::detail::option_set<pp::PortableHost, Options...>>;

template <class C>
constexpr int group_of(pp::op_kind anchor) {
  int g = 0;
  while (C::group_at(g).anchor != anchor) ++g;
  return g;
}

/// The arguments of the first kernel of C with anchor `Kind`: operand k of the anchor is in(k),
/// result k out(k).
template <class C, pp::op_kind Kind>
struct kernel {
  using T = typename C::element;
  static constexpr int number = group_of<C>(Kind);
  static constexpr pp::detail::group g = C::group_at(number);
  pp::host::arguments<T> with;
  exact<double> row_losses{pp::host::extent(g.rows) * C::samples, 7};
  workspace space{std::size_t(pp::host::workspace_bytes<T>(g, C::samples))};

  kernel() {
    with.workspace = space.at;
    with.loss = row_losses.data();
    with.loss_scale = T(1);
  }
  void const*& in(int k) { return const_cast<void const*&>(with.operand[g.in[k]]); }
  void*& out(int k) { return with.operand[g.out[k]]; }
  /// Of all rows of a loss kernel.
  double loss() const {
    double sum = 0;
    for (std::size_t i = 0; i < row_losses.count; ++i) sum += row_losses.items[i];
    return sum;
  }
  template <class Isa>
  void run(Isa) {
    Isa::template run<pp::host::source_of<C>, number>(with);
  }
};

}  // namespace lone
