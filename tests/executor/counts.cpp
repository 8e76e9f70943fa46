// SPDX-License-Identifier: BSL-1.0
//
// What the executor of PTX counts: sectors, bank conflicts and instructions of small kernels, whose
// numbers follow from the ISA and the hardware's 32 banks by hand.
#include "catch.hpp"

#include <string>
#include <vector>

#include "ptx/counts.hpp"

namespace {

/// One block of `threads` executes `code`; %a is the address of 64 KiB of global memory and %t is 4
/// KiB of shared memory, both plus `stride` bytes for each thread.
ptx::counts count(std::string const& code, int stride, unsigned threads = 32, unsigned grid = 1,
                  ptx::sample s = {}) {
  std::string const text = R"(.version 9.0
.target sm_90a
.address_size 64
.visible .entry k(
	.param .u64 k_param_0
)
{
	.reg .b32 %r<20>;
	.reg .f32 %f<8>;
	.reg .b64 %rd<8>;
	.shared .align 16 .b8 memory[8192];
	ld.param.u64 %rd1, [k_param_0];
	mov.u32 %r1, %tid.x;
	mul.wide.u32 %rd2, %r1, )" +
                           std::to_string(stride) +
                           R"(;
	add.s64 %rd3, %rd1, %rd2;
	mov.u32 %r2, memory;
	mad.lo.s32 %r3, %r1, )" +
                           std::to_string(stride) + ", %r2;\n" + code + "\n\tret;\n}\n";
  auto const kernels = ptx::read(text.c_str());
  ptx::global_memory memory;
  void* const p = memory.allocate(65536);
  ptx::counts c;
  s.into = &c;
  ptx::launch(kernels.at("k"), memory, {grid, 1, 1}, {threads, 1, 1}, 0,
              reinterpret_cast<unsigned char const*>(&p), 0, s);
  memory.release(p);
  return c;
}
std::uint64_t of(ptx::counts const& c, ptx::work kind) { return c.instructions[std::size_t(kind)]; }

constexpr char const* load = "ld.global.b32 %r5, [%rd3];";
constexpr char const* load_four = "ld.global.v4.b32 {%r5, %r6, %r7, %r8}, [%rd3];";
constexpr char const* store = "st.shared.b32 [%r3], %r1;";
constexpr char const* store_two = "st.shared.v2.b32 [%r3], {%r1, %r1};";
constexpr char const* store_four = "st.shared.v4.b32 [%r3], {%r1, %r1, %r1, %r1};";

std::uint64_t conflicts(ptx::counts const& c) { return c.shared.wavefronts - c.shared.least; }

}  // namespace

TEST_CASE("global accesses touch sectors of 32 bytes") {
  struct expected {
    char const* code;
    int stride;
    std::uint64_t sectors;
  };
  for (expected const& e : {expected{load, 4, 4},
                            {load, 8, 8},
                            {load, 32, 32},
                            {load, 0, 1},
                            {load_four, 16, 16},
                            {load_four, 32, 32}}) {
    CAPTURE(e.code, e.stride);
    ptx::counts const c = count(e.code, e.stride);
    CHECK(c.loads.sectors == e.sectors);
    CHECK(c.loads.accesses == 1);
    CHECK(c.loads.bytes == (e.code == load ? 128u : 512u));
    CHECK(c.stores.accesses == 0);
  }
  CHECK(count("st.global.b32 [%rd3], %r1;", 4).stores.sectors == 4);
  CHECK(count(load, 4, 8).loads.sectors == 1);  // of eight threads
}

TEST_CASE("wavefronts of shared memory are counted beyond the least") {
  struct expected {
    char const* code;
    int stride;
    std::uint64_t least, conflicts;
  };
  for (expected const& e : {expected{store, 4, 1, 0},
                            {store, 8, 1, 1},
                            {store, 128, 1, 31},
                            {store, 132, 1, 0},
                            {store_two, 8, 2, 0},
                            {store_two, 16, 2, 2},
                            {store_four, 16, 4, 0},
                            {store_four, 32, 4, 4},
                            {store_four, 80, 4, 0}}) {
    CAPTURE(e.code, e.stride);
    ptx::counts const c = count(e.code, e.stride);
    CHECK(c.shared.least == e.least);
    CHECK(conflicts(c) == e.conflicts);
    CHECK(c.shared.accesses == 1);
  }
  ptx::counts const broadcast =
      count("st.shared.b32 [%r2], 1;\n\tbar.sync 0;\n\tld.shared.b32 %r5, [%r2];", 4, 1);
  CHECK(conflicts(broadcast) == 0);
  CHECK(broadcast.shared.bytes == 8);
}

