// SPDX-License-Identifier: BSL-1.0
//
// Loads, stores and copies. Every access lies within one allocation and is aligned to its size.
#include <cstdint>
#include <cstring>

#include "lanes.hpp"
#include "opcodes.hpp"

namespace ptx {
namespace {

enum class space { parameter, global, shared, local, generic };

std::string hexadecimal(std::uint64_t n) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(n));
  return text;
}

/// The addresses of an operand `a`: a register of 4 or 8 bytes and a constant.
struct addresses {
  unsigned char const* from;
  int width;
  std::int64_t more;
  addresses(warp& w, operand const& o, std::int64_t number, lanes active)
      : from(w.read<unsigned char>(o, active)), width(o.width), more(number) {}
  std::uint64_t operator[](int l) const {
    std::uint32_t const narrow = reinterpret_cast<std::uint32_t const*>(from)[width == 8 ? 0 : l];
    return (width == 8 ? reinterpret_cast<std::uint64_t const*>(from)[l] : narrow) +
           std::uint64_t(more);
  }
};

unsigned char* local_bytes(warp& w, std::uint64_t at, std::size_t bytes, int lane) {
  std::size_t const size = w.in->of.local_bytes;
  if (at > size || bytes > size - at)
    throw error("local bytes from " + std::to_string(at) + " of " + std::to_string(size));
  return w.local.data() + std::size_t(lane) * size + at;
}
unsigned char* global_bytes(warp& w, std::uint64_t at, std::size_t bytes) {
  if (w.in->is_early && !w.has_followed)
    throw error("global memory is accessed before griddepcontrol.wait, in an early launch");
  if (!w.in->global.holds(at, bytes))
    throw error("global address " + hexadecimal(at) + " is in no allocation");
  return reinterpret_cast<unsigned char*>(at);
}
inline void require_aligned(std::uint64_t at, std::size_t bytes) {
  if ((at & (bytes - 1)) != 0)
    throw error("address " + hexadecimal(at) + " is not aligned to " + std::to_string(bytes));
}

/// Where a space's byte is, to be read.
template <space S>
unsigned char const* to_read(warp& w, std::uint64_t at, std::size_t bytes, int l) {
  if constexpr (S == space::parameter) {
    std::size_t const size = w.in->of.parameter_bytes;
    if (at > size || bytes > size - at)
      throw error("a parameter's bytes from " + std::to_string(at));
    return w.in->parameters + at;
  } else if constexpr (S == space::global) {
    return global_bytes(w, at, bytes);
  } else if constexpr (S == space::shared) {
    return w.in->shared.read(at, bytes, w.first_thread + l, w.now());
  } else if constexpr (S == space::local) {
    return local_bytes(w, at, bytes, l);
  } else {
    if (at >= local_window) return local_bytes(w, at - local_window, bytes, l);
    if (at >= shared_window) return to_read<space::shared>(w, at - shared_window, bytes, l);
    return global_bytes(w, at, bytes);
  }
}
template <space S>
unsigned char* to_write(warp& w, std::uint64_t at, std::size_t bytes, int l) {
  if constexpr (S == space::global) {
    return global_bytes(w, at, bytes);
  } else if constexpr (S == space::shared) {
    return w.in->shared.write(at, bytes, w.first_thread + l, w.now());
  } else if constexpr (S == space::local) {
    return local_bytes(w, at, bytes, l);
  } else {
    if (at >= local_window) return local_bytes(w, at - local_window, bytes, l);
    if (at >= shared_window) return to_write<space::shared>(w, at - shared_window, bytes, l);
    return global_bytes(w, at, bytes);
  }
}

