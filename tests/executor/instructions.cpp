// SPDX-License-Identifier: BSL-1.0
//
// What each instruction computes, against values worked out by hand or by another way to compute
// them.
#include "catch.hpp"

#include <cfenv>
#include <cmath>
#include <limits>
#include <random>

#include "executor/run.hpp"

using executor::compute;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using s16 = std::int16_t;
using s32 = std::int32_t;
using s64 = std::int64_t;

namespace {

constexpr s32 least = std::numeric_limits<s32>::min(), most = std::numeric_limits<s32>::max();
constexpr float none = std::numeric_limits<float>::quiet_NaN(),
                infinite = std::numeric_limits<float>::infinity();
u32 bits(float x) { return std::bit_cast<u32>(x); }
float of(u32 x) { return std::bit_cast<float>(x); }

}  // namespace

TEST_CASE("ptx: integers wrap around") {
  CHECK(compute<s32>("add.s32", most, 1) == least);
  CHECK(compute<s32>("sub.s32", least, 1) == most);
  CHECK(compute<u16>("add.u16", u16(65535), u16(2)) == 1);
  CHECK(compute<s64>("add.s64", std::numeric_limits<s64>::max(), s64(1)) ==
        std::numeric_limits<s64>::min());
  CHECK(compute<s32>("mul.lo.s32", 0x10001, 0x10001) == 0x20001);
  CHECK(compute<s32>("mul.hi.s32", -2, 3) == -1);
  CHECK(compute<u32>("mul.hi.u32", 0xffffffffu, 0xffffffffu) == 0xfffffffeu);
  CHECK(compute<s64>("mul.hi.s64", s64(-1), s64(1)) == -1);
  CHECK(compute<u64>("mul.hi.u64", u64(1) << 63, u64(6)) == 3);
  CHECK(compute<s64>("mul.wide.s32", least, 2) == -4294967296);
  CHECK(compute<u64>("mul.wide.u32", 0xffffffffu, 0xffffffffu) == 0xfffffffe00000001u);
  CHECK(compute<s32>("mul.wide.s16", s16(-300), s16(300)) == -90000);
  CHECK(compute<s32>("mad.lo.s32", 7, -3, 21) == 0);
  CHECK(compute<s64>("mad.wide.s32", least, least, s64(-1)) == 4611686018427387903);
  CHECK(compute<s32>("neg.s32", least) == least);
  CHECK(compute<s32>("abs.s32", -5) == 5);
  CHECK(compute<s32>("min.s32", -1, 1) == -1);
  CHECK(compute<u32>("min.u32", 0xffffffffu, 1u) == 1);
  CHECK(compute<s32>("max.s32", -1, 1) == 1);
  CHECK(compute<u64>("max.u64", ~u64(0), u64(1)) == ~u64(0));
}

TEST_CASE("ptx: quotients and rests") {
  CHECK(compute<s32>("div.s32", -7, 2) == -3);
  CHECK(compute<s32>("rem.s32", -7, 2) == -1);
  CHECK(compute<u32>("div.u32", 0xfffffff9u, 2u) == 0x7ffffffcu);
  CHECK(compute<s32>("div.s32", least, -1) == least);
  CHECK(compute<s32>("rem.s32", least, -1) == 0);
  CHECK(compute<u32>("div.u32", 5u, 0u) == 0xffffffffu);  // unspecified; at least nothing ends
  CHECK(compute<u32>("rem.u32", 5u, 0u) == 5);
  CHECK(compute<s64>("rem.s64", s64(-9000000000), s64(7)) == -9000000000 % 7);
}

