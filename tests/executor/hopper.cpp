// SPDX-License-Identifier: BSL-1.0
//
// mbarrier, TMA and wgmma on the executor: a product of two slabs by a producer's warp and a
// warpgroup, and each of its rules broken.
#include "catch.hpp"

#include <string>
#include <vector>

#include "executor/run.hpp"

using Catch::Matchers::Contains;

namespace {

constexpr int rows = 64, columns = 8, depth = 32;

std::uint16_t bf16_of(int x) { return std::uint16_t(std::bit_cast<std::uint32_t>(float(x)) >> 16); }
int a(int m, int k) { return (3 * m + 5 * k + m * k % 11) % 9 - 4; }
int b(int k, int n) { return (7 * n + k + n * k % 13) % 7 - 3; }

/// Words of `in`: two maps, a[64, 32], and b as [8, 32].
constexpr std::size_t map_words = 16, a_at = 2 * map_words, b_at = a_at + rows * depth / 4,
                      in_words = b_at + columns * depth / 4;

std::string const product =
    "mov.u32 %r3, dynamic;\nadd.u32 %r20, %r3, 4096;\nadd.u32 %r21, %r3, 4104;\n"
    "setp.ne.u32 %p1, %r0, 0;\n@%p1 bra ready;\n"
    "mbarrier.init.shared::cta.b64 [%r20], 1;\nmbarrier.init.shared::cta.b64 [%r21], 4;\n"
    "fence.mbarrier_init.release.cluster;\n"
    "ready:\nbar.sync 0;\nmov.u32 %r30, 0;\nsetp.lt.u32 %p1, %r0, 128;\n@%p1 bra consume;\n"
    // One thread copies slabs of 16 k.
    "setmaxnreg.dec.sync.aligned.u32 24;\n"
    "elect.sync _|%p2, -1;\n@!%p2 bra done;\nadd.s64 %rd5, %rd0, 128;\n"
    "produce:\nand.b32 %r10, %r30, 1;\nxor.b32 %r10, %r10, 1;\n"
    "wait_empty:\nmbarrier.try_wait.parity.shared::cta.b64 %p3, [%r21], %r10;\n"
    "@!%p3 bra wait_empty;\n"
    "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r20], 2304;\n"
    "shl.b32 %r11, %r30, 4;\nadd.u32 %r12, %r11, 8;\nmov.u32 %r13, 0;\n"
    "add.u32 %r14, %r3, 1024;\nadd.u32 %r15, %r3, 2048;\nadd.u32 %r16, %r3, 2176;\n"
    "COPY [%r3], [%rd0, {%r11, %r13}], [%r20];\nCOPY [%r14], [%rd0, {%r12, %r13}], [%r20];\n"
    "COPY [%r15], [%rd5, {%r11, %r13}], [%r20];\nCOPY [%r16], [%rd5, {%r12, %r13}], [%r20];\n"
    "add.u32 %r30, %r30, 1;\nsetp.lt.u32 %p4, %r30, 2;\n@%p4 bra produce;\nbra done;\n"
    // 128 threads multiply.
    "consume:\nmov.u64 %rd6, DESCRIPTOR_A;\nmov.u64 %rd7, DESCRIPTOR_B;\n"
    "multiply:\nand.b32 %r10, %r30, 1;\n"
    "wait_full:\nmbarrier.try_wait.parity.shared::cta.b64 %p3, [%r20], %r10;\n"
    "@!%p3 bra wait_full;\n"
    "wgmma.fence.sync.aligned;\nsetp.ne.u32 %p5, %r30, 0;\n"
    "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%r32, %r33, %r34, %r35}, %rd6, %rd7, "
    "%p5, 1, 1, 0, 0;\n"
    "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n"
    "and.b32 %r11, %r0, 31;\nsetp.ne.u32 %p6, %r11, 0;\n@%p6 bra over;\n"
    "mbarrier.arrive.shared::cta.b64 _, [%r21];\nover:\n"
    "add.u32 %r30, %r30, 1;\nsetp.lt.u32 %p4, %r30, 2;\n@%p4 bra multiply;\nbar.sync 1, 128;\n"
    "shl.b32 %r11, %r0, 4;\ncvt.u64.u32 %rd8, %r11;\nadd.s64 %rd8, %rd1, %rd8;\n"
    "st.global.b32 [%rd8], %r32;\nst.global.b32 [%rd8+4], %r33;\nst.global.b32 [%rd8+8], %r34;\n"
    "st.global.b32 [%rd8+12], %r35;\ndone:\n";

std::string replaced(std::string text, std::string const& what, std::string const& by) {
  std::size_t at = text.find(what);
  REQUIRE(at != std::string::npos);
  for (; at != std::string::npos; at = text.find(what, at + by.size()))
    text.replace(at, what.size(), by);
  return text;
}
/// Without a swizzle: 8 rows of 16 bytes, `leading` bytes to the next 8 k.
std::string descriptor(std::uint64_t start, std::uint64_t leading, std::uint64_t stride) {
  return std::to_string(start >> 4 | leading >> 4 << 16 | stride >> 4 << 32);
}
/// Runs a product, whose shared memory begins behind the 1024 bytes of run.hpp, and returns the
/// sums of its threads.
std::vector<float> run(std::string text, int order, std::uint16_t box_rows = rows) {
  text = replaced(text, "COPY",
                  "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes");
  text = replaced(text, "DESCRIPTOR_A", descriptor(1024, 1024, 128));
  text = replaced(text, "DESCRIPTOR_B", descriptor(1024 + 2048, 128, 128));
  executor::machine m(std::vector<std::uint64_t>(in_words, 0), 256);
  auto* const of_a = reinterpret_cast<std::uint16_t*>(m.in + a_at);
  auto* const of_b = reinterpret_cast<std::uint16_t*>(m.in + b_at);
  for (int k = 0; k < depth; ++k) {
    for (int r = 0; r < rows; ++r) of_a[r * depth + k] = bf16_of(a(r, k));
    for (int c = 0; c < columns; ++c) of_b[c * depth + k] = bf16_of(b(k, c));
  }
  auto const set = [&](std::size_t at, void const* base, int high) {
    ptx::tensor_map map;
    map.magic = ptx::tensor_map::valid;
    map.base = reinterpret_cast<std::uint64_t>(base);
    map.rank = 2, map.element_bytes = 2;
    map.extents[0] = depth, map.extents[1] = std::uint64_t(high), map.strides[0] = 2 * depth;
    map.box[0] = 8, map.box[1] = std::uint16_t(high);
    std::memcpy(m.in + at, &map, sizeof map);
  };
  set(0, of_a, box_rows);
  set(map_words, of_b, columns);
  m.run(executor::text_of(text), {.threads = 160, .order = order, .shared = 5000});
  auto const* const sums = reinterpret_cast<float const*>(m.out);
  return {sums, sums + 4 * 128};
}
void fails(char const* what, std::string const& by, char const* message, int order = 0) {
  INFO("instead of " << what << ": " << by);
  CHECK_THROWS_WITH(run(replaced(product, what, by), order), Contains(message));
}

}  // namespace