/// Whether somebody wrote what is read there. Of global and local memory it is not known.
template <space S>
bool is_known(warp& w, std::uint64_t at, std::size_t bytes) {
  if constexpr (S == space::shared) return w.in->shared.is_written(at, bytes);
  if constexpr (S == space::generic)
    return at < shared_window || at >= local_window ||
           w.in->shared.is_written(at - shared_window, bytes);
  return true;
}
/// ld: the values, then the address.
template <space S, class T, int N>
void load(warp& w, instruction const& i, lanes active) {
  addresses const at(w, i.of[N], i.number, active);
  each(active, [&](int l) {
    std::uint64_t const from = at[l];  // the register may be one of those that are loaded
    require_aligned(from, N * sizeof(T));
    unsigned char const* const bytes = to_read<S>(w, from, N * sizeof(T), l);
    for (std::size_t k = 0; k < N; ++k) {
      lanes const known = is_known<S>(w, from + k * sizeof(T), sizeof(T)) ? all_lanes : 0;
      T value;
      std::memcpy(&value, bytes + k * sizeof(T), sizeof(T));
      wide_writer<T>(w, i.of[k], lanes(1) << l, known)(l, value);
    }
  });
}
/// Notes that a warp stores to global memory, or releases what is stored there. What its block's
/// other warps store is released too if a barrier is between, and only then.
void hand_on(warp& w, bool releases) {
  handing_on& all = w.in->handed_on;
  if (all.barriers != w.in->barriers) all = {w.in->barriers};
  std::uint32_t const mine = std::uint32_t(1) << w.first_thread / int(warp_size);
  (releases ? all.released : all.stored) |= mine;
  if (((releases ? all.stored : all.released) & ~mine) != 0)
    throw error("a warp releases what another stores, without a barrier between them");
}
/// st: the address, then the values.
template <space S, class T, int N>
void store(warp& w, instruction const& i, lanes active) {
  if constexpr (S == space::global || S == space::generic) hand_on(w, false);
  addresses const at(w, i.of[0], i.number, active);
  bool const passes_on = S == space::shared && w.in->of.moves_unknown;
  if (!passes_on)
    for (int k = 1; k <= N; ++k) w.read<unsigned char>(i.of[std::size_t(k)], active);
  each(active, [&](int l) {
    require_aligned(at[l], N * sizeof(T));
    unsigned char* const to = to_write<S>(w, at[l], N * sizeof(T), l);
    for (std::size_t k = 0; k < N; ++k) {
      T const value = wide_reader<T>(w, i.of[k + 1])[l];
      std::memcpy(to + k * sizeof(T), &value, sizeof(T));
      if (passes_on && (w.known_of(i.of[k + 1]) >> l & 1) == 0)
        w.in->shared.forget(at[l] + k * sizeof(T), sizeof(T));
    }
  });
}

/// atom.add of global memory: what was there, the address, and what is added. Lanes one by one.
void add_at_once(warp& w, instruction const& i, lanes active) {
  hand_on(w, true);
  addresses const at(w, i.of[1], i.number, active);
  std::uint32_t const* const more = w.read<std::uint32_t>(i.of[2], active);
  std::uint32_t before[warp_size];
  each(active, [&](int l) {
    require_aligned(at[l], sizeof(std::uint32_t));
    unsigned char* const to = global_bytes(w, at[l], sizeof(std::uint32_t));
    std::memcpy(&before[l], to, sizeof(std::uint32_t));
    std::uint32_t const sum = before[l] + more[l];
    std::memcpy(to, &sum, sizeof sum);
  });
  auto* const result = w.write<std::uint32_t>(i.of[0], active);
  each(active, [&](int l) { result[l] = before[l]; });
}

