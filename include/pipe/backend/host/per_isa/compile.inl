// SPDX-License-Identifier: BSL-1.0
//
// The sources that are compiled once per instruction set, in the order in which one builds on
// another. kernels.hpp includes this file inside a namespace of the set, which has
//
//     using this_isa = isa_traits<...>;      // sizes of vectors and register tiles
//     namespace per_isa = ...;               // the namespace itself
//
// so this file and the files that it includes have no include guards and no namespaces.

// Building blocks of kernels.
#include <pipe/backend/host/per_isa/vector.inl>
#include <pipe/backend/host/per_isa/transpose.inl>
#include <pipe/backend/host/per_isa/tile.inl>
#include <pipe/backend/host/per_isa/pairs.inl>
#include <pipe/backend/host/per_isa/slices.inl>
#include <pipe/backend/host/per_isa/values.inl>
#include <pipe/backend/host/per_isa/contraction.inl>
#include <pipe/backend/host/per_isa/column_sums.inl>
#include <pipe/backend/host/per_isa/dropout.inl>
#include <pipe/backend/host/per_isa/chain.inl>
#include <pipe/backend/host/per_isa/group.inl>
#include <pipe/backend/host/per_isa/rows.inl>

// The kernels of groups.
#include <pipe/backend/host/per_isa/bias.inl>
#include <pipe/backend/host/per_isa/matmul.inl>
#include <pipe/backend/host/per_isa/convolution.inl>
#include <pipe/backend/host/per_isa/attention.inl>
#include <pipe/backend/host/per_isa/norm.inl>
#include <pipe/backend/host/per_isa/batch_norm.inl>
#include <pipe/backend/host/per_isa/group_norm.inl>
#include <pipe/backend/host/per_isa/response_norm.inl>
#include <pipe/backend/host/per_isa/softmax.inl>
#include <pipe/backend/host/per_isa/gate.inl>
#include <pipe/backend/host/per_isa/row_products.inl>
#include <pipe/backend/host/per_isa/lookup.inl>
#include <pipe/backend/host/per_isa/pool.inl>
#include <pipe/backend/host/per_isa/resample.inl>
#include <pipe/backend/host/per_isa/transpose_samples.inl>
#include <pipe/backend/host/per_isa/losses.inl>
#include <pipe/backend/host/per_isa/element_loss.inl>
#include <pipe/backend/host/per_isa/row_loss.inl>
#include <pipe/backend/host/per_isa/contrast.inl>
#include <pipe/backend/host/per_isa/pointwise.inl>
#include <pipe/backend/host/per_isa/custom.inl>

// Functions over parameters, and the kernels of a decoder's new rows.
#include <pipe/backend/host/per_isa/update.inl>
#include <pipe/backend/host/per_isa/narrow_rows.inl>
#include <pipe/backend/host/per_isa/new_rows.inl>

static_assert(detail::has_kernels<kernel_of>());