TEST_CASE("ptx: a product by mbarrier, TMA and wgmma") {
  for (int const order : {0, 1, 2, 3, 4}) {
    std::vector<float> const sums = run(product, order);
    bool is_right = true;
    for (int t = 0; t < 128; ++t)
      for (int i = 0; i < 4; ++i) {
        int const row = t / 32 * 16 + t % 32 / 4 + 8 * (i / 2), column = t % 4 * 2 + i % 2;
        int expected = 0;
        for (int k = 0; k < depth; ++k) expected += a(row, k) * b(k, column);
        is_right = is_right && sums[std::size_t(4 * t + i)] == float(expected);
      }
    CHECK(is_right);
  }
}

TEST_CASE("ptx: a broken rule of mbarrier, TMA or wgmma is an error") {
  fails("fence.mbarrier_init.release.cluster;\n", "", "without a fence that copies see");
  fails("ready:\nbar.sync 0;\n", "ready:\n", "was not begun", 1);
  fails("ready:\nbar.sync 0;\n", "ready:\n", "without a barrier behind its mbarrier.init");
  fails("@!%p3 bra wait_full;\n", "", "before its copy was waited for");
  fails("@!%p3 bra wait_empty;\n", "", "an arrival too many");
  fails("_, [%r20], 2304", "_, [%r20], 2305", "1 bytes are missing");
  fails("_, [%r20], 2304", "_, [%r20], 2303", "-1 bytes are missing");
  fails("mbarrier.arrive.shared::cta.b64 _, [%r21];\n", "",
        "4 of 4 arrivals and 0 bytes are missing");
  fails("[%r21], 4;", "[%r21], 5;", "1 of 5 arrivals and 0 bytes are missing");
  fails("[%r21], 4;", "[%r21], 3;", "without a barrier behind their products");
  fails("wgmma.fence.sync.aligned;\n", "", "without wgmma.fence");
  fails("wgmma.commit_group.sync.aligned;\n", "", "still multiplied");
  fails("wgmma.wait_group.sync.aligned 0;\n", "", "still multiplied");
  fails("wgmma.wait_group.sync.aligned 0;\n",
        "mov.u32 %r33, 1;\nwgmma.wait_group.sync.aligned 0;\n", "written while it is added to");
  fails("wgmma.wait_group.sync.aligned 0;\n",
        "add.u32 %r36, %r33, 1;\nst.shared.b32 [%r3], %r36;\n", "nothing wrote it");
  fails("%p5, 1, 1, 0, 0", "%p1, 1, 1, 0, 0", "%r32 is read, and nothing wrote it");
  fails("wgmma.fence.sync.aligned;\n",
        "shl.b32 %r17, %r0, 1;\nadd.u32 %r17, %r17, %r3;\nst.shared.b16 [%r17], 0;\n"
        "bar.sync 1, 128;\nwgmma.fence.sync.aligned;\n",
        "multiplied and was stored without fence.proxy.async", 2);
  fails("add.u32 %r14, %r3, 1024;", "add.u32 %r14, %r3, 1040;", "is not aligned");
  fails("bar.sync 1, 128;", "bar.sync 1, 160;", "barrier 1");
  fails("u32 24;", "u32 20;", "setmaxnreg of 20");
  fails("%r30, 2;\n@%p4 bra produce;", "%r30, 3;\n@%p4 bra produce;", "ends before its copies");
  fails("[%rd0, {%r12", "[%rd1, {%r12", "no tensor map is encoded there");
  CHECK_THROWS_WITH(run(product, 0, 32), Contains("1024 bytes are missing"));
}