TEST_CASE("ptx: shifts by the width and more") {
  CHECK(compute<u32>("shl.b32", 1u, 31u) == 0x80000000u);
  CHECK(compute<u32>("shl.b32", 1u, 32u) == 0);
  CHECK(compute<u32>("shl.b32", 1u, 0xffffffffu) == 0);
  CHECK(compute<u64>("shl.b64", u64(1), 63u) == u64(1) << 63);
  CHECK(compute<u16>("shl.b16", u16(3), 15u) == 0x8000);
  CHECK(compute<u32>("shr.u32", 0x80000000u, 31u) == 1);
  CHECK(compute<u32>("shr.u32", 0x80000000u, 32u) == 0);
  CHECK(compute<s32>("shr.s32", least, 31u) == -1);
  CHECK(compute<s32>("shr.s32", least, 100u) == -1);
  CHECK(compute<s64>("shr.s64", s64(-8), 64u) == -1);
  CHECK(compute<u32>("shf.l.wrap.b32", 0x80000001u, 0x2u, 33u) == 0x5);
  CHECK(compute<u32>("shf.l.clamp.b32", 0x80000001u, 0x2u, 33u) == 0x80000001u);
  CHECK(compute<u32>("shf.r.wrap.b32", 0x80000001u, 0x3u, 1u) == 0xc0000000u);
  CHECK(compute<u32>("shf.r.wrap.b32", 0x80000001u, 0x3u, 32u) == 0x80000001u);
  CHECK(compute<u32>("shf.r.clamp.b32", 0x80000001u, 0x3u, 40u) == 0x3);
}

TEST_CASE("ptx: bits") {
  CHECK(compute<u32>("popc.b32", 0xf0f0u) == 8);
  CHECK(compute<u32>("popc.b64", ~u64(0)) == 64);
  CHECK(compute<u32>("clz.b32", 0u) == 32);
  CHECK(compute<u32>("clz.b64", u64(1)) == 63);
  CHECK(compute<u32>("bfi.b32", 0xffu, 0u, 28u, 8u) ==
        0xf0000000u);  // what does not fit is cut off
  CHECK(compute<u32>("bfi.b32", 0x5u, 0xffffffffu, 4u, 4u) == 0xffffff5fu);
  CHECK(compute<u32>("bfi.b32", 0x5u, 7u, 32u, 4u) == 7);
  CHECK(compute<u32>("bfi.b32", 0x5u, 7u, 0u, 32u) == 5);
  CHECK(compute<u64>("bfi.b64", u64(0x12345678), u64(0x9abcdef0), 32u, 32u) == 0x123456789abcdef0u);
  CHECK(compute<u32>("bfe.u32", 0xabcd1234u, 8u, 8u) == 0x12);
  CHECK(compute<u32>("bfe.u32", 0xabcd1234u, 24u, 32u) == 0xab);
  CHECK(compute<u32>("bfe.u32", 0xabcd1234u, 40u, 8u) == 0);
  CHECK(compute<u32>("bfe.u32", 0xabcd1234u, 8u, 0u) == 0);
  CHECK(compute<s32>("bfe.s32", 0x0000f000, 12u, 4u) == -1);
  CHECK(compute<s32>("bfe.s32", 0x00007000, 12u, 4u) == 7);
  CHECK(compute<s32>("bfe.s32", least, 28u, 10u) == -8);
  CHECK(compute<s64>("bfe.s64", s64(0xff) << 40, 40u, 8u) == -1);
  CHECK(compute<u32>("bmsk.clamp.b32", 4u, 8u) == 0xff0u);
  CHECK(compute<u32>("bmsk.clamp.b32", 28u, 8u) == 0xf0000000u);
  CHECK(compute<u32>("bmsk.clamp.b32", 1u, 40u) == 0xfffffffeu);
  CHECK(compute<u32>("bmsk.clamp.b32", 32u, 4u) == 0);
  CHECK(compute<u32>("prmt.b32", 0x33221100u, 0x77665544u, 0x7531u) == 0x77553311u);
  CHECK(compute<u32>("prmt.b32", 0x00800000u, 0u, 0x000au) == 0xffu);  // the sign of byte 2
  CHECK(compute<u32>("lop3.b32", 0xccccccccu, 0xaaaaaaaau, 0xf0f0f0f0u, 0x96u) ==
        (0xccccccccu ^ 0xaaaaaaaau ^ 0xf0f0f0f0u));
  CHECK(compute<u32>("lop3.b32", 0xcu, 0xau, 0xfu, 0xeau) == ((0xcu & 0xau) | 0xfu));
  CHECK(compute<u32>("not.b32", 5u) == ~5u);
  CHECK(compute<u64>("xor.b64", u64(6), u64(5)) == 3);
  CHECK(compute<bool>("xor.pred", true, true) == false);
  CHECK(compute<bool>("and.pred", true, false) == false);
  CHECK(compute<bool>("or.pred", true, false) == true);
  CHECK(compute<bool>("not.pred", false) == true);
}

