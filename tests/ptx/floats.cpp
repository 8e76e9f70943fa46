// SPDX-License-Identifier: BSL-1.0
//
// Numbers in floating point. What PTX calls .rn is IEEE's and the host's, with its subnormals. What
// it calls .approx has an error that the ISA bounds: here it is rounded correctly, or nearly, so
// results may differ from a GPU's in the last bits.
#include <bit>
#include <cfenv>
#include <cmath>
#include <cstdint>

#include "lanes.hpp"
#include "opcodes.hpp"

namespace ptx {
namespace {

template <class T>
struct add {
  static T of(T a, T b) { return a + b; }
};
template <class T>
struct sub {
  static T of(T a, T b) { return a - b; }
};
template <class T>
struct mul {
  static T of(T a, T b) { return a * b; }
};
template <class T>
struct fma_of {
  static T of(T a, T b, T c) { return std::fma(a, b, c); }
};
template <class T>
struct divide {
  static T of(T a, T b) { return a / b; }
};
template <class T>
struct reciprocal {
  static T of(T a) { return T(1) / a; }
};
template <class T>
struct root {
  static T of(T a) { return std::sqrt(a); }
};
template <class T>
struct reciprocal_root {
  static T of(T a) { return T(1 / std::sqrt(double(a))); }
};
/// What is computed of floats is the canonical NaN, if it is none; of doubles NaN keeps its bits.
template <class F>
struct canonical {
  template <class... A>
  static double of(double a, A... more) {
    return F::of(a, more...);
  }
  template <class... A>
  static float of(float a, A... more) {
    float const x = F::of(a, more...);
    return x == x ? x : std::bit_cast<float>(0x7fffffffu);
  }
};
template <class T>
struct same {
  static T of(T a) { return a; }
};
template <class T>
struct negative {
  static T of(T a) { return -a; }
};
template <class T>
struct magnitude {
  static T of(T a) { return std::fabs(a); }
};
// The number, if one of two is NaN, signalling or not (of a signalling one std::fmax makes NaN); -0
// is less than 0.
template <class T>
struct smaller {
  static T of(T a, T b) {
    if (std::isnan(a) || std::isnan(b)) return std::isnan(a) ? b : a;
    return a < b || (a == b && std::signbit(a)) ? a : b;
  }
};
template <class T>
struct larger {
  static T of(T a, T b) {
    if (std::isnan(a) || std::isnan(b)) return std::isnan(a) ? b : a;
    return a > b || (a == b && std::signbit(b)) ? a : b;
  }
};
// The sign is that of the first argument.
template <class T>
struct with_sign {
  static T of(T sign, T a) { return std::copysign(a, sign); }
};
/// rcp.approx.ftz.f64 looks at the upper half of a double and gives one; the lower half is 0.
struct coarse_reciprocal {
  static double upper(double a) {
    return std::bit_cast<double>(std::bit_cast<std::uint64_t>(a) & 0xffffffff00000000u);
  }
  static double flushed(double a) {
    return std::fpclassify(a) == FP_SUBNORMAL ? std::copysign(0.0, a) : a;
  }
  static double of(double a) { return upper(flushed(1 / flushed(upper(a)))); }
};
struct power_of_two {
  static float of(float a) { return float(std::exp2(double(a))); }
};
struct log_of_two {
  static float of(float a) { return float(std::log2(double(a))); }
};
struct sine {
  static float of(float a) { return float(std::sin(double(a))); }
};
struct cosine {
  static float of(float a) { return float(std::cos(double(a))); }
};
struct tangent {
  static float of(float a) { return float(std::tanh(double(a))); }
};
/// .ftz: subnormal arguments and results are zeros of their sign.
inline float flushed(float a) {
  return std::fpclassify(a) == FP_SUBNORMAL ? std::copysign(0.0f, a) : a;
}
template <class F>
struct flushing {
  template <class... A>
  static float of(A... a) {
    return flushed(F::of(flushed(a)...));
  }
};

/// In another direction than to nearest.
template <int Direction, class F, class... T>
void apply_rounded(warp& w, instruction const& i, lanes active) {
  int const before = std::fegetround();
  std::fesetround(Direction);
  apply<F, T...>(w, i, active);
  std::fesetround(before);
}

// Ordered comparisons are false where one is NaN, the others (equ, neu ...) true.
#define PTX_COMPARISON(name, sign, unordered)                 \
  struct name {                                               \
    template <class T>                                        \
    static bool of(T a, T b) {                                \
      return std::isunordered(a, b) ? unordered : (a sign b); \
    }                                                         \
  };
PTX_COMPARISON(equal, ==, false)
PTX_COMPARISON(unequal, !=, false)
PTX_COMPARISON(less, <, false)
PTX_COMPARISON(at_most, <=, false)
PTX_COMPARISON(more, >, false)
PTX_COMPARISON(at_least, >=, false)
PTX_COMPARISON(equal_or_not, ==, true)
PTX_COMPARISON(unequal_or_not, !=, true)
PTX_COMPARISON(less_or_not, <, true)
PTX_COMPARISON(at_most_or_not, <=, true)
PTX_COMPARISON(more_or_not, >, true)
PTX_COMPARISON(at_least_or_not, >=, true)
struct are_numbers {
  template <class T>
  static bool of(T a, T b) {
    return !std::isunordered(a, b);
  }
};
struct one_is_none {
  template <class T>
  static bool of(T a, T b) {
    return std::isunordered(a, b);
  }
};

template <class T>
std::string s(int n) {
  return std::string(std::size_t(n), letter<T>());
}

template <int Direction, class T>
void add_rounded(opcode_table& t, std::string const& end) {
  t["add" + end] = {apply_rounded<Direction, canonical<add<T>>, T, T, T>, s<T>(3)};
  t["sub" + end] = {apply_rounded<Direction, canonical<sub<T>>, T, T, T>, s<T>(3)};
  t["mul" + end] = {apply_rounded<Direction, canonical<mul<T>>, T, T, T>, s<T>(3)};
  t["fma" + end] = {apply_rounded<Direction, canonical<fma_of<T>>, T, T, T, T>, s<T>(4)};
}
template <class T>
void add_numbers(opcode_table& t, std::string const& type) {
  for (std::string const rounded : {".", ".rn."}) {
    t["add" + rounded + type] = {apply<canonical<add<T>>, T, T, T>, s<T>(3)};
    t["sub" + rounded + type] = {apply<canonical<sub<T>>, T, T, T>, s<T>(3)};
    t["mul" + rounded + type] = {apply<canonical<mul<T>>, T, T, T>, s<T>(3)};
  }
  add_rounded<FE_DOWNWARD, T>(t, ".rm." + type);
  add_rounded<FE_UPWARD, T>(t, ".rp." + type);
  add_rounded<FE_TOWARDZERO, T>(t, ".rz." + type);
  t["fma.rn." + type] = {apply<canonical<fma_of<T>>, T, T, T, T>, s<T>(4)};
  t["div.rn." + type] = {apply<canonical<divide<T>>, T, T, T>, s<T>(3)};
  t["rcp.rn." + type] = {apply<canonical<reciprocal<T>>, T, T>, s<T>(2)};
  t["sqrt.rn." + type] = {apply<canonical<root<T>>, T, T>, s<T>(2)};
  t["neg." + type] = {apply<negative<T>, T, T>, s<T>(2)};
  t["abs." + type] = {apply<magnitude<T>, T, T>, s<T>(2)};
  t["min." + type] = {apply<canonical<smaller<T>>, T, T, T>, s<T>(3)};
  t["max." + type] = {apply<canonical<larger<T>>, T, T, T>, s<T>(3)};
  t["copysign." + type] = {apply<with_sign<T>, T, T, T>, s<T>(3)};
  t["mov." + type] = {apply<same<T>, T, T>, s<T>(2)};
  t["selp." + type] = {select<T>, s<T>(3) + 'p'};
  std::string const two = 'p' + s<T>(2);
  t["setp.eq." + type] = {compare<equal, T>, two};
  t["setp.ne." + type] = {compare<unequal, T>, two};
  t["setp.lt." + type] = {compare<less, T>, two};
  t["setp.le." + type] = {compare<at_most, T>, two};
  t["setp.gt." + type] = {compare<more, T>, two};
  t["setp.ge." + type] = {compare<at_least, T>, two};
  t["setp.equ." + type] = {compare<equal_or_not, T>, two};
  t["setp.neu." + type] = {compare<unequal_or_not, T>, two};
  t["setp.ltu." + type] = {compare<less_or_not, T>, two};
  t["setp.leu." + type] = {compare<at_most_or_not, T>, two};
  t["setp.gtu." + type] = {compare<more_or_not, T>, two};
  t["setp.geu." + type] = {compare<at_least_or_not, T>, two};
  t["setp.num." + type] = {compare<are_numbers, T>, two};
  t["setp.nan." + type] = {compare<one_is_none, T>, two};
}

template <class F>
void add_approximate(opcode_table& t, std::string const& name) {
  t[name + ".approx.f32"] = {apply<canonical<F>, float, float>, "44"};
  t[name + ".approx.ftz.f32"] = {apply<canonical<flushing<F>>, float, float>, "44"};
}

}  // namespace

void add_floats(opcode_table& t) {
  add_numbers<float>(t, "f32");
  add_numbers<double>(t, "f64");
  add_approximate<power_of_two>(t, "ex2");
  add_approximate<log_of_two>(t, "lg2");
  add_approximate<sine>(t, "sin");
  add_approximate<cosine>(t, "cos");
  add_approximate<reciprocal<float>>(t, "rcp");
  add_approximate<reciprocal_root<float>>(t, "rsqrt");
  add_approximate<root<float>>(t, "sqrt");
  t["rcp.approx.ftz.f64"] = {apply<coarse_reciprocal, double, double>, "88"};
  t["tanh.approx.f32"] = {apply<canonical<tangent>, float, float>, "44"};
  t["div.approx.f32"] = {apply<canonical<divide<float>>, float, float, float>, "444"};
  t["div.full.f32"] = t["div.approx.f32"];
}

}  // namespace ptx
