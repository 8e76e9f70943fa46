// SPDX-License-Identifier: BSL-1.0
//
// AMX: tiles of bfloat16 numbers, of which one instruction makes 8192 products. Instructions are
// written as assembly, so no compiler option is needed; a processor without AMX never reaches them.
#pragma once

#include <cstdint>

#include <pipe/backend/host/isa.hpp>
#include <pipe/backend/host/sliced_products.hpp>
#include <pipe/base/config.hpp>

PIPE_OPTIMIZED_BEGIN
namespace pp::host {

#ifdef __x86_64__
namespace amx {

/// Whether the processor has AMX-TILE and AMX-BF16, and the system saves tiles on a switch of
/// threads (XCR0, bits 17 and 18).
inline bool is_there() {
  auto const ask = [](unsigned leaf, unsigned(&r)[4]) {
    asm volatile("cpuid" : "=a"(r[0]), "=b"(r[1]), "=c"(r[2]), "=d"(r[3]) : "a"(leaf), "c"(0));
  };
  unsigned r[4];
  ask(0, r);
  if (r[0] < 7) return false;
  ask(1, r);
  if ((r[2] >> 27 & 1) == 0) return false;  // no xgetbv
  ask(7, r);
  if ((r[3] >> 22 & 1) == 0 || (r[3] >> 24 & 1) == 0) return false;
  unsigned saved;
  asm volatile("xgetbv" : "=a"(saved) : "c"(0) : "edx");
  return (saved >> 17 & 3) == 3;
}
/// Asks Linux for the permission to use tiles (arch_prctl, ARCH_REQ_XCOMP_PERM, feature 18), which
/// holds for all threads of the process.
inline bool is_permitted() {
#ifdef __linux__
  long result;
  asm volatile("syscall"
               : "=a"(result)
               : "a"(158L), "D"(0x1023L), "S"(18L)
               : "rcx", "r11", "memory");
  return result == 0;
#else
  return false;
#endif
}

/// The configuration of tiles, as LDTILECFG reads it: eight tiles of 16 rows of 64 bytes.
struct alignas(64) tile_configuration {
  std::uint8_t palette = 1, start_row = 0, reserved[14]{};
  std::uint16_t row_bytes[16]{64, 64, 64, 64, 64, 64, 64, 64};
  std::uint8_t rows[16]{16, 16, 16, 16, 16, 16, 16, 16};
};
static_assert(sizeof(tile_configuration) == 64);

/// The tiles of this thread, configured while the object lives. Released, they cost no switch of
/// threads any time.
struct tiles_of_thread {
  bool used;
  explicit tiles_of_thread(bool uses) : used(uses) {
    static constexpr tile_configuration all{};
    if (used) asm volatile("ldtilecfg %0" : : "m"(all));
  }
  ~tiles_of_thread() {
    if (used) asm volatile("tilerelease");
  }
  tiles_of_thread(tiles_of_thread const&) = delete;
  tiles_of_thread& operator=(tiles_of_thread const&) = delete;
};

template <int Tile>
[[gnu::always_inline]] inline void load(void const* from, extent row_bytes) {
  asm volatile("tileloadd (%1,%2,1), %%tmm%c0" : : "i"(Tile), "r"(from), "r"(row_bytes) : "memory");
}
template <int Tile>
[[gnu::always_inline]] inline void store(void* to, extent row_bytes) {
  asm volatile("tilestored %%tmm%c0, (%1,%2,1)" : : "i"(Tile), "r"(to), "r"(row_bytes) : "memory");
}
template <int Tile>
[[gnu::always_inline]] inline void begin(float const* from, extent row_bytes, bool from_zero) {
  if (from_zero)
    asm volatile("tilezero %%tmm%c0" : : "i"(Tile));
  else
    load<Tile>(from, row_bytes);
}
template <int Sums, int A, int B>
[[gnu::always_inline]] inline void multiply() {
  asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(Sums), "i"(A), "i"(B));
}

/// sums (+)= A B for a block of tiles: tiles 0 to 3 have sums, 4 and 5 A, 6 and 7 B.
///
/// shape: A (high * 16, steps * 32), B (steps * 32, wide * 16) -> sums (high * 16, wide * 16)
/// needs: tiles_of_thread
/// cost:  as many loads of tiles as products, each of which takes half a product's time
[[gnu::noinline]] inline void multiply_block(sliced_block const& of) {
  bool const two_high = of.high > 1, two_wide = of.wide > 1;
  extent const row_bytes = of.stride * 4;
  float *const upper = of.sums, *const lower = upper + tile_side * of.stride;
  begin<0>(upper, row_bytes, of.begins);
  if (two_wide) begin<1>(upper + tile_side, row_bytes, of.begins);
  if (two_high) begin<2>(lower, row_bytes, of.begins);
  if (two_high && two_wide) begin<3>(lower + tile_side, row_bytes, of.begins);
  for (extent p = 0; p < of.steps; ++p)
    for (int pair = 0; pair < slice_pairs(of.slices); ++pair) {
      slice_pair const at = slice_pair_at(of.slices, pair);
      std::uint16_t const *const a = of.a + (p * of.slices + at.left) * tile_elements,
                                 *const b = of.b + (p * of.slices + at.right) * tile_elements;
      load<4>(a, 64);
      load<6>(b, 64);
      multiply<0, 4, 6>();
      if (two_wide) {
        load<7>(b + of.pitch, 64);
        multiply<1, 4, 7>();
      }
      if (two_high) {
        load<5>(a + of.pitch, 64);
        multiply<2, 5, 6>();
        if (two_wide) multiply<3, 5, 7>();
      }
    }
  store<0>(upper, row_bytes);
  if (two_wide) store<1>(upper + tile_side, row_bytes);
  if (two_high) store<2>(lower, row_bytes);
  if (two_high && two_wide) store<3>(lower + tile_side, row_bytes);
}

}  // namespace amx
#endif

/// Whether this process may use AMX; the first call asks the system for it.
inline bool has_amx() {
#ifdef __x86_64__
  static bool const has = amx::is_there() && amx::is_permitted();
  return has;
#else
  return false;
#endif
}

}  // namespace pp::host
PIPE_OPTIMIZED_END