TEST_CASE("rows of matrices conflict where they share banks") {
  auto const rows =
      [](int pitch) {  // lanes 0 to 31 address rows; all of the memory they read is written before
        return count(
            "mul.lo.s32 %r4, %r1, 16;\n\tadd.s32 %r4, %r4, %r2;"
            "st.shared.v4.b32 [%r4], {%r1, %r1, %r1, %r1}; st.shared.v4.b32 [%r4+512], {%r1, %r1, "
            "%r1, %r1};"
            "st.shared.v4.b32 [%r4+1024], {%r1, %r1, %r1, %r1}; st.shared.v4.b32 [%r4+1536], {%r1, "
            "%r1, %r1, %r1};"
            "st.shared.v4.b32 [%r4+2048], {%r1, %r1, %r1, %r1}; st.shared.v4.b32 [%r4+2560], {%r1, "
            "%r1, %r1, %r1};"
            "st.shared.v4.b32 [%r4+3072], {%r1, %r1, %r1, %r1}; st.shared.v4.b32 [%r4+3584], {%r1, "
            "%r1, %r1, %r1};"
            "bar.sync 0; ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r5, %r6, %r7, %r8}, [%r3];",
            pitch);
      };
  CHECK(conflicts(rows(16)) == 0);
  CHECK(conflicts(rows(80)) == 0);
  CHECK(conflicts(rows(128)) == 4 * 7);
  CHECK(rows(80).shared.least == 8 * 4 + 4);
  CHECK(of(rows(80), ptx::work::matrix_load) == 1);
}

TEST_CASE("copies count on both sides, and zeros are not read") {
  ptx::counts const c = count(
      "cp.async.cg.shared.global [%r3], [%rd3], 16, 16; cp.async.cg.shared.global [%r3+1024], "
      "[%rd3], 16, 0;"
      "cp.async.commit_group; cp.async.wait_group 0;",
      16);
  CHECK(of(c, ptx::work::copy) == 2);
  CHECK(of(c, ptx::work::barrier) == 2);
  CHECK(c.loads.sectors == 16);
  CHECK(c.shared.wavefronts == 8);
}

TEST_CASE("instructions are counted by kind, once for a warp") {
  ptx::counts const c = count(
      "mov.b32 %r5, 0; mov.f32 %f1, 0f00000000; ex2.approx.ftz.f32 %f2, %f1; fma.rn.f32 %f3, %f2, "
      "%f2, %f2;"
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%f4, %f5, %f6, %f7}, {%r5, %r5, %r5, "
      "%r5},"
      "{%r5, %r5}, {%f1, %f1, %f1, %f1}; div.rn.f32 %f2, %f3, %f3; cvt.rn.f32.s32 %f3, %r1;",
      4, 64);
  CHECK(of(c, ptx::work::product) == 2);  // of two warps
  CHECK(c.operations == 2 * 2 * 16 * 8 * 16);
  CHECK(of(c, ptx::work::special) == 2);
  CHECK(of(c, ptx::work::floating) == 2);
  CHECK(of(c, ptx::work::division) == 2);
  CHECK(of(c, ptx::work::conversion) == 2);
  CHECK(of(c, ptx::work::parameter) == 2);
  CHECK(of(c, ptx::work::integer) == 2 * 3);
  CHECK(of(c, ptx::work::move) == 2 * 4);
  CHECK(of(c, ptx::work::branch) == 2);
}

TEST_CASE("a sample of a grid's blocks runs") {
  ptx::sample few;
  few.blocks = 4;
  CHECK(count(load, 4, 32, 100, few).counted_blocks == 4);
  CHECK(count(load, 4, 32, 100, few).loads.accesses == 4);
  CHECK(count(load, 4, 32, 3, few).counted_blocks == 3);
  CHECK(count(load, 4, 32, 100).counted_blocks == 100);
  few.skips = true;
  CHECK(count(load, 4, 32, 100, few).counted_blocks == 0);
}
