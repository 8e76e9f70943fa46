// SPDX-License-Identifier: BSL-1.0
//
// What threads of a warp do together, and in which order warps run.
#include "catch.hpp"

#include <algorithm>
#include <set>

#include "executor/run.hpp"

using Catch::Matchers::Contains;
using executor::machine;
using executor::results;
using executor::setting;
using words = std::vector<std::uint64_t>;

namespace {

/// What each thread has in %r5 at the end of a body.
words ends(std::string const& body, setting s = {}, words const& in = {1}) {
  return results(body + "\ncvt.u64.u32 %rd5, %r5;\nst.global.b64 [%rd2], %rd5;", s, in);
}
template <class F>
words of_lanes(F f, unsigned n = 32) {
  words all;
  for (unsigned l = 0; l < n; ++l) all.push_back(f(l));
  return all;
}

}  // namespace

TEST_CASE("ptx: registers say where a thread is") {
  CHECK(ends("mov.u32 %r5, %laneid;", {.threads = 64}) ==
        of_lanes([](unsigned l) { return l % 32; }, 64));
  CHECK(ends("mov.u32 %r5, %warpid;", {.threads = 64}) ==
        of_lanes([](unsigned l) { return l / 32; }, 64));
  for (unsigned first : {0u, 1u, 2u, 3u, 4u}) {
    char const* const names[] = {"eq", "lt", "le", "gt", "ge"};
    CHECK(ends("mov.u32 %r5, %lanemask_" + std::string(names[first]) + ";") ==
          of_lanes([=](unsigned l) {
            unsigned mask = 0;
            for (unsigned k = 0; k < 32; ++k) {
              bool const holds[] = {k == l, k<l, k <= l, k> l, k >= l};
              mask |= unsigned(holds[first]) << k;
            }
            return mask;
          }));
  }
  CHECK(ends("mov.u32 %r5, %ntid.x;", {.threads = 40}) == words(40, 40));
  CHECK(ends("mov.u32 %r5, %ctaid.x;", {.blocks = 5})[0] == 4);  // of the last block
  CHECK(ends("mov.u32 %r5, %nctaid.x;", {.blocks = 5})[0] == 5);
  machine m;
  auto const kernels = ptx::read(
      executor::text_of(
          "mov.u32 %r5, %tid.y;\nmov.u32 %r6, %tid.z;\nmov.u32 %r7, %ctaid.y;\nshl.b32 %r6, "
          "%r6, 8;\nshl.b32 %r7, %r7, 16;\n"
          "mov.u32 %r8, %laneid;\nmul.wide.u32 %rd5, %r8, 8;\nadd.s64 %rd5, %rd1, %rd5;\n"
          "or.b32 %r5, %r5, %r6;\nor.b32 %r5, %r5, %r7;\nst.global.b32 [%rd5], %r5;")
          .c_str());
  std::uint64_t const parameters[2] = {0, reinterpret_cast<std::uint64_t>(m.out)};
  ptx::launch(kernels.at("k"), m.memory, {1, 3, 1}, {4, 2, 4}, 0,
              reinterpret_cast<unsigned char const*>(parameters), 0);
  for (unsigned l = 0; l < 32; ++l)
    CHECK(std::uint32_t(m.out[l]) == (2u << 16 | l / 8 << 8 | l / 4 % 2));
}

TEST_CASE("ptx: lanes that go different ways come together") {
  // lane % 5 turns of a loop, each of which adds the lane; then odd lanes subtract one.
  std::string const body =
      "mov.u32 %r5, 0;\nrem.u32 %r6, %r0, 5;\nand.b32 %r8, %r0, 1;\nsetp.eq.u32 %p1, %r8, "
      "1;\nmov.u32 %r7, 0;\n"
      "loop:\nsetp.ge.u32 %p2, %r7, %r6;\n@%p2 bra done;\nadd.u32 %r5, %r5, %r0;\nadd.u32 %r7, "
      "%r7, 1;\nbra.uni loop;\n"
      "done:\n@!%p1 bra even;\nsub.u32 %r5, %r5, 1;\nbra both;\neven:\nadd.u32 %r5, %r5, "
      "100;\nboth:\n"
      "bar.sync 0;\nshfl.sync.bfly.b32 %r5, %r5, 1, 31, -1;";  // which need all lanes
  auto const alone = [](unsigned l) {
    return std::uint32_t(l % 5 * l + (l % 2 == 1 ? -1u : 100u));
  };
  CHECK(ends(body) == of_lanes([&](unsigned l) { return alone(l ^ 1); }));
}