/// The same without an order of other accesses: atom.add of either memory.
template <space S>
void add_alone(warp& w, instruction const& i, lanes active) {
  addresses const at(w, i.of[1], i.number, active);
  std::uint32_t const* const more = w.read<std::uint32_t>(i.of[2], active);
  std::uint32_t before[warp_size];
  each(active, [&](int l) {
    constexpr std::size_t bytes = sizeof(std::uint32_t);
    require_aligned(at[l], bytes);
    if (S == space::shared && !w.in->shared.is_written(at[l], bytes))
      throw error("a number is added to what nobody wrote");
    unsigned char* const to = S == space::shared
                                  ? w.in->shared.update(at[l], bytes, w.first_thread + l, w.now())
                                  : global_bytes(w, at[l], bytes);
    std::memcpy(&before[l], to, bytes);
    std::uint32_t const sum = before[l] + more[l];
    std::memcpy(to, &sum, bytes);
  });
  auto* const result = w.write<std::uint32_t>(i.of[0], active);
  each(active, [&](int l) { result[l] = before[l]; });
}
/// Volatile words of global memory, which blocks hand to each other one by one: a value and what is
/// known of it in one word, so that they are in no order with other accesses.
void load_word(warp& w, instruction const& i, lanes active) {
  load<space::global, std::uint32_t, 1>(w, i, active);
}
void store_word(warp& w, instruction const& i, lanes active) {
  addresses const at(w, i.of[0], i.number, active);
  std::uint32_t const* const value = w.read<std::uint32_t>(i.of[1], active);
  each(active, [&](int l) {
    require_aligned(at[l], sizeof *value);
    std::memcpy(global_bytes(w, at[l], sizeof *value), &value[l], sizeof *value);
  });
}

/// cp.async: to shared memory, from global memory, bytes, and how many of them are read there.
template <int Bytes>
void copy_later(warp& w, instruction const& i, lanes active) {
  addresses const to(w, i.of[0], i.number, active), from(w, i.of[1], i.number_2, active);
  std::uint32_t const* const bytes = w.read<std::uint32_t>(i.of[2], active);
  std::uint32_t const* const given = i.count > 3 ? w.read<std::uint32_t>(i.of[3], active) : bytes;
  each(active, [&](int l) {
    if (bytes[l] != Bytes && !(Bytes == 0 && (bytes[l] == 4 || bytes[l] == 8 || bytes[l] == 16)))
      throw error("a copy of " + std::to_string(bytes[l]) + " bytes");
    if (given[l] > bytes[l]) throw error("a copy reads more than it writes");
    require_aligned(to[l], bytes[l]);
    require_aligned(from[l], bytes[l]);
    if (given[l] > 0) global_bytes(w, from[l], given[l]);
    w.in->shared.begin_copy(to[l], bytes[l], w.first_thread + l, w.now());
    w.copies.push_back({to[l], from[l], int(bytes[l]), int(given[l]), l, w.groups[std::size_t(l)]});
  });
}
void commit(warp& w, instruction const&, lanes active) {
  each(active, [&](int l) { ++w.groups[std::size_t(l)]; });
}
/// Lands the copies of active lanes but those of a lane's last `left` groups, and of none yet.
void land(warp& w, lanes active, std::uint32_t left) {
  auto const lands = [&](copy const& c) {
    if ((active >> c.lane & 1) == 0 || c.group + left >= w.groups[std::size_t(c.lane)])
      return false;
    unsigned char* const to =
        w.in->shared.end_copy(c.to, std::size_t(c.bytes), w.first_thread + c.lane, w.now());
    std::memset(to, 0, std::size_t(c.bytes));
    if (c.from_memory > 0)
      std::memcpy(to, global_bytes(w, c.from, std::size_t(c.from_memory)),
                  std::size_t(c.from_memory));
    return true;
  };
  std::erase_if(w.copies, lands);
}
void wait_group(warp& w, instruction const& i, lanes active) {  // how many is a constant
  land(w, active, w.read<std::uint32_t>(i.of[0], active)[__builtin_ctz(active)]);
}
void wait_all(warp& w, instruction const& i, lanes active) {
  commit(w, i, active);
  land(w, active, 0);
}

/// cvta: an address of a space as a generic one.
template <std::uint64_t Window>
void to_generic(warp& w, instruction const& i, lanes active) {
  std::uint64_t const* const a = w.read<std::uint64_t>(i.of[1], active);
  std::uint64_t* const d = w.write<std::uint64_t>(i.of[0], active);
  each(active, [=](int l) { d[l] = a[l] + Window; });
}
template <std::uint64_t Window>
void from_generic(warp& w, instruction const& i, lanes active) {
  std::uint64_t const* const a = w.read<std::uint64_t>(i.of[1], active);
  each(active, [=](int l) {
    if (Window != 0 && a[l] < Window)
      throw error("address " + hexadecimal(a[l]) + " is not in that space");
  });
  std::uint64_t* const d = w.write<std::uint64_t>(i.of[0], active);
  each(active, [=](int l) { d[l] = a[l] - Window; });
}

