// SPDX-License-Identifier: BSL-1.0
//
// AMX as its manual has it, in plain code: the arithmetic of TDPBF16PS, and its instructions for a
// processor that has none of them, as the handler of the signal that they raise there.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include <pipe/backend/host/amx.hpp>
#include <pipe/base/half.hpp>

#if defined(__x86_64__) && defined(__linux__)
#include <signal.h>
#include <ucontext.h>
#endif

namespace amx_model {

inline float zeroed(float x) {
  return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0f, x) : x;
}

/// c + a b: one rounding to nearest; DAZ and FTZ.
inline float multiply_add(float a, float b, float c) {
  a = zeroed(a), b = zeroed(b), c = zeroed(c);
  float const sum = std::fma(a, b, c);
  if (!(std::fabs(sum) < 0x1p-125f) || sum == 0) return sum;
  // Is the sum, rounded with exponents without end, subnormal?
  (std::fabs(a) < std::fabs(b) ? a : b) *= 0x1p100f;
  return std::fabs(std::fma(a, b, c * 0x1p100f)) < 0x1p-26f ? std::copysign(0.0f, sum) : sum;
}
inline float add(float a, float b) { return multiply_add(a, 1, b); }

/// c[n] += a[m, k] b[k, n] of one tile: a has pairs in a row, b rows of pairs.
inline void tdpbf16ps(float* c, std::uint16_t const* a, std::uint16_t const* b, int rows, int pairs,
                      int columns) {
  for (int m = 0; m < rows; ++m)
    for (int n = 0; n < columns; ++n) {
      float even = 0, odd = 0;
      for (int k = 0; k < pairs; ++k) {
        even = multiply_add(pp::detail::float_from_bf16(a[m * 32 + 2 * k]),
                            pp::detail::float_from_bf16(b[k * 32 + 2 * n]), even);
        odd = multiply_add(pp::detail::float_from_bf16(a[m * 32 + 2 * k + 1]),
                           pp::detail::float_from_bf16(b[k * 32 + 2 * n + 1]), odd);
      }
      c[m * 16 + n] = add(c[m * 16 + n], add(even, odd));
    }
}

/// The bits of x; those of one NaN for every NaN.
inline std::uint32_t bits(float x) {
  std::uint32_t b;
  std::memcpy(&b, &x, sizeof b);
  return std::isnan(x) ? 0x7FC00000 : b;
}

/// Slice s of x.
inline float slice(float x, int s) {
  for (; s > 0; --s) x -= float(pp::bf16(x));
  return float(pp::bf16(x));
}

/// Element (i, j) of a b, of slices; a number for each element of k.
inline float product(int slices, std::vector<float> const& a, std::vector<float> const& b) {
  float sum = 0;
  for (std::size_t p = 0; p < a.size(); p += 32)
    for (int small = slices - 1; small >= 0; --small)
      for (int x = small; x >= 0; --x) {
        float chain[2] = {};
        for (std::size_t q = p; q < p + 32 && q < a.size(); ++q)
          chain[q % 2] = multiply_add(slice(a[q], x), slice(b[q], small - x), chain[q % 2]);
        sum = add(sum, add(chain[0], chain[1]));
      }
  return sum;
}

/// The same of one slice by VDPBF16PS: one chain, of each pair of terms the odd one first. The
/// terms of whole tiles are there.
inline float product_of_pairs(std::vector<float> a, std::vector<float> b) {
  a.resize((a.size() + 31) / 32 * 32), b.resize(a.size());
  float sum = 0;
  for (std::size_t p = 0; p < a.size(); ++p) sum = multiply_add(a[p ^ 1], b[p ^ 1], sum);
  return sum;
}

#if defined(__x86_64__) && defined(__linux__)

/// A processor's tiles.
struct processor {
  unsigned char tile[8][16][64];
  std::uint8_t rows[8];
  std::uint16_t row_bytes[8];
  bool configured;
  long products;
};
inline thread_local processor state;

