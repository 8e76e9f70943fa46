// SPDX-License-Identifier: BSL-1.0
//
// What no program may do is an error that names it: each check, with a twin that does the same as
// it should be done.
#include "catch.hpp"

#include "executor/run.hpp"

using Catch::Matchers::Contains;
using executor::failure;
using executor::machine;
using executor::text_of;

namespace {

std::string message_of(std::string const& text) {
  try {
    machine().run(text);
  } catch (ptx::error const& e) {
    return e.what();
  }
  return "";
}

/// %r5 is a shared address: `fixed` + 4 * thread.
std::string const place = "mov.u32 %r4, fixed;\nshl.b32 %r5, %r0, 2;\nadd.u32 %r5, %r4, %r5;\n";
/// %p1: thread 0; %p2: the first warp; %p3: the second half of a warp.
std::string const who =
    "setp.eq.u32 %p1, %r0, 0;\nsetp.lt.u32 %p2, %r0, 32;\nand.b32 %r3, %r0, 16;\nsetp.ne.u32 %p3, "
    "%r3, 0;\n";

}  // namespace

TEST_CASE("ptx: what is not known is named, with its line") {
  CHECK_THAT(failure("frobnicate.u32 %r1, %r0;"),
             Contains("an opcode that is not known: frobnicate.u32") && Contains("line 18"));
  CHECK_THAT(failure("mov.u32 %r99, %r0;"), Contains("no register %r99") && Contains("line 18"));
  CHECK_THAT(failure("add.u32 %r1, %r0, %clock;"), Contains("no register %clock"));
  CHECK_THAT(failure(".tex .u32 picture;"), Contains("a directive that is not known: .tex"));
  CHECK_THAT(failure("bra nowhere;"), Contains("no label nowhere"));
  CHECK_THAT(failure("add.u32 %r1, %r0, %r0, %r0;"), Contains("more operands"));
  CHECK_THAT(failure("add.u32 %r1, %r0;"), Contains("fewer operands"));
  CHECK_THAT(failure("ld.global.u32 %r1, %rd0;"), Contains("an address in brackets"));
  CHECK_THAT(failure("selp.b32 %r1, 1, 0, !%p1;"), Contains("not understood"));
  CHECK(failure("add.u32 %r1, %r0, %r0;").empty());
}

TEST_CASE("ptx: a register that nobody wrote may be moved, and nothing may depend on it") {
  for (char const* move : {"mov.u32 %r6, %r7;", "add.u32 %r6, %r7, 1;",
                           "setp.eq.u32 %p5, %r7, 0;\nselp.b32 %r6, 1, 2, %p5;",
                           "cvt.u64.u32 %rd6, %r7;\ncvt.u32.u64 %r6, %rd6;",
                           "mov.b64 %rd6, {%r0, %r7};\nmov.b64 {%r6, %r6}, %rd6;",
                           "shfl.sync.idx.b32 %r6, %r7, 0, 31, -1;"}) {
    INFO(move);
    std::string const moved = std::string(move) + "\n";
    CHECK(failure(moved).empty());
    CHECK_THAT(failure(moved + "st.global.b32 [%rd2], %r6;"),
               Contains("register %r6 is read, and nothing wrote it"));
  }
  // Half of a register may be known.
  for (char const* take : {"cvt.u32.u64 %r6, %rd6;", "mov.b64 {%r6, %r7}, %rd6;"}) {
    std::string const use = std::string(take) + "\nst.global.b32 [%rd2], %r6;";
    CHECK(failure("mov.b64 %rd6, {%r0, %r7};\n" + use).empty());
    CHECK_THAT(failure("mov.b64 %rd6, {%r7, %r0};\n" + use), Contains("%r6 is read"));
    CHECK_THAT(failure("mov.b64 %rd6, {%r0, %r7};\nadd.u64 %rd6, %rd6, 1;\n" + use),
               Contains("%r6 is read"));
  }
  CHECK_THAT(failure("ld.global.b32 %r6, [%rd7];"), Contains("%rd7 is read"));
  CHECK_THAT(failure("st.global.b32 [%rd7], %r0;"), Contains("%rd7 is read"));
  CHECK_THAT(failure("@%p5 bra end;\nend:"), Contains("%p5 is read"));
  CHECK_THAT(failure("@!%p5 mov.u32 %r6, 1;"), Contains("%p5 is read"));
  CHECK_THAT(failure("shfl.sync.idx.b32 %r6, %r0, %r7, 31, -1;"), Contains("%r7 is read"));
  CHECK_THAT(failure("match.any.sync.b32 %r6, %r7, -1;"), Contains("%r7 is read"));
  CHECK_THAT(failure("vote.sync.ballot.b32 %r6, %p5, -1;"), Contains("%p5 is read"));
  std::string const operands = "{%r10, %r10, %r10, %r10}, {%r10, %r7}, {%r10, %r10, %r10, %r10};";
  std::string const mma =
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%r11, %r12, %r13, %r14}, " + operands;
  CHECK_THAT(failure("mov.b32 %r10, 0;\n" + mma), Contains("%r7 is read"));
  CHECK(failure("mov.b32 %r10, 0;\nmov.b32 %r7, 0;\n" + mma).empty());
}

