// SPDX-License-Identifier: BSL-1.0
//
// What lanes of a warp do together: branches, barriers, exchanges and matrix products.
#include <algorithm>
#include <bit>
#include <cstdint>

#include "lanes.hpp"
#include "numbers.hpp"
#include "opcodes.hpp"
#include "product.hpp"

namespace ptx {
namespace {

void branch(warp& w, instruction const& i, lanes active) { w.jump(int(i.number), i.join, active); }
void leave(warp& w, instruction const&, lanes active) { w.leave(active); }
/// bar.sync: the barrier, and the threads that it waits for, where those are not all of the block.
void barrier(warp& w, instruction const& i, lanes active) {
  int const first = __builtin_ctz(active);
  w.barrier = int(w.read<std::uint32_t>(i.of[0], active)[first]);
  w.barrier_threads = i.count > 1 ? int(w.read<std::uint32_t>(i.of[1], active)[first]) : 0;
  if (w.barrier > 15) throw error("there are 16 barriers");
  if ((w.barrier == 0) != (w.barrier_threads == 0))
    throw error("bar.sync of another barrier than 0 and its number of threads go together");
  if (w.barrier_threads % warp_size != 0) throw error("bar.sync of a part of a warp");
  w.require_all(active, "a barrier");
  w.waits = true;
}
/// bar.red: whether the predicate holds for a thread of the block.
void barrier_with_vote(warp& w, instruction const& i, lanes active) {
  if (w.read<std::uint32_t>(i.of[1], active)[__builtin_ctz(active)] != 0)
    throw error("bar.red of another barrier than 0");
  w.require_all(active, "a barrier");
  w.barrier = w.barrier_threads = 0;
  w.vote_at_barrier(i, active, w.holds(i.of[2], active) != 0);
  w.waits = true;
}
/// Until the kernels before this one have ended, and what they wrote is visible. By all lanes: a
/// path without it would have waited for nothing.
void follow(warp& w, instruction const&, lanes active) {
  w.require_all(active, "griddepcontrol.wait");
  w.has_followed = true;
}
/// Those that follow may begin; they wait for the end of this kernel all the same.
void let_follow(warp&, instruction const&, lanes) {}
/// The lanes named in a mask are those that are here.
void require_members(warp& w, operand const& mask, lanes active) {
  lanes const* const m = w.read<lanes>(mask, active);
  each(active, [&](int l) {
    if ((m[l] & w.alive) != active)
      throw error("the mask of lanes names others than those that are here");
  });
}
/// The only one of a warp's instructions that orders memory: shuffles, votes, ldmatrix and mma do
/// not.
void meet(warp& w, instruction const& i, lanes active) {
  require_members(w, i.of[0], active);
  ++w.meetings;
}

/// shfl.sync d|p, a, b, c, mask. c: the segment and the limit of what is read, as the ISA says.
enum class shuffle { up, down, butterfly, index };
template <shuffle How>
void exchange(warp& w, instruction const& i, lanes active) {
  bool const says = i.count == 6;
  std::size_t const k = says ? 2 : 1;
  require_members(w, i.of[k + 3], active);
  std::uint32_t a[warp_size];
  std::copy_n(w.look<std::uint32_t>(i.of[k]), warp_size, a);
  lanes const known_sources = w.known_of(i.of[k]);
  std::uint32_t const* const b = w.read<std::uint32_t>(i.of[k + 1], active);
  std::uint32_t const* const c = w.read<std::uint32_t>(i.of[k + 2], active);
  std::uint32_t d[warp_size];
  lanes inside = 0, known = 0;
  each(active, [&](int l) {
    int const by = int(b[l] & 31), clamp = int(c[l] & 31), segment = int(c[l] >> 8 & 31);
    int const first = l & segment, last = first | (clamp & ~segment);
    int source = 0;
    bool fits = false;
    if (How == shuffle::up) source = l - by, fits = source >= last;
    if (How == shuffle::down) source = l + by, fits = source <= last;
    if (How == shuffle::butterfly) source = l ^ by, fits = source <= last;
    if (How == shuffle::index) source = first | (by & ~segment), fits = source <= last;
    if (!fits) source = l;
    if ((active >> source & 1) == 0) throw error("shfl.sync reads a lane that is not here");
    d[l] = a[source];
    inside |= lanes(fits) << l;
    known |= (known_sources >> source & 1) << l;
  });
  std::uint32_t* const to = w.write<std::uint32_t>(i.of[0], active, known);
  each(active, [&](int l) { to[l] = d[l]; });
  if (says) w.set(i.of[1], inside, active);
}
void match(warp& w, instruction const& i, lanes active) {
  require_members(w, i.of[2], active);
  std::uint32_t const* const a = w.read<std::uint32_t>(i.of[1], active);
  std::uint32_t* const d = w.write<std::uint32_t>(i.of[0], active);
  each(active, [&](int l) {
    lanes equal = 0;
    each(active, [&](int k) { equal |= lanes(a[k] == a[l]) << k; });
    d[l] = equal;
  });
}
void ballot(warp& w, instruction const& i, lanes active) {
  require_members(w, i.of[2], active);
  lanes const votes = w.holds(i.of[1], active);
  std::uint32_t* const d = w.write<std::uint32_t>(i.of[0], active);
  each(active, [=](int l) { d[l] = votes; });
}

/// mov between a register and its equal parts, the lowest first.
void pack(warp& w, instruction const& i, lanes active) {
  int const parts = i.count - 1;
  lanes known = all_lanes, low = all_lanes;
  for (int k = 0; k < parts; ++k) {
    lanes const part = w.known_of(i.of[std::size_t(k + 1)]);
    known &= part;
    if (2 * k < parts) low &= part;
  }
  wide_writer<std::uint64_t> const d(w, i.of[0], active, known);
  w.known_low[std::size_t(i.of[0].index)] |= low & active;
  int const bits = 8 * d.width / parts;
  each(active, [&](int l) {
    std::uint64_t all = 0;
    for (int k = 1; k < i.count; ++k) {
      std::uint64_t part = 0;
      operand const& o = i.of[std::size_t(k)];
      std::memcpy(&part, w.look<unsigned char>(o) + l * o.width, o.width);
      all |= part << ((k - 1) * bits);
    }
    std::memcpy(d.to + l * d.width, &all, std::size_t(d.width));
  });
}
void unpack(warp& w, instruction const& i, lanes active) {
  operand const& whole = i.of[std::size_t(i.count - 1)];
  unsigned char const* const from = w.look<unsigned char>(whole);
  for (int k = 0; k + 1 < i.count; ++k) {
    operand const& o = i.of[std::size_t(k)];
    bool const is_low = 2 * (k + 1) <= i.count - 1;
    unsigned char* const to =
        w.write<unsigned char>(o, active, is_low ? w.known_of_low(whole) : w.known_of(whole));
    each(active, [&](int l) {
      std::memcpy(to + l * o.width, from + l * whole.width + k * o.width, o.width);
    });
  }
}

/// ldmatrix: lanes 8m to 8m + 7 give the rows of matrix m; lane l gets elements 2 (l % 4) and the
///           next of row l / 4, or of that column.
template <int Matrices, bool Turned>
void load_matrices(warp& w, instruction const& i, lanes active) {
  w.require_all(active, "ldmatrix");
  if (active != all_lanes) throw error("ldmatrix needs a whole warp");
  operand const& o = i.of[Matrices];
  unsigned char from[warp_size * 8];  // the register may be one of those that are loaded
  std::memcpy(from, w.read<unsigned char>(o, active), std::size_t(warp_size * o.width));
  for (int m = 0; m < Matrices; ++m) {
    std::uint16_t rows[8][8];
    for (int r = 0; r < 8; ++r) {
      std::uint64_t at = 0;
      std::memcpy(&at, from + (8 * m + r) * o.width, o.width);
      at += std::uint64_t(i.number);
      if (at % 16 != 0) throw error("a row of a matrix is not aligned to 16 bytes");
      if (!w.in->shared.is_written(at, 16))
        throw error("a row of a matrix at " + std::to_string(at) + " that nobody wrote");
      for (int part = 0; part < 4; ++part)  // each lane of the row's four is a reader
        std::memcpy(&rows[r][2 * part],
                    w.in->shared.read(at + std::uint64_t(4 * part), 4,
                                      w.first_thread + 4 * r + part, w.now()),
                    4);
    }
    std::uint32_t* const d = w.write<std::uint32_t>(i.of[std::size_t(m)], active);
    for (int l = 0; l < warp_size; ++l) {
      int const r = l / 4, c = 2 * (l % 4);
      std::uint16_t const low = Turned ? rows[c][r] : rows[r][c],
                          high = Turned ? rows[c + 1][r] : rows[r][c + 1];
      d[l] = std::uint32_t(high) << 16 | low;
    }
  }
}

/// mma.m16n8: d, a, b, c as registers of lanes, as matrices.
template <class Format>
void multiply(warp& w, instruction const& i, lanes active) {
  if (active != all_lanes) throw error("mma needs a whole warp");
  w.require_all(active, "mma");
  constexpr int depth = Format::depth, per = Format::per_register, of_a = 16 * depth / 32 / per,
                of_b = 8 * depth / 32 / per;
  float a[16][depth], b[depth][8], c[16][8];
  std::size_t k = 4;
  for (int r = 0; r < of_a; ++r) {
    std::uint32_t const* const x = w.read<std::uint32_t>(i.of[k++], active);
    for (int l = 0; l < warp_size; ++l)
      for (int h = 0; h < per; ++h)
        a[l / 4 + 8 * (r % 2)][l % 4 * per + h + 4 * per * (r / 2)] = Format::number(x[l], h);
  }
  for (int r = 0; r < of_b; ++r) {
    std::uint32_t const* const x = w.read<std::uint32_t>(i.of[k++], active);
    for (int l = 0; l < warp_size; ++l)
      for (int h = 0; h < per; ++h)
        b[l % 4 * per + h + 4 * per * r][l / 4] = Format::number(x[l], h);
  }
  for (int r = 0; r < 4; ++r) {
    float const* const x = w.read<float>(i.of[k++], active);
    for (int l = 0; l < warp_size; ++l) c[l / 4 + 8 * (r / 2)][2 * (l % 4) + r % 2] = x[l];
  }
  add_product<depth, Format::least>(c, a, b);
  for (int r = 0; r < 4; ++r) {
    float* const x = w.write<float>(i.of[std::size_t(r)], active);
    for (int l = 0; l < warp_size; ++l) x[l] = c[l / 4 + 8 * (r / 2)][2 * (l % 4) + r % 2];
  }
}
struct tf32 {
  static constexpr int depth = 8, per_register = 1, least = -126;
  static float number(std::uint32_t x, int) { return std::bit_cast<float>(x & ~0x1fffu); }
};
struct bf16 {
  static constexpr int depth = 16, per_register = 2, least = -126;
  static float number(std::uint32_t x, int half) {
    return float_of_bf16(std::uint16_t(x >> (16 * half)));
  }
};
struct half {
  static constexpr int depth = 16, per_register = 2, least = -14;
  static float number(std::uint32_t x, int h) {
    return float_of_half(std::uint16_t(x >> (16 * h)));
  }
};

}  // namespace

void add_warp(opcode_table& t) {
  t["bra"] = t["bra.uni"] = {branch, "l"};
  t["ret"] = t["exit"] = {leave, ""};
  t["bar.sync"] = {barrier, "44", 1};
  t["bar.red.or.pred"] = {barrier_with_vote, "p4p"};
  t["bar.warp.sync"] = {meet, "4"};
  t["griddepcontrol.wait"] = {follow, ""};
  t["griddepcontrol.launch_dependents"] = {let_follow, ""};
  t["shfl.sync.up.b32"] = {exchange<shuffle::up>, "444444", 5};
  t["shfl.sync.down.b32"] = {exchange<shuffle::down>, "444444", 5};
  t["shfl.sync.bfly.b32"] = {exchange<shuffle::butterfly>, "444444", 5};
  t["shfl.sync.idx.b32"] = {exchange<shuffle::index>, "444444", 5};
  t["match.any.sync.b32"] = {match, "444"};
  t["vote.sync.ballot.b32"] = t["vote.ballot.sync.b32"] = {ballot, "4p4"};
  for (char const* bits : {"b32", "b64"}) {
    t[std::string("mov.") + bits + ".pack"] = {pack, "88888", 3};
    t[std::string("mov.") + bits + ".unpack"] = {unpack, "88888", 3};
  }
  t["ldmatrix.sync.aligned.m8n8.x1.shared.b16"] = {load_matrices<1, false>, "4a"};
  t["ldmatrix.sync.aligned.m8n8.x2.shared.b16"] = {load_matrices<2, false>, "44a"};
  t["ldmatrix.sync.aligned.m8n8.x4.shared.b16"] = {load_matrices<4, false>, "4444a"};
  t["ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16"] = {load_matrices<1, true>, "4a"};
  t["ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16"] = {load_matrices<2, true>, "44a"};
  t["ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16"] = {load_matrices<4, true>, "4444a"};
  t["mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32"] = {multiply<tf32>, "44444444444444"};
  t["mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"] = {multiply<bf16>, "44444444444444"};
  t["mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"] = {multiply<half>, "44444444444444"};
}

}  // namespace ptx
