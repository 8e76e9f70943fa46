// SPDX-License-Identifier: BSL-1.0
//
// The option of a Pipeline that chooses the sort on a GPU for the gradient of an embedding, which
// adds up rows in the order of their ids. Both sorts are stable, so the option changes no bit. The
// other choice, CubSort, is in a header of its own, <pipe/cub_sort.cuh>, since CUB takes seconds to
// compile.
#pragma once

namespace pp {

/// Kernels of this library sort the ids (default). Has no effect on a host.
struct OwnSort {
  using row_sort = void;
};

namespace detail {

/// row_sort: void, or the class of a library's sort, which has
///
///     static constexpr char const* name;
///     static constexpr int nodes(int bits);  // of a graph
///     static std::size_t temporary_bytes(int rows, int bits);
///     static void enqueue(cuda::sort_call const&, cudaStream_t);
template <class O>
concept sort_option = requires { typename O::row_sort; };

}  // namespace detail

}  // namespace pp