TEST_CASE("ptx: what is selected decides whether it is known; lanes know for themselves") {
  std::string const one = "setp.lt.u32 %p1, %r0, 8;\n";
  CHECK(failure(one + "selp.b32 %r6, %r0, %r7, %p1;\n@%p1 st.global.b32 [%rd2], %r6;").empty());
  CHECK_THAT(failure(one + "selp.b32 %r6, %r0, %r7, %p1;\nst.global.b32 [%rd2], %r6;"),
             Contains("%r6 is read"));
  CHECK(failure(one + "@%p1 mov.u32 %r6, 1;\n@%p1 st.global.b32 [%rd2], %r6;").empty());
  CHECK_THAT(failure(one + "@%p1 mov.u32 %r6, 1;\n@!%p1 st.global.b32 [%rd2], %r6;"),
             Contains("%r6 is read"));
}

TEST_CASE("ptx: shared memory that nobody wrote") {
  CHECK_THAT(failure(place + "ld.shared.b32 %r6, [%r5];\nst.global.b32 [%rd2], %r6;"),
             Contains("%r6 is read"));
  CHECK_THAT(
      failure(place +
              "st.shared.b16 [%r5], 7;\nld.shared.b32 %r6, [%r5];\nst.global.b32 [%rd2], %r6;"),
      Contains("%r6 is read"));
  CHECK(failure(place +
                "st.shared.b32 [%r5], 7;\nld.shared.b32 %r6, [%r5];\nst.global.b32 [%rd2], %r6;")
            .empty());
  std::string const rows = "mov.u32 %r4, fixed;\nshl.b32 %r5, %r0, 4;\nadd.u32 %r5, %r4, %r5;\n";
  std::string const load = "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r6, %r7, %r8, %r9}, [%r5];";
  CHECK_THAT(failure(rows + load), Contains("that nobody wrote"));
  std::string const full = "st.shared.v4.b32 [%r5], {%r0, %r0, %r0, %r0};\nbar.warp.sync -1;\n";
  CHECK(failure(rows + full + load).empty());
  std::string unordered = full.substr(0, full.find("bar"));
  CHECK_THAT(failure(rows + unordered + load), Contains("without a barrier"));
  CHECK_THAT(failure(rows + full + "add.u32 %r5, %r5, 8;\n" + load), Contains("not aligned to 16"));
}

TEST_CASE("ptx: races between warps") {
  executor::setting const two{.threads = 64};
  for (int const order : {0, 1, 2, 3}) {
    executor::setting s = two;
    s.order = order;
    std::string const write = who + "@%p1 st.shared.b32 [fixed], 5;\n",
                      read = "ld.shared.b32 %r6, [fixed];\n";
    CHECK_THAT(
        failure(who + place +
                    "st.shared.b32 [%r5], 1;\nxor.b32 %r6, %r5, 128;\nld.shared.b32 %r7, [%r6];",
                s),
        Contains("without a barrier"));
    CHECK(failure(who + place +
                      "st.shared.b32 [%r5], 1;\nxor.b32 %r6, %r5, 128;\nbar.sync 0;\nld.shared.b32 "
                      "%r7, [%r6];",
                  s)
              .empty());
    CHECK_THAT(failure(who + "setp.eq.u32 %p4, %r0, 40;\n@%p1 st.shared.b32 [fixed], 1;\n@%p4 "
                             "st.shared.b32 [fixed], 2;",
                       s),
               Contains("without a barrier"));
    CHECK_THAT(failure(write + "bar.sync 0;\n" + read + write, s),
               Contains("without a barrier"));  // is read, then written
    CHECK(failure(write + "bar.sync 0;\n" + read + "bar.sync 0;\n" + write, s).empty());
    CHECK(failure(write + "bar.sync 0;\n" + read + read, s).empty());  // two readers
  }
}

