// SPDX-License-Identifier: BSL-1.0
//
// The run-time part of a backend. Specialized beside each engine: runtime/host/engine.hpp,
// runtime/cuda/engine.cuh.
#pragma once

namespace pp::detail {

/// The engine of a backend, and the memory that it needs beside the values of the model:
///
///     engine<P>               runs compiled pipeline P
///     workspace_bytes<P>()    that the kernel groups of P need, of a thread
///     book_bytes(chunks, chunk_count, rank, parameters, streams)
///                             that the machine keeps for a rank, where the backend has its own
///                             memory
template <class Backend>
struct runtime_of;

}  // namespace pp::detail