TEST_CASE("ptx: comparisons") {
  CHECK(compute<bool>("setp.lt.s32", -1, 1));
  CHECK(!compute<bool>("setp.lt.u32", 0xffffffffu, 1u));
  CHECK(compute<bool>("setp.ge.u64", ~u64(0), u64(1)));
  for (char const* ordered : {"eq", "ne", "lt", "le", "gt", "ge"}) {
    CHECK(!compute<bool>(std::string("setp.") + ordered + ".f32", none, 1.0f));
    CHECK(compute<bool>(std::string("setp.") + ordered + "u.f32", none, 1.0f));
  }
  CHECK(compute<bool>("setp.eq.f32", 0.0f, -0.0f));
  CHECK(compute<bool>("setp.num.f32", infinite, 1.0f));
  CHECK(compute<bool>("setp.nan.f64", std::nan(""), 1.0));
  CHECK(compute<bool>("setp.leu.f64", 1.0, 1.0));
  CHECK(!compute<bool>("setp.gtu.f64", 1.0, 1.0));
  CHECK(compute<s32>("selp.b32", 3, 4, true) == 3);
  CHECK(compute<double>("selp.f64", 3.0, 4.0, false) == 4.0);
}

TEST_CASE("ptx: arithmetic of floats") {
  CHECK(compute<float>("add.f32", 0x1p24f, 1.0f) == 0x1p24f);
  CHECK(compute<float>("add.rn.f32", 0x1p24f, 3.0f) == 0x1p24f + 4);
  CHECK(compute<float>("add.rp.f32", 0x1p24f, 1.0f) == 0x1p24f + 2);
  CHECK(compute<float>("add.rm.f32", 0x1p24f, 3.0f) == 0x1p24f + 2);
  CHECK(compute<float>("add.rz.f32", -0x1p24f, -3.0f) == -0x1p24f - 2);
  CHECK(compute<float>("mul.rp.f32", 1 + 0x1p-23f, 1 + 0x1p-23f) == 1 + 0x1p-21f - 0x1p-23f);
  CHECK(compute<float>("mul.rm.f32", 1 + 0x1p-23f, 1 + 0x1p-23f) == 1 + 0x1p-22f);
  CHECK(compute<float>("fma.rn.f32", 1 + 0x1p-12f, 1 - 0x1p-12f, -1.0f) ==
        -0x1p-24f);  // not rounded before the sum
  CHECK(compute<float>("fma.rz.f32", 1.0f, 1.0f, 0x1p-30f) == 1.0f);
  CHECK(compute<float>("fma.rp.f32", 1.0f, 1.0f, 0x1p-30f) == 1 + 0x1p-23f);
  CHECK(compute<double>("fma.rn.f64", 1 + 0x1p-30, 1 - 0x1p-30, -1.0) == -0x1p-60);
  CHECK(compute<double>("add.rm.f64", 1.0, -0x1p-80) == 1 - 0x1p-53);
  CHECK(std::fegetround() == FE_TONEAREST);
  CHECK(compute<float>("div.rn.f32", 1.0f, 3.0f) == 1.0f / 3.0f);
  CHECK(compute<float>("mul.f32", 0x1p-100f, 0x1p-49f) == 0x1p-149f);  // subnormal
  CHECK(compute<float>("rcp.rn.f32", 0.0f) == infinite);
  CHECK(bits(compute<float>("sqrt.rn.f32", -0.0f)) == bits(-0.0f));
  CHECK(compute<float>("sqrt.rn.f32", 2.0f) == std::sqrt(2.0f));
  CHECK(bits(compute<float>("neg.f32", 0.0f)) == 0x80000000u);
  CHECK(compute<float>("abs.f32", -2.0f) == 2.0f);
  CHECK(compute<float>("copysign.f32", -1.0f, 3.0f) == -3.0f);  // the sign of the first
}