TEST_CASE("ptx: races between lanes of a warp") {
  std::string const write = place + "st.shared.b32 [%r5], 1;\nxor.b32 %r6, %r5, 4;\n",
                    read = "ld.shared.b32 %r7, [%r6];\n";
  CHECK_THAT(failure(write + read), Contains("without a barrier"));
  CHECK(failure(write + "bar.warp.sync -1;\n" + read).empty());
  CHECK_THAT(failure(write + "shfl.sync.bfly.b32 %r8, %r0, 1, 31, -1;\n" + read),
             Contains("without a barrier"));  // orders no memory
  CHECK_THAT(failure("st.shared.b32 [fixed], 1;"),
             Contains("without a barrier"));  // all lanes to one place
  // All read, then one writes: in order only after they came together.
  std::string const begin =
      who + "@%p1 st.shared.b32 [fixed], 1;\nbar.warp.sync -1;\nld.shared.b32 %r7, [fixed];\n";
  CHECK_THAT(failure(begin + "@%p1 st.shared.b32 [fixed], 2;"), Contains("without a barrier"));
  CHECK(failure(begin + "bar.warp.sync -1;\n@%p1 st.shared.b32 [fixed], 2;").empty());
}

TEST_CASE("ptx: atomic operations race with other accesses, not with each other") {
  std::string const clear =
      "setp.eq.u32 %p1, %r0, 0;\n@%p1 st.shared.u32 [fixed], 0;\nbar.sync 0;\n";
  std::string const add = "atom.shared.add.u32 %r6, [fixed], 1;\n",
                    read = "ld.shared.u32 %r7, [fixed];\n",
                    write = "@%p1 st.shared.u32 [fixed], 1;\n", barrier = "bar.sync 0;\n";
  for (int const order : {0, 1, 2}) {
    executor::setting const two{.threads = 64, .order = order};
    CHECK(failure(clear + add + add + barrier + read, two).empty());
    CHECK_THAT(failure(clear + add + read, two), Contains("without a barrier"));
    CHECK_THAT(failure(clear + read + add, two), Contains("without a barrier"));
    CHECK_THAT(failure(clear + add + write, two), Contains("without a barrier"));
    CHECK_THAT(failure(clear + write + add, two), Contains("without a barrier"));
  }
  CHECK(failure(clear + add + "bar.warp.sync -1;\n" + read).empty());
  CHECK_THAT(failure(clear + add + read), Contains("without a barrier"));
  CHECK_THAT(failure(add), Contains("nobody wrote"));
}

TEST_CASE("ptx: CUB's kernels move what nobody wrote, and nothing depends on it") {
  auto const ends = [](std::string const& name, std::string const& body) -> std::string {
    machine m;
    std::string text = text_of(place + body);
    text.replace(text.find(".entry k("), 9, ".entry " + name + "(");
    auto const kernels = ptx::read(text.c_str());
    std::uint64_t const parameters[2] = {0, reinterpret_cast<std::uint64_t>(m.out)};
    try {
      ptx::launch(kernels.at(name), m.memory, {1, 1, 1}, {32, 1, 1}, 0,
                  reinterpret_cast<unsigned char const*>(parameters), 0);
    } catch (ptx::error const& e) {
      return e.what();
    }
    return "";
  };
  std::string const move = "st.shared.u32 [%r5], %r9;\nld.shared.u32 %r8, [%r5];\n",
                    use = "st.global.u32 [%rd2], %r8;\n", known = "mov.u32 %r9, 1;\n";
  CHECK(ends("_ZN3cub1kE", move).empty());
  CHECK(ends("_ZN3cub1kE", known + move + use).empty());
  CHECK_THAT(ends("_ZN3cub1kE", move + use), Contains("nothing wrote it"));
  CHECK_THAT(ends("_ZN2pp1kE", move), Contains("nothing wrote it"));
}