TEST_CASE("ptx: lanes that branch apart meet, wherever the compiler has put the place") {
  std::string const odd = "and.b32 %r8, %r0, 1;\nsetp.eq.u32 %p1, %r8, 1;\nmov.u32 %r5, %r0;\n",
                    together = "bar.sync 0;\nshfl.sync.bfly.b32 %r5, %r5, 1, 31, -1;\n";
  words const expected = of_lanes([](unsigned l) { return (l ^ 1) + (l % 2 == 1 ? 100 : 0); });
  // Before the branch, between its sides, and behind an inner branch that only some lanes reach.
  CHECK(ends(odd + "bra begin;\njoin:\n" + together + "bra done;\nbegin:\n@%p1 bra join;\n" +
             "add.u32 %r5, %r5, 100;\nbra join;\ndone:\n") == expected);
  CHECK(ends(odd + "@%p1 bra join;\nbra side;\njoin:\n" + together +
             "bra done;\nside:\nadd.u32 %r5, %r5, 100;\nbra join;\ndone:\n") == expected);
  CHECK(ends(odd + "bra begin;\njoin:\n" + together +
             "bra done;\ninner:\nadd.u32 %r5, %r5, 60;\nbra join;\n"
             "begin:\n@%p1 bra join;\nsetp.lt.u32 %p2, %r0, 8;\nadd.u32 %r5, %r5, 40;\n@%p2 bra "
             "inner;\nadd.u32 %r5, %r5, 60;\nbra join;\ndone:\n") == expected);
}

TEST_CASE("ptx: lanes leave one by one") {
  CHECK(results("setp.lt.u32 %p1, %r0, 7;\n@%p1 ret;\nbar.sync 0;\nst.global.b64 [%rd2], 5;")[7] ==
        5);
  words const some = results(
      "setp.lt.u32 %p1, %r0, 7;\n@%p1 bra out;\nst.global.b64 [%rd2], "
      "5;\nret;\nout:\nst.global.b64 [%rd2], 6;");
  CHECK(some == of_lanes([](unsigned l) { return l < 7 ? 6 : 5; }));
}

TEST_CASE("ptx: shuffles within segments") {
  // Width 8, as __shfl_up_sync and its like encode it: 0x1800 is the segment.
  std::string const values = "add.u32 %r6, %r0, 100;\n",
                    inside = "\nselp.b32 %r7, 1000, 0, %p5;\nadd.u32 %r5, %r5, %r7;";
  auto const expected = [](auto source) {
    return of_lanes([=](unsigned l) {
      int const from = source(int(l % 8));
      bool const fits = from >= 0 && from < 8;
      return std::uint64_t(100 + (fits ? int(l / 8 * 8) + from : int(l)) + (fits ? 1000 : 0));
    });
  };
  auto const shuffled = [&](std::string const& how) {
    return ends(values + "shfl.sync." + how + ", -1;" + inside);
  };
  CHECK(shuffled("up.b32 %r5|%p5, %r6, 3, 0x1800") == expected([](int l) { return l - 3; }));
  CHECK(shuffled("down.b32 %r5|%p5, %r6, 3, 0x181f") == expected([](int l) { return l + 3; }));
  CHECK(shuffled("bfly.b32 %r5|%p5, %r6, 5, 0x181f") == expected([](int l) { return l ^ 5; }));
  CHECK(shuffled("idx.b32 %r5|%p5, %r6, 2, 0x181f") == expected([](int) { return 2; }));
  CHECK(shuffled("idx.b32 %r5|%p5, %r6, 10, 0x181f") ==
        expected([](int) { return 2; }));  // within the segment
  // A butterfly further than its segment: to lower segments only.
  CHECK(ends(values + "shfl.sync.bfly.b32 %r5, %r6, 8, 0x181f, -1;") ==
        of_lanes([](unsigned l) { return 100 + (l & 8 ? l ^ 8 : l); }));
  // The whole warp.
  CHECK(ends(values + "shfl.sync.up.b32 %r5, %r6, 1, 0, -1;") ==
        of_lanes([](unsigned l) { return 100 + (l > 0 ? l - 1 : 0); }));
  CHECK(ends(values + "shfl.sync.down.b32 %r5, %r6, 31, 31, -1;") ==
        of_lanes([](unsigned l) { return 100 + (l == 0 ? 31 : l); }));
  CHECK(ends("shfl.sync.idx.b32 %r5, %r0, %r0, 31, -1;") == of_lanes([](unsigned l) { return l; }));
}

