// SPDX-License-Identifier: BSL-1.0
//
// ldmatrix: loads from shared memory to the operands of a matrix multiplication (matrix.hpp). A
// warp loads four small matrices, each of 8 rows of 16 bytes at any addresses. Rows whose addresses
// differ modulo 128 are read at once.
#pragma once

#include <cstdint>
#include <cstring>

#include <pipe/backend/cuda/core/block.hpp>

namespace pp::cuda {

/// Loads four matrices to four registers of each thread. place(thread): the address of row lane % 8
/// of matrix lane / 8. access(state): the first of the thread's four registers; matrix i is loaded
/// to register i.
///
/// law: a thread gets the 4 bytes from 4 * (lane % 4) on of row lane / 4; if Transposed, 16-bit
///      elements 2 * (lane % 4) and the next one of column lane / 4, the first of them in the
///      register's lower half
/// needs: place is in shared memory, and a multiple of 16
template <bool Transposed, class Block, class Place, class Access>
PIPE_HD PIPE_INLINE void load_matrices(Block& block, Place place, Access access) {
#ifdef __CUDA_ARCH__
  unsigned const at = static_cast<unsigned>(__cvta_generic_to_shared(place(int(threadIdx.x))));
  unsigned* const to = access(block.mine());
  if constexpr (Transposed)
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(at)
                 : "memory");
  else
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(at)
                 : "memory");
#else
  block.together([&](int first) {
    for (int matrix = 0; matrix < 4; ++matrix) {
      std::uint16_t element[8][8];
      for (int row = 0; row < 8; ++row)
        std::memcpy(element[row], place(first + 8 * matrix + row), sizeof element[row]);
      for (int lane = 0; lane < warp_size; ++lane) {
        int const i = lane / 4, k = lane % 4 * 2;
        unsigned const low = Transposed ? element[k][i] : element[i][k],
                       high = Transposed ? element[k + 1][i] : element[i][k + 1];
        access(block.of(first + lane))[matrix] = low | high << 16;
      }
    }
  });
#endif
}

}  // namespace pp::cuda
