// SPDX-License-Identifier: BSL-1.0
//
// The run-time part of a backend, specialized next to each engine: runtime/host/engine.hpp,
// runtime/cuda/engine.cuh. The plan takes from it the sizes of memory that depend on kernels.
#pragma once

namespace pp::detail {

/// The engine of a backend, and the memory that the engine needs besides the model's values.
/// Members of a specialization:
///
///     engine<P>               executes compiled pipeline P
///     workspace_bytes<P>()    workspace of the kernel groups of P, per thread
///     bookkeeping_bytes<Optimizer>(chunks, chunk_count, rank, is_first, parameters, streams)
///                             bookkeeping of the executor for a rank, if the backend has its own
///                             memory; is_first: it is the first rank of its device
template <class Backend>
struct runtime_of;

}  // namespace pp::detail