TEST_CASE("ptx: lanes add to a word of global memory one by one") {
  std::string const add = "mov.u32 %r6, 2;\natom.acq_rel.gpu.global.add.u32 %r5, [%rd0+4], %r6;";
  CHECK(ends(add, {}, {words::value_type(7) << 32}) ==
        of_lanes([](unsigned l) { return 7 + 2 * l; }));
  CHECK(ends("setp.lt.u32 %p1, %r0, 30;\nmov.u32 %r5, 0;\n@%p1 bra over;\n" + add +
             "\nover:")[31] == 2);
  // The last block of a grid finds what all others have added, whichever it is.
  for (int const order : {0, 1}) {
    words const found = ends(add, {.threads = 1, .order = order, .blocks = 5}, {0});
    CHECK(found == words{8});
  }
}

TEST_CASE("ptx: a warp releases what others have stored, behind a barrier") {
  std::string const store = "st.global.b64 [%rd2], %rd2;\n",
                    release =
                        "setp.ne.u32 %p1, %r0, 0;\n@%p1 bra over;\n"
                        "atom.acq_rel.gpu.global.add.u32 %r5, [%rd0], %r0;\nover:\n",
                    barrier = "bar.sync 0;\n", all = "mov.u32 %r5, 0;\n";
  auto const runs = [&](std::string const& body) {
    for (int const order : {0, 1, 2}) ends(all + body, {.threads = 64, .order = order}, {5});
  };
  runs(store + barrier + release + barrier);
  CHECK_THROWS_WITH(runs(store + release + barrier), Contains("without a barrier between them"));
  CHECK_THROWS_WITH(runs(store + barrier + release), Contains("without a barrier between them"));
}

TEST_CASE("ptx: additions that order nothing else") {
  CHECK(ends("atom.global.add.u32 %r5, [%rd0], 3;", {}, {7}) ==
        of_lanes([](unsigned l) { return 7 + 3 * l; }));
  std::string const clear =
      "setp.eq.u32 %p1, %r0, 0;\n@%p1 st.shared.u32 [fixed], 5;\nbar.sync 0;\n";
  for (int const order : {0, 1, 2}) {
    setting const two{.threads = 64, .order = order};
    words const found = ends(clear +
                                 "atom.shared.add.u32 %r6, [fixed], 2;\nbar.sync 0;\n"
                                 "ld.shared.u32 %r5, [fixed];",
                             two);
    CHECK(found == words(64, 5 + 2 * 64));
  }
  words const last = ends(
      "mov.u32 %r5, 9;\nst.volatile.global.u32 [%rd0], %r5;\nmembar.cta;\n"
      "ld.volatile.global.u32 %r5, [%rd0];");
  CHECK(last == words(32, 9));
}

