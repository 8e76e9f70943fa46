// SPDX-License-Identifier: BSL-1.0
//
// The list of kernel families, in the order they build on each other. Included by kernels.hpp once
// per instruction set, so neither this file nor those it names have include guards; each opens
// namespace pp::host::PIPE_ISA by itself.
#include <pipe/backend/host/region/vector.inl>
#include <pipe/backend/host/region/tile.inl>
#include <pipe/backend/host/region/contraction.inl>
#include <pipe/backend/host/region/transpose.inl>
#include <pipe/backend/host/region/column_sums.inl>
#include <pipe/backend/host/region/attention.inl>
#include <pipe/backend/host/region/dropout.inl>
#include <pipe/backend/host/region/chain.inl>
#include <pipe/backend/host/region/rows.inl>
#include <pipe/backend/host/region/element_loss.inl>
#include <pipe/backend/host/region/softmax.inl>
#include <pipe/backend/host/region/gate.inl>
#include <pipe/backend/host/region/pool.inl>
#include <pipe/backend/host/region/group.inl>
#include <pipe/backend/host/region/new_rows.inl>
#include <pipe/backend/host/region/update.inl>