TEST_CASE("ptx: copies that are not waited for") {
  std::string const begin =
      place + "cp.async.ca.shared.global [%r5], [%rd0], 4, 4;\ncp.async.commit_group;\n";
  std::string const read = "ld.shared.b32 %r7, [%r5];\nst.global.b32 [%rd2], %r7;";
  CHECK_THAT(failure(begin + read), Contains("before its copy was waited for"));
  CHECK_THAT(failure(begin + "cp.async.wait_group 1;\n" + read),
             Contains("before its copy was waited for"));
  CHECK(failure(begin + "cp.async.wait_group 0;\n" + read).empty());
  CHECK(failure(begin + "cp.async.wait_all;\n" + read).empty());
  CHECK_THAT(failure(begin + "st.shared.b32 [%r5], 1;"),
             Contains("is written while a copy to it is under way"));
  CHECK_THAT(failure(begin + "cp.async.wait_group 0;\nxor.b32 %r5, %r5, 4;\n" + read),
             Contains("without a barrier"));  // another lane's copy
  CHECK(failure(begin + "cp.async.wait_group 0;\nbar.sync 0;\nxor.b32 %r5, %r5, 4;\n" + read)
            .empty());
  CHECK_THAT(failure(place + "cp.async.ca.shared.global [%r5], [%rd0], 4, 8;"),
             Contains("reads more than it writes"));
  CHECK_THAT(failure(place + "cp.async.cg.shared.global [%r5], [%rd0], 8, 8;"),
             Contains("a copy of 8 bytes"));
  CHECK_THAT(failure(place + "cp.async.ca.shared.global [%r5], [%rd0], 8, 8;"),
             Contains("not aligned to 8"));
  CHECK_THAT(failure(place + "cp.async.ca.shared.global [%r5], [%rd0+8], 4, 4;"),
             Contains("in no allocation"));
  CHECK(failure(place + "cp.async.ca.shared.global [%r5], [%rd0+8], 4, 0;")
            .empty());  // reads nothing there
}

TEST_CASE("ptx: copies land in the order of their groups, absent bytes as zeros") {
  std::string const body =
      "mul.lo.u32 %r5, %r0, 16;\nmov.u32 %r4, fixed;\nadd.u32 %r5, %r4, %r5;\n"
      "cp.async.ca.shared.global [%r5], [%rd0], 8, 4;\ncp.async.commit_group;\n"
      "cp.async.ca.shared.global [%r5+8], [%rd0+8], 8, 8;\ncp.async.commit_group;\n"
      "cp.async.wait_group 1;\nld.shared.b64 %rd5, [%r5];\ncp.async.wait_group 0;\nld.shared.b64 "
      "%rd6, [%r5+8];\n"
      "add.u64 %rd5, %rd5, %rd6;\nst.global.b64 [%rd2], %rd5;";
  CHECK(executor::results(body, {}, {0x700000003, 0x500000000})[3] == 0x500000003);
}

TEST_CASE("ptx: accesses outside of an allocation, or not aligned") {
  std::vector<std::uint64_t> const two{1, 2};
  auto const load = [&](std::string const& what) {
    return failure("mov.u64 %rd5, stack;\nmov.u32 %r5, fixed;\n" + what, {.threads = 1}, two);
  };
  CHECK(load("ld.global.b64 %rd6, [%rd0+8];").empty());
  CHECK_THAT(load("ld.global.b64 %rd6, [%rd0+16];"), Contains("in no allocation"));
  CHECK_THAT(load("ld.global.u8 %h1, [%rd0+16];"),
             Contains("in no allocation"));  // one byte behind
  CHECK_THAT(load("ld.global.u8 %h1, [%rd0+-1];"), Contains("in no allocation"));
  CHECK_THAT(load("ld.global.v2.b64 {%rd6, %rd7}, [%rd0+8];"), Contains("not aligned to 16"));
  CHECK_THAT(load("ld.global.b32 %r6, [%rd0+2];"), Contains("not aligned to 4"));
  CHECK_THAT(load("st.global.b64 [%rd1+8], %rd1;"),
             Contains("in no allocation"));  // `out` has room for one thread
  CHECK_THAT(load("mov.u64 %rd6, 0;\nld.global.b32 %r6, [%rd6];"), Contains("in no allocation"));
  CHECK_THAT(load("mov.u64 %rd6, -8;\nld.global.b64 %rd7, [%rd6];"),
             Contains("in no allocation"));  // its end wraps around
  CHECK(load("st.shared.b32 [%r5+1020], 1;").empty());
  CHECK_THAT(load("st.shared.b32 [%r5+1024], 1;"), Contains("shared bytes 1024 to 1028 of 1024"));
  CHECK_THAT(load("ld.shared.b32 %r6, [%r5+1024];"), Contains("shared bytes"));
  CHECK_THAT(load("ld.shared.b32 %r6, [%r5+2];"), Contains("not aligned"));
  CHECK_THAT(load("atom.acq_rel.gpu.global.add.u32 %r6, [%rd0+16], %r0;"),
             Contains("in no allocation"));
  CHECK_THAT(load("atom.acq_rel.gpu.global.add.u32 %r6, [%rd0+2], %r0;"),
             Contains("not aligned to 4"));
  CHECK(load("st.local.b64 [%rd5+8], %rd0;\nld.local.b64 %rd6, [stack+8];\nst.global.b64 [%rd2], "
             "%rd6;")
            .empty());
  CHECK_THAT(load("st.local.b64 [%rd5+16], %rd0;"), Contains("local bytes from 16 of 16"));
  CHECK_THAT(load("ld.local.b64 %rd6, [%rd5+-8];"), Contains("local bytes"));
  CHECK_THAT(load("ld.local.b32 %r6, [%rd5+2];"), Contains("not aligned"));
  CHECK(load("ld.param.b32 %r6, [out+4];").empty());
  CHECK_THAT(load("ld.param.b64 %rd6, [out+8];"), Contains("a parameter's bytes from 16"));
  CHECK_THAT(load("ld.param.b64 %rd6, [in+4];"), Contains("not aligned"));
}