TEST_CASE("ptx: votes at a barrier") {
  std::string const vote =
      "setp.eq.u32 %p1, %r0, %r6;\nbar.red.or.pred %p2, 0, %p1;\n"
      "selp.u32 %r7, 1, 0, %p2;\n";
  for (int const order : {0, 1, 2}) {
    // Thread 40 votes, then none does, then thread 3.
    words const found =
        ends("mov.u32 %r6, 40;\n" + vote + "mov.u32 %r5, %r7;\nmov.u32 %r6, 99;\n" + vote +
                 "shl.b32 %r7, %r7, 1;\nor.b32 %r5, %r5, %r7;\nmov.u32 %r6, 3;\n" + vote +
                 "shl.b32 %r7, %r7, 2;\nor.b32 %r5, %r5, %r7;",
             {.threads = 96, .order = order});
    CHECK(found == words(96, 5));
  }
  CHECK_THROWS_WITH(ends("mov.u32 %r5, 0;\nsetp.lt.u32 %p1, %r0, 9;\n@%p1 bra over;\n"
                         "bar.red.or.pred %p2, 0, %p1;\nover:"),
                    Contains("some lanes"));
}

TEST_CASE("ptx: votes and matches") {
  CHECK(
      ends("and.b32 %r6, %r0, 3;\nsetp.eq.u32 %p1, %r6, 1;\nvote.sync.ballot.b32 %r5, %p1, -1;") ==
      words(32, 0x22222222));
  CHECK(ends("and.b32 %r6, %r0, 3;\nmatch.any.sync.b32 %r5, %r6, -1;") ==
        of_lanes([](unsigned l) { return 0x11111111u << l % 4; }));
}

TEST_CASE("ptx: ldmatrix") {
  // Row r of matrix m is at 16 (8 m + r); its element c is 64 m + 8 r + c.
  std::string const rows =
      "mov.u32 %r3, fixed;\nshl.b32 %r4, %r0, 4;\nadd.u32 %r4, %r3, %r4;\nshl.b32 %r6, %r0, 3;\n"
      "mul.lo.u32 %r6, %r6, 0x10001;\nadd.u32 %r6, %r6, 0x10000;\nadd.u32 %r7, %r6, "
      "0x20002;\nadd.u32 %r8, %r7, "
      "0x20002;\nadd.u32 %r9, %r8, 0x20002;\n"
      "st.shared.v4.b32 [%r4], {%r6, %r7, %r8, %r9};\nbar.sync 0;\n";
  auto const load = [&](std::string const& end, int which) {
    return ends(rows + "ldmatrix.sync.aligned.m8n8.x4" + end +
                ".shared.b16 {%r10, %r11, %r12, %r13}, [%r4];\nmov.b32 %r5, %r1" +
                std::to_string(which) + ";");
  };
  for (unsigned m = 0; m < 4; ++m) {
    CHECK(load("", int(m)) == of_lanes([=](unsigned l) {
            return (64 * m + 8 * (l / 4) + 2 * (l % 4)) * 0x10001u + 0x10000;
          }));
    CHECK(load(".trans", int(m)) == of_lanes([=](unsigned l) {
            return (64 * m + 16 * (l % 4) + l / 4) * 0x10001u + 0x80000;
          }));
  }
  // The address register is one of those that are loaded.
  CHECK(ends(rows + "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r4, %r5}, [%r4];")[5] ==
        (64 + 8 + 2) * 0x10001 + 0x10000);
}

