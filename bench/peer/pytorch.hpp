// SPDX-License-Identifier: BSL-1.0
//
// MKL and oneDNN out of an installed PyTorch: its library libtorch_cpu.so contains current releases
// of both, and its package has oneDNN's headers, of the same release. Most of their functions are
// local symbols there, which dlsym does not find; they are taken from the library's symbol table.
#pragma once

#include <string>

namespace bench {

/// Starts this program again, before it loads any peer, bound to the core where it runs: the peers
/// read their settings when they are loaded. One thread each; huge pages from malloc, such as a
/// rank's memory has; OpenBLAS's AVX-512 kernels where there is AVX-512, as OpenBLAS treats a
/// processor that is newer than itself as an old one.
void restart_on_one_core(char** arguments);

/// C's sgemm_ of MKL, for matrices in Fortran's order.
using sgemm = void(char const* transpose_a, char const* transpose_b, int const* m, int const* n,
                   int const* k, float const* alpha, float const* a, int const* lda, float const* b,
                   int const* ldb, float const* beta, float* c, int const* ldc);

struct pytorch {
  sgemm* multiply;
  std::string mkl, onednn;  ///< names with versions
};
/// Loads the library, once; from then on the functions of <oneapi/dnnl/dnnl.hpp> may be called.
/// throws: std::runtime_error that says what is missing
pytorch const& load_pytorch();

}  // namespace bench