TEST_CASE("ptx: the number of two, if one is NaN; NaN of floats is canonical") {
  CHECK(compute<float>("min.f32", none, 1.0f) == 1.0f);
  CHECK(compute<float>("max.f32", 1.0f, none) == 1.0f);
  CHECK(bits(compute<float>("min.f32", 0.0f, -0.0f)) == 0x80000000u);
  CHECK(bits(compute<float>("max.f32", -0.0f, 0.0f)) == 0);
  CHECK(compute<u32>("min.f32", 0xffc00001u, 0x7fc00002u) == 0x7fffffffu);
  CHECK(compute<u32>("max.f32", 0x7f800001u, 0xbf800000u) == 0xbf800000u);  // a signalling NaN
  CHECK(compute<u32>("min.f32", 0x3f800000u, 0xff800001u) == 0x3f800000u);
  CHECK(compute<u32>("add.f32", 0xffc00001u, bits(1.0f)) == 0x7fffffffu);
  CHECK(compute<u32>("sub.f32", bits(infinite), bits(infinite)) == 0x7fffffffu);
  CHECK(compute<u32>("mul.f32", bits(infinite), 0u) == 0x7fffffffu);
  CHECK(compute<u32>("fma.rn.f32", bits(infinite), 0u, 0u) == 0x7fffffffu);
  CHECK(compute<u32>("div.rn.f32", 0u, 0u) == 0x7fffffffu);
  CHECK(compute<u32>("sqrt.rn.f32", bits(-1.0f)) == 0x7fffffffu);
  CHECK(compute<u32>("mov.f32", 0xffc00001u) == 0xffc00001u);  // moved, not computed
}

TEST_CASE("ptx: approximations, and what they make of subnormals") {
  CHECK(compute<float>("ex2.approx.f32", -149.0f) == 0x1p-149f);
  CHECK(bits(compute<float>("ex2.approx.ftz.f32", -149.0f)) == 0);
  CHECK(compute<float>("ex2.approx.ftz.f32", 0x1p-140f) == 1.0f);
  CHECK(compute<float>("ex2.approx.ftz.f32", -infinite) == 0.0f);
  CHECK(compute<float>("ex2.approx.ftz.f32", 10.0f) == 1024.0f);
  CHECK(compute<float>("lg2.approx.f32", 8.0f) == 3.0f);
  CHECK(compute<float>("lg2.approx.ftz.f32", 0x1p-140f) == -infinite);
  CHECK(compute<float>("rcp.approx.ftz.f32", -0x1p-140f) == -infinite);
  CHECK(bits(compute<float>("rcp.approx.ftz.f32", -0x1p127f)) == 0x80000000u);
  CHECK(compute<float>("rsqrt.approx.f32", 4.0f) == 0.5f);
  CHECK(compute<float>("sin.approx.f32", 1.0f) == Approx(std::sin(1.0)));
  CHECK(compute<float>("cos.approx.f32", 1.0f) == Approx(std::cos(1.0)));
  CHECK(compute<float>("tanh.approx.f32", 1.0f) == Approx(std::tanh(1.0)));
  CHECK(compute<float>("div.full.f32", 1.0f, 4.0f) == 0.25f);
  CHECK(compute<double>("rcp.approx.ftz.f64", 3.0) == Approx(1 / 3.0).epsilon(1e-5));
  CHECK((executor::bits_of(compute<double>("rcp.approx.ftz.f64", 3.0)) & 0xffffffffu) == 0);
}

