// SPDX-License-Identifier: BSL-1.0
#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>

#include "lanes.hpp"
#include "opcodes.hpp"

namespace ptx {
namespace {

template <class T>
using unsigned_of = std::make_unsigned_t<T>;

// Sums and products wrap around.
template <class T>
struct add {
  static T of(T a, T b) { return T(unsigned_of<T>(a) + unsigned_of<T>(b)); }
};
template <class T>
struct sub {
  static T of(T a, T b) { return T(unsigned_of<T>(a) - unsigned_of<T>(b)); }
};
template <class T>
struct mul_lo {
  static T of(T a, T b) { return T(std::uint64_t(a) * std::uint64_t(b)); }
};
template <class T>
struct mul_hi {
  static T of(T a, T b) {
    using wide = std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>;
    return T((wide(a) * wide(b)) >> (8 * sizeof(T)));
  }
};
template <class T, class Wide>
struct mul_wide {
  static Wide of(T a, T b) { return Wide(Wide(a) * Wide(b)); }
};
template <class T>
struct mad_lo {
  static T of(T a, T b, T c) { return add<T>::of(mul_lo<T>::of(a, b), c); }
};
template <class T, class Wide>
struct mad_wide {
  static Wide of(T a, T b, Wide c) { return add<Wide>::of(Wide(Wide(a) * Wide(b)), c); }
};
/// Their quotient is none of the type's; it wraps around.
template <class T>
bool is_least_by_minus_one(T a, T b) {
  return std::is_signed_v<T> && b == T(-1) && a == std::numeric_limits<T>::min();
}
template <class T>
struct divide {
  static T of(T a, T b) { return b == 0 ? T(-1) : is_least_by_minus_one(a, b) ? a : T(a / b); }
};
template <class T>
struct rest {
  static T of(T a, T b) { return b == 0 ? a : is_least_by_minus_one(a, b) ? T(0) : T(a % b); }
};
template <class T>
struct smaller {
  static T of(T a, T b) { return std::min(a, b); }
};
template <class T>
struct larger {
  static T of(T a, T b) { return std::max(a, b); }
};
template <class T>
struct same {
  static T of(T a) { return a; }
};
template <class T>
struct negative {
  static T of(T a) { return T(-unsigned_of<T>(a)); }
};
template <class T>
struct magnitude {
  static T of(T a) { return a < 0 ? T(-unsigned_of<T>(a)) : a; }
};
template <class T>
struct both {
  static T of(T a, T b) { return a & b; }
};
template <class T>
struct either {
  static T of(T a, T b) { return a | b; }
};
template <class T>
struct differs {
  static T of(T a, T b) { return a ^ b; }
};
template <class T>
struct inverse {
  static T of(T a) { return T(~a); }
};
// Shifts by as many bits as there are, or more, leave nothing but copies of the sign.
template <class T>
struct shift_left {
  static T of(T a, std::uint32_t n) { return n >= 8 * sizeof(T) ? T(0) : T(a << n); }
};
template <class T>
struct shift_right {
  static T of(T a, std::uint32_t n) {
    return T(a >> std::min<std::uint32_t>(n, 8 * sizeof(T) - 1) >> (n >= 8 * sizeof(T)));
  }
};
template <class T>
struct count_ones {
  static std::uint32_t of(T a) { return std::uint32_t(std::popcount(a)); }
};
template <class T>
struct count_zeros {
  static std::uint32_t of(T a) { return std::uint32_t(std::countl_zero(a)); }
};

/// bfi: `n` bits of a into b from bit `at` on; bfe: `n` bits of a from there, above them zeros or
///      copies of the last that there is.
template <class T>
struct insert_bits {
  static T of(T a, T b, std::uint32_t at, std::uint32_t n) {
    std::uint32_t const from = at & 255, many = n & 255, bits = 8 * sizeof(T);
    if (from >= bits) return b;
    T const mask = T((many >= bits ? ~T(0) : T((T(1) << many) - 1)) << from);
    return T((b & ~mask) | (T(a << from) & mask));
  }
};
template <class T>
struct extract_bits {
  static T of(T a, std::uint32_t at, std::uint32_t n) {
    std::uint32_t const from = at & 255, many = n & 255, bits = 8 * sizeof(T);
    if (many == 0) return 0;
    T const fill =
        std::is_signed_v<T> && (a >> std::min(from + many - 1, bits - 1) & 1) != 0 ? T(-1) : T(0);
    if (from >= bits) return fill;
    T const all = T(a >> from);
    if (many >= bits) return all;
    T const mask = T((unsigned_of<T>(1) << many) - 1);
    return T((all & mask) | (fill & ~mask));
  }
};
/// bmsk: ones for `n` bits from bit `at` on.
struct bit_mask {
  static std::uint32_t of(std::uint32_t at, std::uint32_t n) {
    if (at > 31) return 0;
    return (n > 31 ? ~0u : (1u << n) - 1) << at;
  }
};
/// prmt: each byte of the result is one of the eight of b:a, or copies of its sign, as the
///       selector's four bits say.
struct permute_bytes {
  static std::uint32_t of(std::uint32_t a, std::uint32_t b, std::uint32_t selector) {
    std::uint64_t const all = std::uint64_t(b) << 32 | a;
    std::uint32_t result = 0;
    for (int k = 0; k < 4; ++k) {
      std::uint32_t const s = selector >> (4 * k),
                          byte = std::uint32_t(all >> (8 * (s & 7))) & 0xff;
      result |= ((s & 8) == 0 ? byte : (byte & 0x80) != 0 ? 0xffu : 0u) << (8 * k);
    }
    return result;
  }
};
/// lop3: bit by bit, the function of three whose table is a number.
struct any_of_three {
  static std::uint32_t of(std::uint32_t a, std::uint32_t b, std::uint32_t c, std::uint32_t table) {
    std::uint32_t result = 0;
    for (int k = 0; k < 8; ++k)
      if ((table >> k & 1) != 0) result |= (k & 4 ? a : ~a) & (k & 2 ? b : ~b) & (k & 1 ? c : ~c);
    return result;
  }
};
/// shf: 32 of the 64 bits of high:low, shifted by n mod 32 or by at most 32.
template <bool Left, bool Wraps>
struct funnel {
  static std::uint32_t of(std::uint32_t low, std::uint32_t high, std::uint32_t n) {
    std::uint64_t const both = std::uint64_t(high) << 32 | low;
    std::uint32_t const by = Wraps ? n & 31 : std::min(n, 32u);
    return Left ? std::uint32_t((both << by) >> 32) : std::uint32_t(both >> by);
  }
};

#define PTX_COMPARISON(name, sign) \
  struct name {                    \
    template <class T>             \
    static bool of(T a, T b) {     \
      return a sign b;             \
    }                              \
  };
PTX_COMPARISON(equal, ==)
PTX_COMPARISON(unequal, !=)
PTX_COMPARISON(less, <)
PTX_COMPARISON(at_most, <=)
PTX_COMPARISON(more, >)
PTX_COMPARISON(at_least, >=)

template <class F>
void of_predicates(warp& w, instruction const& i, lanes active) {
  operand const &x = i.of[1], &y = i.of[std::size_t(i.count - 1)];
  w.set(i.of[0], F::of(*w.look<lanes>(x), *w.look<lanes>(y)), active,
        w.known_of(x) & w.known_of(y));
}
struct inverse_predicate {
  static lanes of(lanes a, lanes) { return ~a; }
};
struct same_predicate {
  static lanes of(lanes a, lanes) { return a; }
};

template <class T>
std::string s(int n) {
  return std::string(std::size_t(n), letter<T>());
}

template <class T>
void add_numbers(opcode_table& t, std::string const& type) {
  t["add." + type] = {apply<add<T>, T, T, T>, s<T>(3)};
  t["sub." + type] = {apply<sub<T>, T, T, T>, s<T>(3)};
  t["mul.lo." + type] = {apply<mul_lo<T>, T, T, T>, s<T>(3)};
  t["mul.hi." + type] = {apply<mul_hi<T>, T, T, T>, s<T>(3)};
  t["mad.lo." + type] = {apply<mad_lo<T>, T, T, T, T>, s<T>(4)};
  t["div." + type] = {apply<divide<T>, T, T, T>, s<T>(3)};
  t["rem." + type] = {apply<rest<T>, T, T, T>, s<T>(3)};
  t["min." + type] = {apply<smaller<T>, T, T, T>, s<T>(3)};
  t["max." + type] = {apply<larger<T>, T, T, T>, s<T>(3)};
  t["neg." + type] = {apply<negative<T>, T, T>, s<T>(2)};
  t["abs." + type] = {apply<magnitude<T>, T, T>, s<T>(2)};
  t["shr." + type] = {apply<shift_right<T>, T, T, std::uint32_t>, s<T>(2) + '4'};
  t["mov." + type] = {apply<same<T>, T, T>, s<T>(2)};
  t["selp." + type] = {select<T>, s<T>(3) + 'p'};
  std::string const two = 'p' + s<T>(2);
  t["setp.eq." + type] = {compare<equal, T>, two};
  t["setp.ne." + type] = {compare<unequal, T>, two};
  t["setp.lt." + type] = {compare<less, T>, two};
  t["setp.le." + type] = {compare<at_most, T>, two};
  t["setp.gt." + type] = {compare<more, T>, two};
  t["setp.ge." + type] = {compare<at_least, T>, two};
}
template <class T, class Wide>
void add_wide(opcode_table& t, std::string const& type) {
  t["mul.wide." + type] = {apply<mul_wide<T, Wide>, Wide, T, T>, letter<Wide>() + s<T>(2)};
  t["mad.wide." + type] = {apply<mad_wide<T, Wide>, Wide, T, T, Wide>,
                           letter<Wide>() + s<T>(2) + letter<Wide>()};
}
template <class T>
void add_bits(opcode_table& t, std::string const& type) {
  t["and." + type] = {apply<both<T>, T, T, T>, s<T>(3)};
  t["or." + type] = {apply<either<T>, T, T, T>, s<T>(3)};
  t["xor." + type] = {apply<differs<T>, T, T, T>, s<T>(3)};
  t["not." + type] = {apply<inverse<T>, T, T>, s<T>(2)};
  t["shl." + type] = {apply<shift_left<T>, T, T, std::uint32_t>, s<T>(2) + '4'};
  t["shr." + type] = {apply<shift_right<T>, T, T, std::uint32_t>, s<T>(2) + '4'};
  t["mov." + type] = {apply<same<T>, T, T>, s<T>(2)};
  t["selp." + type] = {select<T>, s<T>(3) + 'p'};
  t["setp.eq." + type] = {compare<equal, T>, 'p' + s<T>(2)};
  t["setp.ne." + type] = {compare<unequal, T>, 'p' + s<T>(2)};
}

}  // namespace

void add_integers(opcode_table& t) {
  add_numbers<std::int16_t>(t, "s16");
  add_numbers<std::uint16_t>(t, "u16");
  add_numbers<std::int32_t>(t, "s32");
  add_numbers<std::uint32_t>(t, "u32");
  add_numbers<std::int64_t>(t, "s64");
  add_numbers<std::uint64_t>(t, "u64");
  add_wide<std::int16_t, std::int32_t>(t, "s16");
  add_wide<std::uint16_t, std::uint32_t>(t, "u16");
  add_wide<std::int32_t, std::int64_t>(t, "s32");
  add_wide<std::uint32_t, std::uint64_t>(t, "u32");
  add_bits<std::uint16_t>(t, "b16");
  add_bits<std::uint32_t>(t, "b32");
  add_bits<std::uint64_t>(t, "b64");
  using u32 = std::uint32_t;
  using u64 = std::uint64_t;
  using s32 = std::int32_t;
  using s64 = std::int64_t;
  t["popc.b32"] = {apply<count_ones<u32>, u32, u32>, "44"};
  t["popc.b64"] = {apply<count_ones<u64>, u32, u64>, "48"};
  t["clz.b32"] = {apply<count_zeros<u32>, u32, u32>, "44"};
  t["clz.b64"] = {apply<count_zeros<u64>, u32, u64>, "48"};
  t["bfi.b32"] = {apply<insert_bits<u32>, u32, u32, u32, u32, u32>, "44444"};
  t["bfi.b64"] = {apply<insert_bits<u64>, u64, u64, u64, u32, u32>, "88844"};
  t["bfe.u32"] = {apply<extract_bits<u32>, u32, u32, u32, u32>, "4444"};
  t["bfe.s32"] = {apply<extract_bits<s32>, s32, s32, u32, u32>, "4444"};
  t["bfe.u64"] = {apply<extract_bits<u64>, u64, u64, u32, u32>, "8844"};
  t["bfe.s64"] = {apply<extract_bits<s64>, s64, s64, u32, u32>, "8844"};
  t["bmsk.clamp.b32"] = {apply<bit_mask, u32, u32, u32>, "444"};
  t["prmt.b32"] = {apply<permute_bytes, u32, u32, u32, u32>, "4444"};
  t["lop3.b32"] = {apply<any_of_three, u32, u32, u32, u32, u32>, "44444"};
  t["shf.l.wrap.b32"] = {apply<funnel<true, true>, u32, u32, u32, u32>, "4444"};
  t["shf.l.clamp.b32"] = {apply<funnel<true, false>, u32, u32, u32, u32>, "4444"};
  t["shf.r.wrap.b32"] = {apply<funnel<false, true>, u32, u32, u32, u32>, "4444"};
  t["shf.r.clamp.b32"] = {apply<funnel<false, false>, u32, u32, u32, u32>, "4444"};
  t["and.pred"] = {of_predicates<both<lanes>>, "ppp"};
  t["or.pred"] = {of_predicates<either<lanes>>, "ppp"};
  t["xor.pred"] = {of_predicates<differs<lanes>>, "ppp"};
  t["not.pred"] = {of_predicates<inverse_predicate>, "pp"};
  t["mov.pred"] = {of_predicates<same_predicate>, "pp"};
}

}  // namespace ptx