void nothing(warp&, instruction const&, lanes) {}

template <space S, class T>
void add_accesses(opcode_table& t, std::string const& of_space, std::string const& type) {
  std::string const one{letter<T>() == '1' ? '2' : letter<T>()};
  std::string const ld = "ld" + of_space, st = "st" + of_space;
  for (std::string const hint : {"", ".nc", ".L1::no_allocate", ".nc.L1::no_allocate"}) {
    if (S != space::global && !hint.empty()) continue;
    t[ld + hint + "." + type] = {load<S, T, 1>, one + "a"};
    t[ld + hint + ".v2." + type] = {load<S, T, 2>, one + one + "a"};
    t[ld + hint + ".v4." + type] = {load<S, T, 4>, one + one + one + one + "a"};
  }
  if constexpr (S != space::parameter) {
    t[st + "." + type] = {store<S, T, 1>, "a" + one};
    t[st + ".v2." + type] = {store<S, T, 2>, "a" + one + one};
    t[st + ".v4." + type] = {store<S, T, 4>, "a" + one + one + one + one};
  }
}
template <space S>
void add_space(opcode_table& t, std::string const& name) {
  add_accesses<S, std::int8_t>(t, name, "s8");
  for (char const* type : {"u8", "b8"}) add_accesses<S, std::uint8_t>(t, name, type);
  add_accesses<S, std::int16_t>(t, name, "s16");
  for (char const* type : {"u16", "b16"}) add_accesses<S, std::uint16_t>(t, name, type);
  add_accesses<S, std::int32_t>(t, name, "s32");
  for (char const* type : {"u32", "b32", "f32"}) add_accesses<S, std::uint32_t>(t, name, type);
  add_accesses<S, std::int64_t>(t, name, "s64");
  for (char const* type : {"u64", "b64", "f64"}) add_accesses<S, std::uint64_t>(t, name, type);
}

}  // namespace

void add_memory(opcode_table& t) {
  add_space<space::parameter>(t, ".param");
  add_space<space::global>(t, ".global");
  add_space<space::shared>(t, ".shared");
  add_space<space::local>(t, ".local");
  add_space<space::generic>(t, "");
  t["cp.async.ca.shared.global"] = {copy_later<0>, "aa44", 3};
  t["cp.async.cg.shared.global"] = {copy_later<16>, "aa44", 3};
  t["atom.acq_rel.gpu.global.add.u32"] = {add_at_once, "4a4"};
  t["atom.global.add.u32"] = {add_alone<space::global>, "4a4"};
  t["atom.shared.add.u32"] = {add_alone<space::shared>, "4a4"};
  t["ld.volatile.global.u32"] = {load_word, "4a"};
  t["st.volatile.global.u32"] = {store_word, "a4"};
  t["membar.cta"] = {nothing, ""};
  t["cp.async.commit_group"] = {commit, ""};
  t["cp.async.wait_group"] = {wait_group, "4"};
  t["cp.async.wait_all"] = {wait_all, ""};
  t["cvta.global.u64"] = {to_generic<0>, "88"};
  t["cvta.shared.u64"] = {to_generic<shared_window>, "88"};
  t["cvta.local.u64"] = {to_generic<local_window>, "88"};
  t["cvta.param.u64"] = {to_generic<parameter_window>, "88"};
  t["cvta.to.global.u64"] = {from_generic<0>, "88"};
  t["cvta.to.shared.u64"] = {from_generic<shared_window>, "88"};
  t["cvta.to.local.u64"] = {from_generic<local_window>, "88"};
  t["prefetch.global.L2"] = {nothing, "a"};
}

}  // namespace ptx