TEST_CASE("ptx: conversions round ties as they are told") {
  struct tie {
    float from;
    int even, zero, down, up;
  };
  for (tie const t :
       {tie{0.5f, 0, 0, 0, 1}, tie{1.5f, 2, 1, 1, 2}, tie{2.5f, 2, 2, 2, 3},
        tie{-0.5f, 0, 0, -1, 0}, tie{-1.5f, -2, -1, -2, -1}, tie{2.75f, 3, 2, 2, 3}}) {
    CHECK(compute<s32>("cvt.rni.s32.f32", t.from) == t.even);
    CHECK(compute<s32>("cvt.rzi.s32.f32", t.from) == t.zero);
    CHECK(compute<s32>("cvt.rmi.s32.f32", t.from) == t.down);
    CHECK(compute<s32>("cvt.rpi.s32.f32", t.from) == t.up);
    CHECK(compute<float>("cvt.rni.f32.f32", t.from) == float(t.even));
    CHECK(compute<float>("cvt.rmi.f32.f32", t.from) == float(t.down));
    CHECK(compute<s64>("cvt.rpi.s64.f64", double(t.from)) == t.up);
  }
  CHECK(bits(compute<float>("cvt.rni.f32.f32", -0.5f)) == bits(-0.0f));
  CHECK(compute<s32>("cvt.rzi.s32.f32", 3e9f) == most);
  CHECK(compute<s32>("cvt.rzi.s32.f32", 0x1p31f) == most);
  CHECK(compute<s64>("cvt.rzi.s64.f64", 0x1p63) == std::numeric_limits<s64>::max());
  CHECK(compute<s32>("cvt.rzi.s32.f32", -infinite) == least);
  CHECK(compute<u32>("cvt.rzi.u32.f32", -1.0f) == 0);
  CHECK(compute<u32>("cvt.rzi.u32.f32", 3e9f) == 3000000000u);
  CHECK(compute<u64>("cvt.rzi.u64.f32", infinite) == ~u64(0));
  CHECK(compute<s32>("cvt.rzi.s32.f32", none) == 0);
  CHECK(compute<s64>("cvt.rzi.s64.f32", none) == std::numeric_limits<s64>::min());
  CHECK(compute<u64>("cvt.rzi.u64.f64", std::nan("")) == u64(1) << 63);
  CHECK(compute<s32>("cvt.rzi.s32.f64", std::nan("")) == least);
  CHECK(compute<float>("cvt.rn.f32.s32", 0x1000001) == 0x1p24f);
  CHECK(compute<float>("cvt.rn.f32.s32", 0x1000003) == 0x1p24f + 4);
  CHECK(compute<float>("cvt.rn.f32.u64", ~u64(0)) == 0x1p64f);
  CHECK(compute<float>("cvt.rn.f32.f64", 1 + 0x1p-24) == 1.0f);
  CHECK(compute<float>("cvt.rn.f32.f64", 1 + 0x1p-24 + 0x1p-40) == 1 + 0x1p-23f);
  CHECK(compute<double>("cvt.f64.f32", 0x1p-149f) == 0x1p-149);
  CHECK(compute<float>("cvt.sat.f32.f32", 1.5f) == 1.0f);
  CHECK(bits(compute<float>("cvt.sat.f32.f32", -1.5f)) == 0);
  CHECK(bits(compute<float>("cvt.sat.f32.f32", none)) == 0);
}

TEST_CASE("ptx: conversions of integers keep the sign or the low bits") {
  CHECK(compute<s64>("cvt.s64.s32", -5) == -5);
  CHECK(compute<u64>("cvt.u64.u32", 0xfffffffbu) == 0xfffffffbu);
  CHECK(compute<s32>("cvt.s32.s16", s16(-5)) == -5);
  CHECK(compute<u32>("cvt.u32.u16", u16(0xfffb)) == 0xfffb);
  CHECK(compute<u16>("cvt.u16.u32", 0x12345678u) == 0x5678);
  CHECK(compute<s32>("cvt.s32.s8", 0x000000ff) == -1);
  CHECK(compute<u32>("cvt.u32.u8", 0xffffff80u) == 0x80);
  CHECK(compute<s32>("cvt.s8.s32", 0x00000180) == -128);  // a wider register gets the sign
}