TEST_CASE("ptx: what was freed is in no allocation") {
  machine m;
  void* const gone = m.memory.allocate(64);
  std::memcpy(m.in, &gone, sizeof gone);
  std::string const text = text_of("ld.global.b64 %rd5, [%rd0];\nld.global.b32 %r6, [%rd5+60];");
  CHECK_NOTHROW(m.run(text));
  CHECK(m.memory.release(gone));
  CHECK_FALSE(m.memory.release(gone));
  CHECK_THROWS_WITH(m.run(text), Contains("in no allocation"));
}

TEST_CASE("ptx: generic addresses are of the space that they were made from") {
  std::string const shared = "mov.u64 %rd5, fixed;\ncvta.shared.u64 %rd6, %rd5;\n",
                    local = "mov.u64 %rd5, stack;\ncvta.local.u64 %rd6, %rd5;\n";
  CHECK(
      executor::results(
          shared + "st.b32 [%rd6+4], 9;\nld.shared.b32 %r5, [fixed+4];\nst.global.b32 [%rd2], %r5;",
          {.threads = 1})[0]
          << 32 ==
      std::uint64_t(9) << 32);
  CHECK(executor::results(
            local + "st.b64 [%rd6+8], %rd2;\nld.local.b64 %rd7, [stack+8];\nsub.u64 %rd7, %rd7, "
                    "%rd1;\nst.global.b64 [%rd2], %rd7;")[5] == 40);
  CHECK_THAT(failure(shared + "ld.global.b32 %r5, [%rd6];"), Contains("in no allocation"));
  CHECK_THAT(failure("cvta.to.shared.u64 %rd5, %rd0;"), Contains("is not in that space"));
  CHECK_THAT(failure(shared + "ld.b32 %r5, [%rd6+1024];"), Contains("shared bytes"));
}

TEST_CASE("ptx: memory of a launch lies behind that of the kernel") {
  std::string const body =
      ".shared .align 1 .b8 one[1];\n"
      "mov.u32 %r5, dynamic;\nshl.b32 %r6, %r0, 2;\nadd.u32 %r5, %r5, %r6;\nst.shared.b32 [%r5], "
      "%r0;\n"
      "mov.u32 %r7, fixed;\nadd.u32 %r7, %r7, %r6;\nst.shared.b32 [%r7], 100;\nld.shared.b32 %r8, "
      "[%r5];\ncvt.u64.u32 "
      "%rd5, %r8;\nst.global.b64 [%rd2], %rd5;";
  CHECK(executor::results(body, {.shared = 128})[7] == 7);
  CHECK_THAT(failure(body, {.shared = 124}), Contains("shared bytes"));
}