TEST_CASE("ptx: what a fence between proxies makes visible is multiplied") {
  std::string const store =
      "shl.b32 %r17, %r0, 1;\nadd.u32 %r17, %r17, %r3;\nst.shared.b16 [%r17], 0;\n"
      "fence.proxy.async.shared::cta;\nbar.sync 1, 128;\nwgmma.fence.sync.aligned;\n";
  std::vector<float> const sums = run(replaced(product, "wgmma.fence.sync.aligned;\n", store), 3);
  int expected = 0;  // of row 0, of which k 0 to 7 of each slab are zeros now
  for (int k = 0; k < depth; ++k) expected += k % 16 < 8 ? 0 : a(0, k) * b(k, 0);
  CHECK(sums[0] == float(expected));
}

TEST_CASE("ptx: what cuTensorMapEncodeTiled refuses") {
  ptx::tensor_map good;
  good.base = 256, good.rank = 2, good.element_bytes = 2, good.swizzle = 3;
  good.extents[0] = 100, good.extents[1] = 7, good.strides[0] = 208;
  good.box[0] = 64, good.box[1] = 256;
  auto const refused = [&](auto change) {
    ptx::tensor_map m = good;
    change(m);
    char const* const what = ptx::fault_of(m);
    return std::string(what == nullptr ? "" : what);
  };
  CHECK(refused([](auto&) {}) == "");
  CHECK(refused([](auto& m) { m.base = 8; }) == "base");
  CHECK(refused([](auto& m) { m.rank = 6; }) == "rank");
  CHECK(refused([](auto& m) { m.extents[1] = 0; }) == "extents");
  CHECK(refused([](auto& m) { m.strides[0] = 204; }) == "strides");
  CHECK(refused([](auto& m) { m.strides[0] = 192; }) == "strides");
  CHECK(refused([](auto& m) { m.box[1] = 257; }) == "box");
  CHECK(refused([](auto& m) { m.box[0] = 4; }) == "inner box");
  CHECK(refused([](auto& m) { m.box[0] = 72; }) == "swizzle");
}