TEST_CASE("ptx: elements of mma's matrices are where the ISA says") {
  // a[m][k] = (m + 3 k) % 7 - 3, b[k][n] = (2 k + n) % 5 - 2, c[m][n] = m - n: sums of integers.
  auto const a = [](int m, int k) { return float((m + 3 * k) % 7 - 3); };
  auto const b = [](int k, int n) { return float((2 * k + n) % 5 - 2); };
  auto const upper = [](float x) { return std::bit_cast<std::uint32_t>(x) >> 16; };
  for (int const depth : {8, 16}) {
    words in;
    for (int lane = 0; lane < 32; ++lane) {
      int const group = lane >> 2, t = lane & 3;
      if (depth == 16) {
        for (int i = 0; i < 8; i += 2) {
          int const row = i % 4 < 2 ? group : group + 8, column = 2 * t + (i >= 4 ? 8 : 0);
          in.push_back(upper(a(row, column)) | upper(a(row, column + 1)) << 16);
        }
        for (int i = 0; i < 4; i += 2) {
          int const k = 2 * t + (i >= 2 ? 8 : 0);
          in.push_back(upper(b(k, group)) | upper(b(k + 1, group)) << 16);
        }
      } else {
        for (int i = 0; i < 4; ++i)
          in.push_back(
              executor::bits_of(a(i == 0 || i == 2 ? group : group + 8, i < 2 ? t : t + 4)));
        for (int i = 0; i < 2; ++i) in.push_back(executor::bits_of(b(i == 0 ? t : t + 4, group)));
      }
      for (int i = 0; i < 4; ++i)
        in.push_back(executor::bits_of(float((i < 2 ? group : group + 8) - (2 * t + (i & 1)))));
    }
    std::string load = "mul.wide.u32 %rd5, %r0, 80;\nadd.s64 %rd5, %rd0, %rd5;\n";
    for (int i = 0; i < 10; ++i)
      load +=
          "ld.global.b32 %r" + std::to_string(10 + i) + ", [%rd5+" + std::to_string(8 * i) + "];\n";
    std::string const shape =
        depth == 16 ? "m16n8k16.row.col.f32.bf16.bf16.f32" : "m16n8k8.row.col.f32.tf32.tf32.f32";
    for (int i = 0; i < 4; ++i) {
      words const found =
          ends(load + "mma.sync.aligned." + shape +
                   " {%r20, %r21, %r22, %r23}, {%r10, %r11, %r12, %r13}, {%r14, %r15}, "
                   "{%r16, %r17, %r18, %r19};\nmov.b32 %r5, %r2" +
                   std::to_string(i) + ";",
               {}, in);
      for (int lane = 0; lane < 32; ++lane) {
        int const row = (lane >> 2) + (i < 2 ? 0 : 8), column = 2 * (lane & 3) + (i & 1);
        float sum = float(row - column);
        for (int k = 0; k < depth; ++k) sum += a(row, k) * b(k, column);
        CHECK(found[std::size_t(lane)] == executor::bits_of(sum));
      }
    }
  }
}

TEST_CASE("ptx: warps run upwards, downwards, or as a seed says") {
  // The first lane of each warp takes the next number; warps do not run at once.
  std::string const take =
      "mov.u32 %r3, %laneid;\nsetp.ne.u32 %p1, %r3, 0;\n@%p1 ret;\nld.global.b32 %r5, "
      "[%rd0];\nadd.u32 %r6, %r5, "
      "1;\nst.global.b32 [%rd0], %r6;";
  auto const turns = [&](int order) {
    words const all = ends(take, {.threads = 256, .order = order}, {0});
    words first;
    for (std::size_t w = 0; w < 8; ++w) first.push_back(all[32 * w]);
    return first;
  };
  CHECK(turns(0) == words{0, 1, 2, 3, 4, 5, 6, 7});
  CHECK(turns(1) == words{7, 6, 5, 4, 3, 2, 1, 0});
  std::set<words> seen;
  for (int seed = 2; seed < 8; ++seed) {
    words const now = turns(seed);
    CHECK(now == turns(seed));
    CHECK(std::is_permutation(now.begin(), now.end(), turns(0).begin()));
    seen.insert(now);
  }
  CHECK(seen.size() > 3);
}

TEST_CASE("ptx: barriers order warps, whoever runs first") {
  std::string const body =
      "mov.u32 %r3, fixed;\nshl.b32 %r4, %r0, 2;\nadd.u32 %r4, %r3, %r4;\nadd.u32 %r6, %r0, "
      "7;\nst.shared.b32 [%r4], "
      "%r6;\nbar.sync 0;\n"
      "xor.b32 %r7, %r4, 0xff;\nsub.u32 %r7, %r7, 3;\nld.shared.b32 %r5, [%r7];";
  for (int const order : {0, 1, 5})
    CHECK(ends(body, {.threads = 64, .order = order}) ==
          of_lanes([](unsigned l) { return 63 - l + 7; }, 64));
}
