// SPDX-License-Identifier: BSL-1.0
//
// Instructions of Hopper: mbarrier, cp.async.bulk.tensor, wgmma, fences between proxies. Sections
// 9.7.9, 9.7.13 and 9.7.15 of the PTX ISA.
#include "async.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "lanes.hpp"
#include "numbers.hpp"
#include "opcodes.hpp"
#include "product.hpp"

namespace ptx {

char const* fault_of(tensor_map const& m) {
  if (m.rank < 1 || m.rank > 5) return "rank";
  if (m.base % 16 != 0) return "base";
  for (int d = 0; d < m.rank; ++d) {
    if (m.extents[d] < 1 || m.extents[d] > std::uint64_t(1) << 32) return "extents";
    if (m.box[d] < 1 || m.box[d] > 256) return "box";
  }
  for (int d = 0; d + 1 < m.rank; ++d)
    if (m.strides[d] % 16 != 0 || m.strides[d] >= std::uint64_t(1) << 40 ||
        m.strides[d] < (d == 0 ? m.extents[0] * m.element_bytes : m.strides[d - 1]))
      return "strides";
  int const inner = m.box[0] * m.element_bytes;
  if (inner % 16 != 0) return "inner box";
  if (m.swizzle > 3 || (m.swizzle != 0 && inner > 16 << m.swizzle)) return "swizzle";
  return nullptr;
}
std::size_t tensor_copy::bytes() const {
  std::size_t n = map.element_bytes;
  for (int d = 0; d < map.rank; ++d) n *= map.box[d];
  return n;
}

namespace {

void join(clock& to, clock const& from) {
  for (std::size_t w = 0; w < to.size(); ++w) to[w] = std::max(to[w], from[w]);
}
std::string name(std::uint32_t at) { return "the mbarrier at " + std::to_string(at); }

/// The one value that all active lanes have in a register.
template <class T>
T uniform(warp& w, operand const& o, lanes active, char const* what) {
  T const* const x = w.read<T>(o, active);
  T const first = x[__builtin_ctz(active)];
  each(active, [&](int l) {
    if (x[l] != first) throw error(std::string(what) + " differs between lanes");
  });
  return first;
}
std::uint64_t address(warp& w, operand const& o, std::int64_t more, int l) {
  unsigned char const* const from = w.read<unsigned char>(o, lanes(1) << l);
  std::uint64_t at = 0;
  std::memcpy(&at, from + l * o.width, o.width);
  return at + std::uint64_t(more);
}

// ---- mbarriers ----

/// One that was begun, and whose beginning the warp has seen.
mbarrier& barrier_at(warp& w, std::uint64_t at) {
  auto const found = w.in->work.barriers.find(std::uint32_t(at));
  if (found == w.in->work.barriers.end()) throw error(name(std::uint32_t(at)) + " was not begun");
  mbarrier& b = found->second;
  if (b.begun_by != w.number() && w.seen[std::size_t(b.begun_by)] < b.begun)
    throw error(name(std::uint32_t(at)) + " is used without a barrier behind its mbarrier.init");
  return b;
}
void complete(async_work& work, mbarrier& b) {
  if (b.missing != 0 || b.bytes != 0) return;
  ++b.phase;
  b.missing = b.arrivals;
  b.ended = b.arriving;
  ++work.progress;
}
void begin_barrier(warp& w, instruction const& i, lanes active) {
  std::uint32_t const* const arrivals = w.read<std::uint32_t>(i.of[1], active);
  each(active, [&](int l) {
    std::uint64_t const at = address(w, i.of[0], i.number, l);
    if (at % 8 != 0) throw error(name(std::uint32_t(at)) + " is not aligned");
    if (arrivals[l] < 1 || arrivals[l] >= 1u << 20) throw error("an mbarrier of no arrivals");
    w.in->shared.write(at, 8, w.first_thread + l, w.now());
    mbarrier b;
    b.arrivals = b.missing = int(arrivals[l]);
    b.begun_by = w.number(), b.begun = w.in->work.time++;
    w.in->work.barriers[std::uint32_t(at)] = b;
  });
}
template <bool Expects>
void arrive(warp& w, instruction const& i, lanes active) {
  async_work& work = w.in->work;
  std::uint32_t const* const bytes = Expects ? w.read<std::uint32_t>(i.of[2], active) : nullptr;
  each(active, [&](int l) {
    std::uint64_t const at = address(w, i.of[1], i.number, l);
    mbarrier& b = barrier_at(w, at);
    if (b.missing == 0) throw error("an arrival too many at " + name(std::uint32_t(at)));
    if (Expects) b.bytes += bytes[l];
    --b.missing;
    w.seen[std::size_t(w.number())] = work.time++;
    join(b.arriving, w.seen);
    complete(work, b);
  });
}
void try_wait(warp& w, instruction const& i, lanes active) {
  lanes done = 0;
  std::uint32_t const* const parity = w.read<std::uint32_t>(i.of[2], active);
  each(active, [&](int l) {
    std::uint64_t const at = address(w, i.of[1], i.number, l);
    mbarrier const& b = barrier_at(w, at);
    if (parity[l] > 1) throw error("a parity is 0 or 1");
    if (b.phase % 2 != parity[l]) {
      done |= lanes(1) << l;
      join(w.seen, b.ended);
    } else {
      w.polls = true;
      w.polled = {std::uint32_t(at), parity[l]};
    }
  });
  ++w.in->work.time;
  if (done != 0) ++w.in->work.progress;
  w.set(i.of[0], done, active);
}
void fence_barriers(warp& w, instruction const&, lanes) {
  for (auto& [at, b] : w.in->work.barriers)
    if (b.begun_by == w.number()) b.is_known = true;
}
void fence_proxy(warp& w, instruction const& i, lanes active) {
  fence_barriers(w, i, active);
  w.in->work.fenced[std::size_t(w.number())] = w.in->work.time++;
}

// ---- copies ----

/// Throws error if a byte was stored by threads and the async proxy may not see it.
void require_fenced(warp& w, std::uint64_t at, std::size_t bytes, char const* what) {
  for (std::uint64_t k = at; k < at + bytes; ++k) {
    int by = 0;
    std::uint32_t time = 0;
    if (!w.in->shared.is_stored(k, by, time)) continue;
    std::uint32_t const fenced = w.in->work.fenced[std::size_t(by)];
    if (fenced < time || (by != w.number() && fenced > w.seen[std::size_t(by)]))
      throw error("shared byte " + std::to_string(k) + " is " + what +
                  " and was stored without fence.proxy.async");
  }
}
moment moment_of(block& b) {
  static constexpr clock all = [] {
    clock c{};
    for (std::uint32_t& t : c) t = 0xffffffff;
    return c;
  }();
  return {b.barriers, 0, b.work.time, all.data()};
}
void land(block& b, std::size_t which) {
  tensor_copy const c = b.work.copies[which];
  b.work.copies.erase(b.work.copies.begin() + std::ptrdiff_t(which));
  tensor_map const& m = c.map;
  std::size_t const bytes = c.bytes(), row_bytes = std::size_t(m.box[0]) * m.element_bytes;
  unsigned char* const first = b.shared.end_copy(c.to, bytes, tma_thread, moment_of(b));
  for (std::size_t row = 0; row < bytes / row_bytes; ++row) {
    std::size_t rest = row;
    std::uint64_t from = m.base;
    bool is_inside = true;
    for (int d = 1; d < m.rank; ++d) {
      std::int64_t const x = c.at[d] + std::int64_t(rest % m.box[d]);
      rest /= m.box[d];
      is_inside = is_inside && x >= 0 && std::uint64_t(x) < m.extents[d];
      from += std::uint64_t(x) * m.strides[d - 1];
    }
    for (std::size_t k = 0; k < row_bytes; ++k) {
      std::uint32_t at = c.to + std::uint32_t(row * row_bytes + k);
      at ^= (at >> 7 & ((1u << m.swizzle) - 1)) << 4;
      std::int64_t const x = c.at[0] + std::int64_t(k / m.element_bytes);
      bool const is_there = is_inside && x >= 0 && std::uint64_t(x) < m.extents[0];
      std::uint64_t const of = from + std::uint64_t(x) * m.element_bytes + k % m.element_bytes;
      if (is_there && !b.global.holds(of, 1)) throw error("a map's element is in no allocation");
      first[at - c.to] = is_there ? *reinterpret_cast<unsigned char const*>(of) : 0;
    }
  }
  mbarrier& done = b.work.barriers.at(c.done);
  done.bytes -= std::int64_t(bytes);
  done.arriving[tma] = b.work.time++;
  complete(b.work, done);
  ++b.work.progress;
}
/// cp.async.bulk.tensor: to, the map, coordinates from the innermost on, the mbarrier.
template <int Rank>
void copy_box(warp& w, instruction const& i, lanes active) {
  if (w.in->is_early && !w.has_followed)
    throw error("global memory is accessed before griddepcontrol.wait, in an early launch");
  each(active, [&](int l) {
    tensor_copy c;
    std::uint64_t const map = address(w, i.of[1], 0, l);
    if (map % 64 != 0) throw error("a tensor map is not aligned to 64 bytes");
    if (map >= shared_window) throw error("a tensor map is in shared or local memory");
    bool const is_parameter = map >= parameter_window;
    if (is_parameter ? map - parameter_window + 128 > w.in->of.parameter_bytes
                     : !w.in->global.holds(map, 128))
      throw error("a tensor map is nowhere");
    std::memcpy(&c.map,
                is_parameter ? w.in->parameters + (map - parameter_window)
                             : reinterpret_cast<unsigned char const*>(map),
                sizeof c.map);
    if (c.map.magic != tensor_map::valid) throw error("no tensor map is encoded there");
    if (c.map.rank != Rank) throw error("a tensor map of another rank");
    for (int d = 0; d < Rank; ++d)
      c.at[d] = w.read<std::int32_t>(i.of[std::size_t(2 + d)], lanes(1) << l)[l];
    c.to = std::uint32_t(address(w, i.of[0], i.number, l));
    c.done = std::uint32_t(address(w, i.of[2 + Rank], 0, l));
    if (c.to % (c.map.swizzle == 0 ? 128u : 128u << c.map.swizzle) != 0)
      throw error("a box at shared byte " + std::to_string(c.to) + " is not aligned");
    if (!barrier_at(w, c.done).is_known)
      throw error(name(c.done) + " was begun without a fence that copies see");
    for (std::size_t k = c.to; k < c.to + c.bytes(); ++k)
      if (w.in->shared.is_multiplied(k))
        throw error("shared byte " + std::to_string(k) + " is copied to and still multiplied");
    for (auto const& [what, time] : w.in->work.multiplied) {
      auto const& [from, to] = what.second;
      if (from < c.to + c.bytes() && c.to < to && w.seen[std::size_t(what.first)] < time)
        throw error("shared bytes from " + std::to_string(from) +
                    " are copied to without a barrier behind their products, of warp " +
                    std::to_string(what.first));
    }
    require_fenced(w, c.to, c.bytes(), "copied to");
    w.in->shared.begin_copy(c.to, c.bytes(), w.first_thread + l, w.now());
    ++w.in->work.time;
    w.in->work.copies.push_back(c);
    if (w.in->work.order == 1) land(*w.in, w.in->work.copies.size() - 1);
  });
}

// ---- wgmma ----

/// An operand in shared memory, of 16-bit elements. Of the layouts of a descriptor: of 8 rows of
/// `width` bytes, which are repeated at two offsets.
struct matrix {
  std::uint64_t start, leading, stride;
  unsigned type, width, bits;
  bool is_k_major;
  matrix(std::uint64_t d, bool k_major)
      : start((d & 0x3fff) << 4), leading((d >> 16 & 0x3fff) << 4), stride((d >> 32 & 0x3fff) << 4),
        type(unsigned(d >> 62)), width(type == 1   ? 128
                                       : type == 2 ? 64
                                       : type == 3 ? 32
                                                   : 16),
        bits(type == 0 ? 0 : 4 - type), is_k_major(k_major) {
    if ((d >> 49 & 7) != 0) throw error("a descriptor with a base offset is not executed");
  }
  /// Of 8 elements that are neighbours in memory: along k from k on, or along mn from mn on.
  std::uint64_t place(int mn, int k) const {
    auto const m = std::uint64_t(mn), q = std::uint64_t(k);
    std::uint64_t at = start;
    if (is_k_major)
      at += m / 8 * stride + m % 8 * width + (type == 0 ? q / 8 * leading : q * 2);
    else if (type == 0)
      at += m / 8 * stride + q / 8 * leading + q % 8 * 16;
    else
      at += m * 2 / width * leading + m * 2 % width + q / 8 * stride + q % 8 * width;
    return at ^ (at >> 7 & ((1u << bits) - 1)) << 4;
  }
  /// f(address of 16 bytes, mn, k) for all pieces of rows [first, first + count), 16 deep.
  template <class F>
  void each_piece(int first, int count, F f) const {
    if (is_k_major)
      for (int m = first; m < first + count; ++m)
        for (int k = 0; k < 16; k += 8) f(place(m, k), m, k);
    else
      for (int m = first; m < first + count; m += 8)
        for (int k = 0; k < 16; ++k) f(place(m, k), m, k);
  }
};

/// A warp's 16 rows of a, and all of b.
template <class F>
void each_operand_piece(warp& w, product const& p, int columns, F f) {
  instruction const& i = *p.of;
  auto const is_turned = [&](std::size_t k) {
    return w.read<std::uint32_t>(i.of[k], lanes(1))[0] != 0;
  };
  matrix const a(p.a, !is_turned(6)), b(p.b, !is_turned(7));
  a.each_piece(w.number() % 4 * 16, 16, [&](std::uint64_t at, int m, int k) { f(a, at, m, k); });
  b.each_piece(0, columns, [&](std::uint64_t at, int n, int k) { f(b, at, n, k); });
}
template <int Columns, bool IsHalf>
void multiply_now(warp& w, product& p) {
  p.is_done = true;
  static float a[16][16], b[Columns][16];
  bool is_a = true;
  int const first = w.number() % 4 * 16;
  std::uint64_t pieces = 0;
  each_operand_piece(w, p, Columns, [&](matrix const& of, std::uint64_t at, int mn, int k) {
    is_a = pieces++ < 32;  // 16 rows of 32 bytes
    std::uint16_t bits[8];
    std::memcpy(bits, w.in->shared.bytes_at(at), 16);
    for (int e = 0; e < 8; ++e) {
      float const x = IsHalf ? float_of_half(bits[e]) : float_of_bf16(bits[e]);
      int const m = of.is_k_major ? mn : mn + e, q = of.is_k_major ? k + e : k;
      (is_a ? a[m - first] : b[m])[q] = x;
    }
  });
  instruction const& i = *p.of;
  auto const sums = [&](int n) {
    return reinterpret_cast<float*>(w.registers.data() + i.many[std::size_t(n)].at);
  };
  for (int n = 0; n < Columns; n += 8) {
    float c[16][8], right[16][8];
    for (int k = 0; k < 16; ++k)
      for (int j = 0; j < 8; ++j) right[k][j] = b[n + j][k];
    for (int r = 0; r < 4; ++r)
      for (int l = 0; l < warp_size; ++l)
        c[l / 4 + 8 * (r / 2)][2 * (l % 4) + r % 2] = p.adds ? sums(n / 2 + r)[l] : 0.0f;
    add_product<16, IsHalf ? -14 : -126>(c, a, right);
    for (int r = 0; r < 4; ++r)
      for (int l = 0; l < warp_size; ++l)
        sums(n / 2 + r)[l] = c[l / 4 + 8 * (r / 2)][2 * (l % 4) + r % 2];
  }
}
bool is_under_way(warp const& w, operand const& o) {
  for (product const& p : w.products)
    for (operand const& q : p.of->many)
      if (q.index == o.index) return true;
  return false;
}
/// wgmma.mma_async: sums, a, b, whether it adds, signs of a and b, whether a and b are along mn.
template <int Columns, bool IsHalf>
void multiply_later(warp& w, instruction const& i, lanes active) {
  if (active != all_lanes) throw error("wgmma needs a whole warp");
  w.require_all(active, "wgmma");
  if (!w.has_batch) throw error("wgmma.mma_async without wgmma.fence since the last wait");
  if (int(i.many.size()) != Columns / 2) throw error("another number of sums");
  product p{&i,
            uniform<std::uint64_t>(w, i.of[1], active, "a descriptor"),
            uniform<std::uint64_t>(w, i.of[2], active, "a descriptor"),
            false,
            false,
            w.product_groups};
  lanes const adds = w.holds(i.of[3], active);
  if (adds != 0 && adds != active) throw error("scale-d differs between lanes");
  p.adds = adds != 0;
  for (std::size_t k : {4, 5})
    if (w.read<std::uint32_t>(i.of[k], active)[0] != 1) throw error("a sign is not executed");
  each_operand_piece(w, p, Columns, [&](matrix const&, std::uint64_t at, int, int) {
    if (!w.in->shared.is_written(at, 16))
      throw error("an operand at " + std::to_string(at) + " that nobody wrote");
    require_fenced(w, at, 16, "multiplied");
    w.in->shared.check_read(at, 16, w.first_thread, w.now());
    w.in->shared.multiply_later(at, 16, 1);
  });
  for (operand const& o : i.many) {
    if (is_under_way(w, o)) {
      if (w.known[std::size_t(o.index)] != 0) throw error("a sum is written while it is added to");
    } else if (p.adds) {
      w.read<float>(o, active);
    }
    w.known[std::size_t(o.index)] = 0;
  }
  w.products.push_back(p);
  if (w.in->work.order == 1) multiply_now<Columns, IsHalf>(w, w.products.back());
}
void run_product(warp& w, product& p) {
  bool const is_half = opcode_names()[std::size_t(p.of->opcode)].ends_with(".f16.f16");
  [&]<int... N>(std::integer_sequence<int, N...>) {
    auto const one = [&]<int Columns>() {
      if (int(p.of->many.size()) != Columns / 2) return;
      is_half ? multiply_now<Columns, true>(w, p) : multiply_now<Columns, false>(w, p);
    };
    (one.template operator()<8 * (N + 1)>(), ...);
  }(std::make_integer_sequence<int, 32>{});
}
int columns_of(product const& p) { return 2 * int(p.of->many.size()); }

void begin_batch(warp& w, instruction const&, lanes active) {
  w.require_all(active, "wgmma.fence");
  w.has_batch = true;
}
void commit_products(warp& w, instruction const&, lanes active) {
  w.require_all(active, "wgmma.commit_group");
  ++w.product_groups;
}
void await_products(warp& w, instruction const& i, lanes active) {
  w.require_all(active, "wgmma.wait_group");
  std::uint32_t const left = w.read<std::uint32_t>(i.of[0], active)[0];
  std::vector<product> done;
  for (product& p : w.products)
    if (p.group + left < w.product_groups) {
      for (operand const& o : p.of->many)
        if (w.known[std::size_t(o.index)] != 0)
          throw error("a sum is written while it is added to");
      if (!p.is_done) run_product(w, p);
      product::range of_a{~std::uint64_t(0), 0}, of_b = of_a;
      int pieces = 0;
      each_operand_piece(w, p, columns_of(p), [&](matrix const&, std::uint64_t at, int, int) {
        w.in->shared.multiply_later(at, 16, -1);
        auto& [from, to] = pieces++ < 32 ? of_a : of_b;
        from = std::min(from, at), to = std::max(to, at + 16);
      });
      for (product::range const& r : {of_a, of_b})
        w.in->work.multiplied[{w.number(), r}] = w.in->work.time;
      done.push_back(p);
    }
  ++w.in->work.time;
  w.products.erase(w.products.begin(), w.products.begin() + std::ptrdiff_t(done.size()));
  for (product const& p : done)
    for (operand const& o : p.of->many)
      if (!is_under_way(w, o)) w.known[std::size_t(o.index)] = all_lanes;
  w.has_batch = false;
}

// ---- the rest ----

void elect(warp& w, instruction const& i, lanes active) {
  lanes const* const mask = w.read<lanes>(i.of[2], active);
  each(active, [&](int l) {
    if ((mask[l] & w.alive) != active)
      throw error("the mask of lanes names others than those that are here");
  });
  int const first = __builtin_ctz(active);
  if (i.of[0].index >= 0) {
    auto* const d = w.write<std::uint32_t>(i.of[0], active);
    each(active, [=](int l) { d[l] = std::uint32_t(first); });
  }
  w.set(i.of[1], lanes(1) << first, active);
}
void ask_registers(warp& w, instruction const& i, lanes active) {
  w.require_all(active, "setmaxnreg");
  std::uint32_t const n = uniform<std::uint32_t>(w, i.of[0], active, "a number of registers");
  if (n < 24 || n > 256 || n % 8 != 0) throw error("setmaxnreg of " + std::to_string(n));
  w.in->work.registers_asked[std::size_t(w.number())] = int(n);
}

template <int... N>
void add_products(opcode_table& t, std::integer_sequence<int, N...>) {
  auto const one = [&]<int Columns>() {
    std::string const stem =
        "wgmma.mma_async.sync.aligned.m64n" + std::to_string(Columns) + "k16.f32.";
    t[stem + "bf16.bf16"] = {multiply_later<Columns, false>, "m88p4444"};
    t[stem + "f16.f16"] = {multiply_later<Columns, true>, "m88p4444"};
  };
  (one.template operator()<8 * (N + 1)>(), ...);
}

}  // namespace

void add_hopper(opcode_table& t) {
  t["mbarrier.init.shared::cta.b64"] = {begin_barrier, "a4"};
  t["mbarrier.arrive.shared::cta.b64"] = {arrive<false>, "8a"};
  t["mbarrier.arrive.expect_tx.shared::cta.b64"] = {arrive<true>, "8a4"};
  t["mbarrier.try_wait.parity.shared::cta.b64"] = {try_wait, "pa4"};
  t["fence.mbarrier_init.release.cluster"] = {fence_barriers, ""};
  t["fence.proxy.async.shared::cta"] = t["fence.proxy.async"] = {fence_proxy, ""};
  t["cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"] = {copy_box<2>,
                                                                                      "aa44a"};
  t["wgmma.fence.sync.aligned"] = {begin_batch, ""};
  t["wgmma.commit_group.sync.aligned"] = {commit_products, ""};
  t["wgmma.wait_group.sync.aligned"] = {await_products, "4"};
  add_products(t, std::make_integer_sequence<int, 32>{});
  t["elect.sync"] = {elect, "4p4"};
  for (char const* how : {"inc", "dec"})
    t[std::string("setmaxnreg.") + how + ".sync.aligned.u32"] = {ask_registers, "4"};
}

bool release_named_barriers(block& b, std::vector<warp>& all) {
  bool some = false;
  for (int id = 1; id < 16; ++id) {
    int arrived = 0, expected = 0;
    for (warp const& w : all)
      if (w.alive != 0 && w.waits && w.barrier == id) {
        if (expected != 0 && expected != w.barrier_threads)
          throw error("warps at barrier " + std::to_string(id) + " expect different numbers");
        expected = w.barrier_threads;
        arrived += warp_size;
      }
    if (arrived == 0 || arrived < expected) continue;
    clock met{};
    auto const is_here = [&](warp const& w) { return w.alive != 0 && w.waits && w.barrier == id; };
    for (warp& w : all)
      if (is_here(w)) {
        w.seen[std::size_t(w.number())] = b.work.time;
        join(met, w.seen);
      }
    ++b.work.time, ++b.work.progress;
    for (warp& w : all)
      if (is_here(w)) w.seen = met, ++w.meetings, w.waits = false, some = true;
  }
  return some;
}
void meet_all(block& b, std::vector<warp>& all) {
  if (b.work.barriers.empty()) return;
  clock met{};
  for (warp& w : all) {
    w.seen[std::size_t(w.number())] = b.work.time;
    join(met, w.seen);
  }
  ++b.work.time;
  for (warp& w : all) w.seen = met;
}
bool land_some(block& b, bool must) {
  std::vector<tensor_copy>& copies = b.work.copies;
  bool some = false;
  if (b.work.order > 1)
    for (std::size_t k = copies.size(); k-- > 0;)
      if ((b.work.time * 2654435761u + std::uint32_t(b.work.order)) >> 13 & 1)
        land(b, k), some = true;
  if (must && !some && !copies.empty()) land(b, copies.size() - 1), some = true;
  return some;
}
std::string deadlock_of(block const& b, std::vector<warp> const& all) {
  std::string text = b.of.name + ": deadlock in block " + std::to_string(b.index.x);
  for (warp const& w : all) {
    if (w.alive == 0) continue;
    text += "\n  warp " + std::to_string(w.number()) + " waits at line " +
            std::to_string(w.line()) + " for ";
    if (!w.polls) {
      text += "barrier " + std::to_string(w.barrier);
      continue;
    }
    mbarrier const& m = b.work.barriers.at(w.polled.at);
    text += "parity " + std::to_string(w.polled.parity) + " of " + name(w.polled.at) + ", phase " +
            std::to_string(m.phase) + ", where " + std::to_string(m.missing) + " of " +
            std::to_string(m.arrivals) + " arrivals and " + std::to_string(m.bytes) +
            " bytes are missing";
  }
  return text;
}
void end_async_work(block const& b) {
  if (!b.work.copies.empty()) throw error(b.of.name + ": a block ends before its copies");
  int const threads = int(b.threads.x * b.threads.y * b.threads.z);
  int asked = 0, usual = 65536 / threads / 8 * 8;
  bool some = false;
  for (int w = 0; w < (threads + warp_size - 1) / warp_size; ++w) {
    int const n = b.work.registers_asked[std::size_t(w)];
    some = some || n != 0;
    asked += warp_size * (n != 0 ? n : usual);
  }
  if (some && asked > 65536)
    throw error(b.of.name + ": setmaxnreg asks for " + std::to_string(asked) +
                " registers, of 65536");
}

}  // namespace ptx