TEST_CASE("ptx: barriers and what a warp does together need all lanes") {
  CHECK_THAT(failure(who + "@%p3 bar.sync 0;"), Contains("a barrier by some lanes of a warp only"));
  CHECK_THAT(failure("bar.sync 1;"), Contains("another barrier than 0"));
  CHECK(failure(who + "@%p3 ret;\nbar.sync 0;").empty());  // those that left are not waited for
  CHECK_THAT(failure(who + "@%p3 bar.warp.sync -1;"),
             Contains("names others than those that are here"));
  CHECK(failure(who + "@%p3 bar.warp.sync 0xffff0000;").empty());
  CHECK_THAT(failure(who + "@%p3 shfl.sync.bfly.b32 %r5, %r0, 1, 31, -1;"),
             Contains("names others"));
  CHECK_THAT(failure(who + "shfl.sync.bfly.b32 %r5, %r0, 1, 31, 0xffff;"),
             Contains("names others"));
  CHECK_THAT(failure(who + "@%p3 shfl.sync.bfly.b32 %r5, %r0, 16, 31, 0xffff0000;"),
             Contains("reads a lane that is not here"));
  CHECK_THAT(failure(who + "@%p3 match.any.sync.b32 %r5, %r0, -1;"), Contains("names others"));
  CHECK_THAT(failure(who + "@%p3 vote.sync.ballot.b32 %r5, %p1, -1;"), Contains("names others"));
  std::string const matrix =
      "mov.u32 %r5, fixed;\n@%p3 ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r6}, [%r5];";
  CHECK_THAT(failure(who + matrix), Contains("ldmatrix by some lanes"));
  std::string const mma =
      "mov.b32 %r5, 0;\n@%p3 mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%r6, %r7, %r8, "
      "%r9}, {%r5, %r5, %r5, "
      "%r5}, {%r5, %r5}, {%r5, %r5, %r5, %r5};";
  CHECK_THAT(failure(who + mma), Contains("mma needs a whole warp"));
  CHECK_THAT(failure(mma.substr(0, mma.find('@')) + mma.substr(mma.find("mma")), {.threads = 16}),
             Contains("mma needs a whole warp"));
}

TEST_CASE("ptx: warps of a block wait at one barrier") {
  std::string const second = "setp.gt.u32 %p1, %r0, 31;\n";  // warp of two
  CHECK(failure(second + "@%p1 bra there;\nthere:\nbar.sync 0;", {.threads = 64}).empty());
  CHECK_THAT(
      failure(second + "@%p1 bra there;\nbar.sync 0;\nret;\nthere:\nbar.sync 0;", {.threads = 64}),
      Contains("wait at different barriers, of lines"));
  CHECK_THAT(failure(second + "@%p1 bra there;\nbar.sync 0;\nthere:", {.threads = 64}),
             Contains("wait at a barrier, and others have ended"));
}

TEST_CASE("ptx: launches") {
  machine m;
  CHECK_THROWS_WITH(m.run(text_of("", ".maxntid 16, 2, 1\n"), {.threads = 64}),
                    Contains("more threads than its .maxntid"));
  CHECK_NOTHROW(m.run(text_of("", ".maxntid 32, 2, 1\n"), {.threads = 64}));
  CHECK_THAT(message_of(".visible .entry k(.param .u64 in, .param .u64 out)\n{\n.reg .b32 "
                        "%r<2>;\nmov.b32 %r0, 1;\n}\n"),
             Contains("its end is reached without ret"));
  CHECK_THAT(failure("ld.global.b32 %r5, [%rd7];"),
             Contains("line 18: ld.global.b32 %r5, [%rd7]") && Contains("in block 0, warp 0 of k"));
}

TEST_CASE("ptx: a kernel that is launched early waits for those before it") {
  executor::setting const early{.threads = 64, .blocks = 2, .is_early = true};
  std::string const wait = "griddepcontrol.wait;\n", let = "griddepcontrol.launch_dependents;\n",
                    store = "st.global.b32 [%rd2], %r0;\n", load = "ld.global.b32 %r6, [%rd0];\n";
  CHECK(failure(wait + let + load + store, early).empty());
  CHECK(failure(let + wait + load + store, early).empty());
  CHECK(failure("add.u32 %r6, %r0, 1;\n" + wait + store, early).empty());
  CHECK(failure(load + store).empty());  // launched as usual
  CHECK(failure(wait + store).empty());
  for (std::string const& access : {load, store, std::string("ld.b32 %r6, [%rd0];\n")})
    CHECK_THAT(failure(access + wait + store, early),
               Contains("global memory is accessed before griddepcontrol.wait"));
  CHECK_THAT(failure(let, early), Contains("ends without griddepcontrol.wait"));
  // The second warp, and the second half of a warp, on a path of their own.
  CHECK_THAT(failure(who + "@!%p2 bra over;\n" + wait + "over:\n", early),
             Contains("ends without griddepcontrol.wait"));
  CHECK_THAT(failure(who + "@%p3 bra over;\n" + wait + "over:\n", early),
             Contains("griddepcontrol.wait by some lanes of a warp only"));
}