TEST_CASE("ptx: 16-bit floats") {
  CHECK(compute<u16>("cvt.rn.bf16.f32", 1 + 0x1p-8f) == 0x3f80);            // a tie, to even
  CHECK(compute<u16>("cvt.rn.bf16.f32", 1 + 0x1p-7f + 0x1p-8f) == 0x3f82);  // and up
  CHECK(compute<u16>("cvt.rn.bf16.f32", of(0x7f7fffff)) == 0x7f80);         // too large
  CHECK(compute<u16>("cvt.rn.bf16.f32", of(0x00008000)) == 0);              // subnormal, a tie
  CHECK(compute<u16>("cvt.rn.bf16.f32", of(0xff800001)) == 0x7fff);         // NaN is canonical
  CHECK(compute<u16>("cvt.rn.f16.f32", 1 + 0x1p-11f) == 0x3c00);
  CHECK(compute<u16>("cvt.rn.f16.f32", 1 + 3 * 0x1p-11f) == 0x3c02);
  CHECK(compute<u16>("cvt.rn.f16.f32", 65519.0f) == 0x7bff);
  CHECK(compute<u16>("cvt.rn.f16.f32", 65520.0f) == 0x7c00);
  CHECK(compute<u16>("cvt.rn.f16.f32", 0x1p-25f) == 0);
  CHECK(compute<u16>("cvt.rn.f16.f32", 3 * 0x1p-25f) == 2);
  CHECK(compute<u16>("cvt.rn.f16.f32", -0x1p-14f + 0x1p-26f) ==
        0x8400);  // rounds up to the least normal one
  CHECK(compute<u16>("cvt.rn.f16.f32", none) == 0x7fff);
  CHECK(compute<float>("cvt.f32.f16", u16(0x8001)) == -0x1p-24f);
  CHECK(compute<float>("cvt.f32.f16", u16(0x7bff)) == 65504.0f);
  CHECK(compute<float>("cvt.f32.f16", u16(0xfc00)) == -infinite);
  CHECK(compute<float>("cvt.f32.bf16", u16(0x4049)) == 3.140625f);
  CHECK(compute<u32>("cvt.rn.f16x2.f32", 2.0f, 1.0f) ==
        0x40003c00u);  // the first is the upper half
  CHECK(compute<u32>("cvt.rn.bf16x2.f32", 2.0f, 1.0f) == 0x40003f80u);
}

TEST_CASE("ptx: tf32 rounds ties away from zero") {
  CHECK(compute<u32>("cvt.rna.tf32.f32", 1 + 0x1p-11f) == bits(1 + 0x1p-10f));
  CHECK(compute<u32>("cvt.rna.tf32.f32", -1 - 0x1p-11f) == bits(-1 - 0x1p-10f));
  CHECK(compute<u32>("cvt.rna.tf32.f32", 1 + 0x1p-11f - 0x1p-23f) == bits(1.0f));
  CHECK(compute<u32>("cvt.rna.tf32.f32", of(0x7f7fffff)) == bits(infinite));
  CHECK(compute<u32>("cvt.rna.tf32.f32", of(0x7fffffff)) == 0x7fffe000u);
  CHECK(compute<u32>("cvt.rna.tf32.f32", of(0x00001000)) == 0x2000);
}

TEST_CASE("ptx: parts of registers, the lowest first") {
  CHECK(executor::results("mov.b64 %rd5, 0x1122334455667788;\nmov.b64 {%h0, %h1, %h2, %h3}, "
                          "%rd5;\nmov.b32 %r5, {%h2, %h1};\n"
                          "cvt.u64.u32 %rd6, %r5;\nst.global.b64 [%rd2], %rd6;")[0] == 0x55663344);
  CHECK(executor::results("mov.b32 %r5, 1;\nmov.b32 %r6, 2;\nmov.b64 %rd5, {%r5, "
                          "%r6};\nst.global.b64 [%rd2], %rd5;")[0] == 0x200000001);
}