/// Executes the instruction at the context's address, if it is one of AMX's; aborts if the
/// processor would raise an exception.
inline void execute(int, siginfo_t*, void* given) {
  auto& registers = static_cast<ucontext_t*>(given)->uc_mcontext.gregs;
  static constexpr int numbers[]{REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP,
                                 REG_RSI, REG_RDI, REG_R8,  REG_R9,  REG_R10, REG_R11,
                                 REG_R12, REG_R13, REG_R14, REG_R15};
  auto const* at = reinterpret_cast<unsigned char const*>(registers[REG_RIP]);
  auto const refuse = [](bool wrong) {
    if (wrong) std::abort();
  };
  // A VEX prefix of three bytes: R, X, B and map 0F38; W, vvvv, L and pp.
  refuse(at[0] != 0xC4 || (at[1] & 31) != 2 || (at[2] & 0x84) != 0);
  int const more_reg = (at[1] & 0x80) == 0 ? 8 : 0, more_index = (at[1] & 0x40) == 0 ? 8 : 0,
            more_base = (at[1] & 0x20) == 0 ? 8 : 0, third = ~at[2] >> 3 & 15, prefix = at[2] & 3,
            code = at[3], mode = at[4] >> 6, reg = (at[4] >> 3 & 7) | more_reg, rm = at[4] & 7;
  unsigned char const* next = at + 5;
  long long address = 0, stride = 0;
  if (mode != 3) {
    int base = rm | more_base;
    bool no_base = false;
    if (rm == 4) {
      int const index = (*next >> 3 & 7) | more_index;
      if (index != 4) stride = registers[numbers[index]] << (*next >> 6);
      no_base = mode == 0 && (*next & 7) == 5;
      base = (*next & 7) | more_base;
      ++next;
    } else if (mode == 0 && rm == 5) {
      no_base = true;
    }
    std::int32_t offset = 0;
    if (mode == 1)
      offset = static_cast<signed char>(*next++);
    else if (mode == 2 || no_base)
      std::memcpy(&offset, next, 4), next += 4;
    address = offset + (!no_base ? registers[numbers[base]] : rm == 5 ? (long long)next : 0LL);
  }
  if (code == 0x49 && prefix == 0 && mode != 3) {  // ldtilecfg
    auto const* const from = reinterpret_cast<unsigned char const*>(address);
    refuse(from[0] != 1 || from[1] != 0);
    std::memcpy(state.row_bytes, from + 16, sizeof state.row_bytes);
    std::memcpy(state.rows, from + 48, sizeof state.rows);
    for (int t = 0; t < 8; ++t) refuse(state.rows[t] > 16 || state.row_bytes[t] > 64);
    std::memset(state.tile, 0, sizeof state.tile);
    state.configured = true;
  } else if (code == 0x49 && prefix == 0 && at[4] == 0xC0) {  // tilerelease
    state.configured = false;
  } else if (code == 0x49 && prefix == 3 && mode == 3) {  // tilezero
    refuse(!state.configured || reg > 7);
    std::memset(state.tile[reg], 0, sizeof state.tile[reg]);
  } else if (code == 0x4B && (prefix == 3 || prefix == 2) && mode != 3 && rm == 4) {
    refuse(!state.configured || reg > 7);
    if (prefix == 3) std::memset(state.tile[reg], 0, sizeof state.tile[reg]);
    for (int r = 0; r < state.rows[reg]; ++r) {
      auto* const memory = reinterpret_cast<unsigned char*>(address + r * stride);
      if (prefix == 3)  // tileloadd
        std::memcpy(state.tile[reg][r], memory, state.row_bytes[reg]);
      else  // tilestored
        std::memcpy(memory, state.tile[reg][r], state.row_bytes[reg]);
    }
  } else if (code == 0x5C && prefix == 2 && mode == 3) {  // tdpbf16ps
    refuse(!state.configured || reg > 7 || (rm | more_base) > 7 || third > 7);
    refuse(reg == rm || reg == third || rm == third);
    refuse(state.row_bytes[reg] != state.row_bytes[third] || state.rows[reg] != state.rows[rm] ||
           state.row_bytes[rm] != 4 * state.rows[third]);
    float sums[16 * 16];
    std::uint16_t a[16 * 32], b[16 * 32];
    std::memcpy(sums, state.tile[reg], sizeof sums);
    std::memcpy(a, state.tile[rm], sizeof a);
    std::memcpy(b, state.tile[third], sizeof b);
    tdpbf16ps(sums, a, b, state.rows[reg], state.row_bytes[rm] / 4, state.row_bytes[reg] / 4);
    std::memcpy(state.tile[reg], sums, sizeof sums);
    ++state.products;
  } else {
    refuse(true);
  }
  registers[REG_RIP] = (long long)next;
}

/// While it lives, AMX's instructions run in this process: on the processor's, or here.
struct instructions {
  struct sigaction before{};
  bool const are_there = pp::host::has_amx();
  instructions() {
    if (are_there) return;
    struct sigaction now{};
    now.sa_sigaction = &execute;
    now.sa_flags = SA_SIGINFO | SA_NODEFER;
    sigemptyset(&now.sa_mask);
    sigaction(SIGILL, &now, &before);
  }
  ~instructions() {
    if (!are_there) sigaction(SIGILL, &before, nullptr);
  }
  instructions(instructions const&) = delete;
  instructions& operator=(instructions const&) = delete;
};
#endif

}  // namespace amx_model
