// SPDX-License-Identifier: BSL-1.0
#include <algorithm>
#include <cstdint>

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
template <class T>
struct divide {
  static T of(T a, T b) { return b == 0 ? T(-1) : T(a / b); }
};
template <class T>
struct rest {
  static T of(T a, T b) { return b == 0 ? a : T(a % b); }
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
template <class T>
struct same {
  static T of(T a) { return a; }
};
// Shifts by as many bits as there are, or more, leave nothing but copies of the sign.
template <class T>
struct shift_left {
  static T of(T a, std::uint32_t n) { return n >= 8 * sizeof(T) ? T(0) : T(a << n); }
};
template <class T>
struct shift_right {
  static T of(T a, std::uint32_t n) { return T(a >> std::min<std::uint32_t>(n, 8 * sizeof(T) - 1) >> (n >= 8 * sizeof(T))); }
};
struct count_ones {
  static std::uint32_t of(std::uint32_t a) { return std::uint32_t(__builtin_popcount(a)); }
};
struct count_zeros {
  static std::uint32_t of(std::uint32_t a) { return a == 0 ? 32 : std::uint32_t(__builtin_clz(a)); }
};

/// setp: a predicate of two values.
template <class F, class T>
void compare(warp& w, instruction const& i, lanes active) {
  T const *const a = w.read<T>(i.of[1], active), *const b = w.read<T>(i.of[2], active);
  lanes found = 0;
  each(active, [&](int l) { found |= lanes(F::of(a[l], b[l])) << l; });
  w.set(i.of[0], found, active);
}
#define PTX_COMPARISON(name, sign)          \
  struct name {                             \
    template <class T>                      \
    static bool of(T a, T b) {              \
      return a sign b;                      \
    }                                       \
  };
PTX_COMPARISON(equal, ==)
PTX_COMPARISON(unequal, !=)
PTX_COMPARISON(less, <)
PTX_COMPARISON(at_most, <=)
PTX_COMPARISON(more, >)
PTX_COMPARISON(at_least, >=)

/// selp: the first of two values where a predicate holds.
template <class T>
void select(warp& w, instruction const& i, lanes active) {
  T const *const a = w.read<T>(i.of[1], active), *const b = w.read<T>(i.of[2], active);
  lanes const first = w.holds(i.of[3], active);
  T* const d = w.write<T>(i.of[0], active);
  each(active, [=](int l) { d[l] = (first >> l & 1) != 0 ? a[l] : b[l]; });
}

template <class F>
void of_predicates(warp& w, instruction const& i, lanes active) {
  lanes const a = *w.read<lanes>(i.of[1], active), b = i.count > 2 ? *w.read<lanes>(i.of[2], active) : 0;
  w.set(i.of[0], F::of(a, b), active);
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
  t["mad.wide." + type] = {apply<mad_wide<T, Wide>, Wide, T, T, Wide>, letter<Wide>() + s<T>(2) + letter<Wide>()};
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
  t["popc.b32"] = {apply<count_ones, std::uint32_t, std::uint32_t>, "44"};
  t["clz.b32"] = {apply<count_zeros, std::uint32_t, std::uint32_t>, "44"};
  t["and.pred"] = {of_predicates<both<lanes>>, "ppp"};
  t["or.pred"] = {of_predicates<either<lanes>>, "ppp"};
  t["xor.pred"] = {of_predicates<differs<lanes>>, "ppp"};
  t["not.pred"] = {of_predicates<inverse_predicate>, "pp"};
  t["mov.pred"] = {of_predicates<same_predicate>, "pp"};
}

}  // namespace ptx
