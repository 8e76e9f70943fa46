// SPDX-License-Identifier: BSL-1.0
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "lanes.hpp"
#include "numbers.hpp"
#include "opcodes.hpp"

namespace ptx {
namespace {

/// Between integers: the low bits, or with the sign of the argument; to a float: rounded to
/// nearest.
template <class To, class From>
struct cast {
  static To of(From a) { return static_cast<To>(a); }
};
/// A float as an integer: rounded as said, and moved into the range of To. NaN is 0 from f32 to 32
/// bits or fewer, else the highest bit alone.
template <class To, class From, double (*Round)(double)>
struct to_integer {
  static To of(From a) {
    if (std::isnan(a))
      return sizeof(From) == 8 || sizeof(To) == 8 ? To(std::uint64_t(1) << (8 * sizeof(To) - 1))
                                                  : To(0);
    double const r = Round(double(a));
    if (r <= double(std::numeric_limits<To>::min())) return std::numeric_limits<To>::min();
    if (r >= double(std::numeric_limits<To>::max())) return std::numeric_limits<To>::max();
    return static_cast<To>(r);
  }
};
inline double to_even(double a) { return std::nearbyint(a); }
inline double to_zero(double a) { return std::trunc(a); }
inline double down(double a) { return std::floor(a); }
inline double up(double a) { return std::ceil(a); }

template <double (*Round)(double)>
struct rounded {
  static float of(float a) { return float(Round(double(a))); }
};
/// .sat: into [0, 1]; NaN is 0.
struct saturated {
  static float of(float a) { return a > 0 ? std::fmin(a, 1.0f) : 0.0f; }
};
struct half_to_float {
  static float of(std::uint16_t a) { return float_of_half(a); }
};
struct bf16_to_float {
  static float of(std::uint16_t a) { return float_of_bf16(a); }
};
struct float_to_half {
  static std::uint16_t of(float a) { return half_of(a); }
};
struct float_to_bf16 {
  static std::uint16_t of(float a) { return bf16_of(a); }
};
/// Ties away from zero.
struct float_to_tf32 {
  static std::uint32_t of(float a) { return tf32_of(a); }
};
struct to_half_pair {  // the first argument is the upper half
  static std::uint32_t of(float a, float b) { return std::uint32_t(half_of(a)) << 16 | half_of(b); }
};
struct to_bf16_pair {
  static std::uint32_t of(float a, float b) { return std::uint32_t(bf16_of(a)) << 16 | bf16_of(b); }
};

template <class F, class To, class From>
void convert(warp& w, instruction const& i, lanes active) {
  wide_reader<From> const a(w, i.of[1]);
  constexpr bool takes_low =
      std::is_integral_v<To> && std::is_integral_v<From> && 2 * sizeof(To) <= sizeof(From);
  wide_writer<To> const d(w, i.of[0], active,
                          takes_low ? w.known_of_low(i.of[1]) : w.known_of(i.of[1]));
  each(active, [&](int l) { d(l, F::of(a[l])); });
}

template <class To, class From>
void add_pair(opcode_table& t, std::string const& to, std::string const& from) {
  t["cvt." + to + "." + from] = {convert<cast<To, From>, To, From>, {letter<To>(), letter<From>()}};
}
template <class To>
void add_integers_to(opcode_table& t, std::string const& to) {
  add_pair<To, std::int8_t>(t, to, "s8");
  add_pair<To, std::uint8_t>(t, to, "u8");
  add_pair<To, std::int16_t>(t, to, "s16");
  add_pair<To, std::uint16_t>(t, to, "u16");
  add_pair<To, std::int32_t>(t, to, "s32");
  add_pair<To, std::uint32_t>(t, to, "u32");
  add_pair<To, std::int64_t>(t, to, "s64");
  add_pair<To, std::uint64_t>(t, to, "u64");
}
template <class Float, class Integer>
void add_float_and(opcode_table& t, std::string const& real, std::string const& whole) {
  std::string const of{letter<Integer>(), letter<Float>()};
  t["cvt.rn." + real + "." + whole] = {convert<cast<Float, Integer>, Float, Integer>,
                                       {letter<Float>(), letter<Integer>()}};
  t["cvt.rni." + whole + "." + real] = {
      convert<to_integer<Integer, Float, to_even>, Integer, Float>, of};
  t["cvt.rzi." + whole + "." + real] = {
      convert<to_integer<Integer, Float, to_zero>, Integer, Float>, of};
  t["cvt.rmi." + whole + "." + real] = {convert<to_integer<Integer, Float, down>, Integer, Float>,
                                        of};
  t["cvt.rpi." + whole + "." + real] = {convert<to_integer<Integer, Float, up>, Integer, Float>,
                                        of};
}
template <class Float>
void add_float(opcode_table& t, std::string const& real) {
  add_float_and<Float, std::int16_t>(t, real, "s16");
  add_float_and<Float, std::uint16_t>(t, real, "u16");
  add_float_and<Float, std::int32_t>(t, real, "s32");
  add_float_and<Float, std::uint32_t>(t, real, "u32");
  add_float_and<Float, std::int64_t>(t, real, "s64");
  add_float_and<Float, std::uint64_t>(t, real, "u64");
}

}  // namespace

void add_conversions(opcode_table& t) {
  add_integers_to<std::int8_t>(t, "s8");
  add_integers_to<std::uint8_t>(t, "u8");
  add_integers_to<std::int16_t>(t, "s16");
  add_integers_to<std::uint16_t>(t, "u16");
  add_integers_to<std::int32_t>(t, "s32");
  add_integers_to<std::uint32_t>(t, "u32");
  add_integers_to<std::int64_t>(t, "s64");
  add_integers_to<std::uint64_t>(t, "u64");
  add_float<float>(t, "f32");
  add_float<double>(t, "f64");
  t["cvt.f64.f32"] = {convert<cast<double, float>, double, float>, "84"};
  t["cvt.rn.f32.f64"] = {convert<cast<float, double>, float, double>, "48"};
  t["cvt.rni.f32.f32"] = {apply<rounded<to_even>, float, float>, "44"};
  t["cvt.rzi.f32.f32"] = {apply<rounded<to_zero>, float, float>, "44"};
  t["cvt.rmi.f32.f32"] = {apply<rounded<down>, float, float>, "44"};
  t["cvt.rpi.f32.f32"] = {apply<rounded<up>, float, float>, "44"};
  t["cvt.sat.f32.f32"] = {apply<saturated, float, float>, "44"};
  t["cvt.f32.f16"] = {convert<half_to_float, float, std::uint16_t>, "42"};
  t["cvt.f32.bf16"] = {convert<bf16_to_float, float, std::uint16_t>, "42"};
  t["cvt.rn.f16.f32"] = {convert<float_to_half, std::uint16_t, float>, "24"};
  t["cvt.rn.bf16.f32"] = {convert<float_to_bf16, std::uint16_t, float>, "24"};
  t["cvt.rna.tf32.f32"] = {convert<float_to_tf32, std::uint32_t, float>, "44"};
  t["cvt.rn.f16x2.f32"] = {apply<to_half_pair, std::uint32_t, float, float>, "444"};
  t["cvt.rn.bf16x2.f32"] = {apply<to_bf16_pair, std::uint32_t, float, float>, "444"};
}

}  // namespace ptx
