// SPDX-License-Identifier: BSL-1.0
//
// Four 8 x 8 matrices of 16-bit elements from shared memory to the registers of a warp (ldmatrix), spread as the tiles of matrix.hpp want
// them. A row is 16 neighbouring bytes; where it lies, one thread for each row says.
#pragma once

#include <cstdint>
#include <cstring>

#include <pipe/backend/cuda/block.hpp>

namespace pp::cuda {

/// Lane l of a warp names row l % 8 of matrix l / 8: row(thread). Register i of lane l, to(state)[i], then holds elements
/// 2 * (l % 4) and 2 * (l % 4) + 1 of row l / 4 of matrix i; of its column l / 4 if Transposed. Called between phases.
///
/// needs: rows are aligned to 16 bytes
template <bool Transposed, class Block, class Row, class To>
PIPE_HD PIPE_INLINE void load_matrices(Block& block, Row row, To to) {
#ifdef __CUDA_ARCH__
  unsigned const at = static_cast<unsigned>(__cvta_generic_to_shared(row(int(threadIdx.x))));
  unsigned* const x = to(block.mine());
  if constexpr (Transposed)
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                 : "r"(at)
                 : "memory");
  else
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                 : "r"(at)
                 : "memory");
#else
  for (int first = 0; first < Block::threads; first += warp_size)
    for (int i = 0; i < 4; ++i) {
      std::uint16_t element[8][8];
      for (int r = 0; r < 8; ++r) std::memcpy(element[r], row(first + 8 * i + r), 16);
      for (int lane = 0; lane < warp_size; ++lane) {
        int const line = lane / 4, place = lane % 4 * 2;
        unsigned const low = Transposed ? element[place][line] : element[line][place],
                       high = Transposed ? element[place + 1][line] : element[line][place + 1];
        to(block.of(first + lane))[i] = low | high << 16;
      }
    }
#endif
}

}  // namespace pp::cuda
