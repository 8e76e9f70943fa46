// SPDX-License-Identifier: BSL-1.0
//
// Runs kernels that a test writes as text.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include "ptx/warp.hpp"

namespace executor {

/// A kernel `k` of a body. Its registers are %p0 .. %p9, %h, %r, %rd for 1, 16, 32 and 64 bits;
/// when the body begins, %r0 is the thread, %rd0 and %rd1 are the parameters `in` and `out`, and
/// %rd2 is `out` + 8 * the thread.
inline std::string text_of(std::string const& body, std::string const& directives = "") {
  return ".version 9.0\n.target sm_90a\n.address_size 64\n.extern .shared .align 16 .b8 "
         "dynamic[];\n"
         ".visible .entry k(.param .u64 in, .param .u64 out)\n" +
         directives +
         "{\n.reg .pred %p<10>;\n.reg .b16 %h<20>;\n.reg .b32 %r<40>;\n.reg .b64 %rd<20>;\n"
         ".local .align 8 .b8 stack[16];\n.shared .align 16 .b8 fixed[1024];\n"
         "mov.u32 %r0, %tid.x;\nld.param.u64 %rd0, [in];\nld.param.u64 %rd1, [out];\nmul.wide.u32 "
         "%rd2, %r0, 8;\n"
         "add.s64 %rd2, %rd1, %rd2;\n" +
         body + "\nret;\n}\n";
}

struct setting {
  unsigned threads = 32;
  int order = 0;
  std::size_t shared = 0;  ///< of the launch
  unsigned blocks = 1;
  bool is_early = false;  ///< launched before the kernels in front of it have ended
};

/// Memory for `in`, filled with what is given, and for `out`: a word of 64 bits for each thread,
/// first ~0.
class machine {
 public:
  ptx::global_memory memory;
  std::uint64_t *in, *out;
  std::size_t outs;

  explicit machine(std::vector<std::uint64_t> const& given = {1}, std::size_t results = 1024)
      : in(static_cast<std::uint64_t*>(memory.allocate(given.size() * 8))),
        out(static_cast<std::uint64_t*>(memory.allocate(results * 8))), outs(results) {
    std::memcpy(in, given.data(), given.size() * 8);
  }
  ~machine() {
    memory.release(in);
    memory.release(out);
  }
  void run(std::string const& text, setting s = {}) {
    auto const kernels = ptx::read(text.c_str());
    std::uint64_t const parameters[2] = {reinterpret_cast<std::uint64_t>(in),
                                         reinterpret_cast<std::uint64_t>(out)};
    ptx::launch(kernels.at("k"), memory, {s.blocks, 1, 1}, {s.threads, 1, 1}, s.shared,
                reinterpret_cast<unsigned char const*>(parameters), s.order, {}, s.is_early);
  }
};

/// What each thread left in `out`, of a body that stores to [%rd2].
inline std::vector<std::uint64_t> results(std::string const& body, setting s = {},
                                          std::vector<std::uint64_t> const& in = {1}) {
  machine m(in, s.threads);
  m.run(text_of(body), s);
  return {m.out, m.out + s.threads};
}

/// The message of the error that ends a body, or nothing.
inline std::string failure(std::string const& body, setting s = {},
                           std::vector<std::uint64_t> const& in = {1}) {
  machine m(in, s.threads);
  try {
    m.run(text_of(body), s);
  } catch (ptx::error const& e) {
    return e.what();
  }
  return "";
}

template <class T>
std::uint64_t bits_of(T x) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, &x, sizeof x);
  return bits;
}

/// One instruction: opcode d, a, b, ... for operands of 2, 4 or 8 bytes, or bool for predicates.
template <class Result, class... A>
Result compute(std::string const& opcode, A... a) {
  std::string load, operands;
  int number = 0;
  auto const stem = [](std::size_t bytes) {
    return std::string(bytes == 2 ? "%h" : bytes == 4 ? "%r" : "%rd");
  };
  auto const one = [&]<class T>(T) {
    std::string const place = "[%rd0+" + std::to_string(8 * number) + "]",
                      index = std::to_string(10 + number);
    if constexpr (std::is_same_v<T, bool>) {
      std::string const p = "%p" + std::to_string(1 + number);
      load += "ld.global.u32 %r" + index + ", " + place + ";\nsetp.ne.u32 " + p + ", %r" + index +
              ", 0;\n";
      operands += ", " + p;
    } else {
      std::string const r = stem(sizeof(T)) + index;
      load += "ld.global.b" + std::to_string(8 * sizeof(T)) + " " + r + ", " + place + ";\n";
      operands += ", " + r;
    }
    ++number;
  };
  (one(a), ...);
  std::string store;
  std::string d = "%p0";
  if constexpr (std::is_same_v<Result, bool>) {
    store = "selp.b32 %r5, 1, 0, %p0;\nst.global.b32 [%rd2], %r5;\n";
  } else {
    d = stem(sizeof(Result)) + "5";
    store = "st.global.b" + std::to_string(8 * sizeof(Result)) + " [%rd2], " + d + ";\n";
  }
  std::uint64_t const found = results(load + opcode + " " + d + operands + ";\n" + store,
                                      {.threads = 1}, {bits_of(a)...})[0];
  Result r;
  std::memcpy(&r, &found, sizeof r);
  return r;
}

}  // namespace executor
