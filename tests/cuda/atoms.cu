// SPDX-License-Identifier: BSL-1.0
//
// Every instruction that backend/cuda wraps, alone: a warp on the device against the wrapper's twin
// on the CPU, lane by lane and bit by bit. Kernel bodies are tested on the CPU through the twins,
// so what holds there holds on a GPU if this does. Without a GPU nvcc's PTX is executed.
#include "catch.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <pipe/backend/cuda/attention/geometry.hpp>
#include <pipe/backend/cuda/core/cp_async.hpp>
#include "cuda/host_block.hpp"
#include <pipe/backend/cuda/core/launch.cuh>
#include <pipe/backend/cuda/matmul/load_matrix.hpp>
#include <pipe/backend/cuda/rows/losses.hpp>
#include <pipe/backend/cuda/matmul/matrix.hpp>
#include <pipe/backend/cuda/rows/radix_sort_rows.hpp>
#include <pipe/backend/cuda/matmul/tile_products.hpp>
#include <pipe/backend/cuda/core/vectors.hpp>
#include <pipe/backend/cuda/core/warp.hpp>
#include <pipe/nn/activation.hpp>

#include "cuda/tensor_core.hpp"
#include "ptx/numbers.hpp"

namespace {

using namespace pp;
using namespace pp::cuda;
using words = std::vector<unsigned>;

float as_float(unsigned bits) { return math::from_bits(bits); }
PIPE_HD bool is_nan(unsigned bits) { return (bits & 0x7fffffffu) > 0x7f800000u; }

// ---- one warp: each block reads In words for each lane, and writes Out ----

struct atom_arguments {
  unsigned const* in;
  unsigned* out;
  extent cases;
};

template <int In, int Out>
struct atom {
  static constexpr int threads = warp_size, in_words = In, out_words = Out;
  using arguments = atom_arguments;
  using shared = nothing;
  static extent blocks(arguments const& a) { return a.cases; }
  /// Word i of a thread of a block.
  PIPE_HD static unsigned const& in(arguments const& a, extent block, int thread, int i = 0) {
    return a.in[(block * threads + thread) * In + i];
  }
  PIPE_HD static unsigned& out(arguments const& a, extent block, int thread, int i = 0) {
    return a.out[(block * threads + thread) * Out + i];
  }
};

class device_words {
 public:
  explicit device_words(words const& of) : bytes_(of.size() * sizeof(unsigned)) {
    void* p = nullptr;
    check(cudaMalloc(&p, bytes_), "memory");
    at_ = static_cast<unsigned*>(p);
    check(cudaMemcpy(at_, of.data(), bytes_, cudaMemcpyHostToDevice), "copy to the device");
  }
  device_words(device_words const&) = delete;
  device_words& operator=(device_words const&) = delete;
  ~device_words() { cudaFree(at_); }
  unsigned* at() const { return at_; }
  words read() const {
    words all(bytes_ / sizeof(unsigned));
    check(cudaMemcpy(all.data(), at_, bytes_, cudaMemcpyDeviceToHost), "copy from the device");
    return all;
  }

 private:
  unsigned* at_ = nullptr;
  std::size_t bytes_;
};

struct results {
  words twin, device;
};

/// What nobody writes stays this, on one side, and its inverse on the other.
constexpr unsigned unwritten = 0x5a5aa5a5;

template <class Body>
results run(words in) {
  extent const cases = extent(in.size()) / (warp_size * Body::in_words);
  REQUIRE(in.size() == std::size_t(cases * warp_size * Body::in_words));
  std::size_t const outs = std::size_t(cases * warp_size * Body::out_words);
  results r{words(outs, unwritten), {}};
#ifndef __CUDA_ARCH__  // where device code is compiled, wrappers have no twins
  run_on_host<Body>(atom_arguments{in.data(), r.twin.data(), cases});
#endif
  device_words const from(in), to(words(outs, ~unwritten));
  launch_body<Body>(atom_arguments{from.at(), to.at(), cases}, nullptr);
  check(cudaDeviceSynchronize(), "run of an atom");
  r.device = to.read();
  return r;
}

/// The first words of each lane that `same(expected, found)` denies, by name.
template <class Body, class Same>
void compare(char const* name, char const* of, words const& expected, words const& found,
             Same same) {
  REQUIRE(expected.size() == found.size());
  int shown = 0;
  for (std::size_t i = 0; i < found.size() && shown < 8; ++i) {
    if (same(expected[i], found[i])) continue;
    ++shown;
    std::size_t const word = i % Body::out_words, lane = i / Body::out_words % warp_size,
                      number = i / Body::out_words / warp_size;
    char text[200];
    std::snprintf(text, sizeof text,
                  "%s, case %zu, lane %zu, word %zu: expected 0x%08x (%s), found 0x%08x", name,
                  number, lane, word, expected[i], of, found[i]);
    UNSCOPED_INFO(text);
    CHECK(expected[i] == found[i]);
  }
  CHECK(shown == 0);
}
bool equal(unsigned a, unsigned b) { return a == b; }
/// As floats; NaN is NaN, whatever its other bits are.
bool equal_floats(unsigned a, unsigned b) { return a == b || (is_nan(a) && is_nan(b)); }
template <class Body, class Same>
void agrees(char const* name, words in, Same same) {
  results const r = run<Body>(std::move(in));
  compare<Body>(name, "twin", r.twin, r.device, same);
}

// ---- operands ----

std::mt19937& random_bits() {
  static std::mt19937 bits{20};
  return bits;
}
constexpr unsigned edges[] = {
    0,          0x80000000, 1,          0x80000001, 0x007fffff, 0x00800000, 0x80800000, 0x7f7fffff,
    0xff7fffff, 0x7f800000, 0xff800000, 0x7fc00000, 0xffc00001, 0x3f800000, 0xbf800000, 0x33800000,
    0x387fc000, 0x38800000, 0x477fefff, 0x477ff000, 0x7f7f7fff, 0x7f7f8000, 0x3f808000, 0x3f818000};
/// Floats: all kinds of edges, then any bits.
words floats_at_edges(std::size_t n) {
  words all(n);
  for (std::size_t i = 0; i < n; ++i)
    all[i] = i < 2 * std::size(edges) ? edges[i % std::size(edges)] : random_bits()();
  return all;
}
/// Floats of ordinary size.
words ordinary_floats(std::size_t n) {
  words all(n);
  for (unsigned& w : all) w = (random_bits()() & 0x807fffffu) | (120 + random_bits()() % 14) << 23;
  return all;
}
words small_numbers(std::size_t n, unsigned below) {
  words all(n);
  for (unsigned& w : all) w = random_bits()() % below;
  return all;
}

// ---- mma ----

template <operand_format F>
struct mma_atom : atom<10, 4> {
  struct state {
    unsigned a[4], b[2];
    float c[4];
  };
  template <class Block>
  PIPE_HD static void run(Block& block, arguments const& args) {
    block.part([&](int thread, state& mine) {
      for (int i = 0; i < 4; ++i) mine.a[i] = in(args, block.position(), thread, i);
      for (int i = 0; i < 2; ++i) mine.b[i] = in(args, block.position(), thread, 4 + i);
      for (int i = 0; i < 4; ++i)
        mine.c[i] = math::from_bits(in(args, block.position(), thread, 6 + i));
    });
    multiply_add<F>(block, [](state& s) { return tile_operands{s.c, s.a, s.b}; });
    block.part([&](int thread, state& mine) {
      for (int i = 0; i < 4; ++i) out(args, block.position(), thread, i) = math::bits(mine.c[i]);
    });
  }
};

template <operand_format F>
constexpr int bytes_of = F == operand_format::tf32 ? 4 : 2;
template <operand_format F>
constexpr int least_exponent = F == operand_format::fp16 ? -14 : -126;

/// Registers of operands from the bits of an element, and of sums from those of a float.
template <operand_format F, class Element, class Sum>
words mma_operands(int cases, Element element, Sum sum) {
  words all;
  for (int i = 0; i < cases * warp_size; ++i) {
    for (int k = 0; k < 6; ++k) {
      unsigned const low = element();
      all.push_back(F == operand_format::tf32 ? low : low | element() << 16);
    }
    for (int k = 0; k < 4; ++k) all.push_back(sum());
  }
  return all;
}
/// x as an element of F.
template <operand_format F>
unsigned element_of(float x) {
  if (F == operand_format::tf32) return to_tf32(x);
  return F == operand_format::bf16 ? bf16(x).bits : fp16(x).bits;
}

/// The matrices of a case, and what the model of this GPU says of an element of the result, and how
/// large its terms are together.
template <operand_format F>
struct matrices {
  static constexpr int depth = tile<F>::inner;
  float a[16][depth], b[8][depth], c[16][8];

  matrices(words const& in, std::size_t number) {
    for (int lane = 0; lane < warp_size; ++lane) {
      unsigned const* const w = &in[(number * warp_size + std::size_t(lane)) * 10];
      for (int half = 0; half < tile<F>::per_register; ++half) {
        for (int i = 0; i < 4; ++i) {
          tile_place const p = place_in_a<F>(lane, i, half);
          a[p.row][p.column] = value(w[i], half);
        }
        for (int i = 0; i < 2; ++i) {
          tile_place const p = place_in_b<F>(lane, i, half);
          b[p.column][p.row] = value(w[4 + i], half);
        }
      }
      for (int i = 0; i < 4; ++i) {
        tile_place const p = place_in_c(lane, i);
        c[p.row][p.column] = as_float(w[6 + i]);
      }
    }
  }
  static float value(unsigned bits, int half) {
    if (F == operand_format::tf32) return as_float(bits & 0xffffe000u);
    auto const h = std::uint16_t(bits >> 16 * half);
    return F == operand_format::bf16 ? ptx::float_of_bf16(h) : ptx::float_of_half(h);
  }
  float model(tensor_core::generation g, tile_place p) const {
    return tensor_core::element(g, c[p.row][p.column], a[p.row], b[p.column], depth, bytes_of<F>,
                                least_exponent<F>);
  }
  double exact(tile_place p) const {
    double sum = c[p.row][p.column];
    for (int k = 0; k < depth; ++k) sum += double(a[p.row][k]) * double(b[p.column][k]);
    return sum;
  }
  double size(tile_place p) const {
    double sum = std::fabs(double(c[p.row][p.column]));
    for (int k = 0; k < depth; ++k) sum += std::fabs(double(a[p.row][k]) * double(b[p.column][k]));
    return sum;
  }
};

template <operand_format F>
words modelled(words const& in) {
  cudaDeviceProp properties;
  check(cudaGetDeviceProperties(&properties, 0), "properties of the device");
  auto const g = tensor_core::generation_of(properties.major);
  words expected;
  for (std::size_t number = 0; number < in.size() / (10 * warp_size); ++number) {
    matrices<F> const m(in, number);
    for (int lane = 0; lane < warp_size; ++lane)
      for (int i = 0; i < 4; ++i) expected.push_back(math::bits(m.model(g, place_in_c(lane, i))));
  }
  return expected;
}

template <operand_format F>
void mma_agrees(char const* name) {
  auto const integer = [] { return element_of<F>(float(int(random_bits()() % 33) - 16)); };
  auto const any_sum = [] { return ordinary_floats(1)[0]; };
  // Integers whose sum no order rounds: the twin's bits.
  words in = mma_operands<F>(8, integer,
                             [] { return math::bits(float(int(random_bits()() % 4097) - 2048)); });
  results r = run<mma_atom<F>>(in);
  compare<mma_atom<F>>(name, "twin, exact sums", r.twin, r.device, equal);
  compare<mma_atom<F>>(name, "model, exact sums", modelled<F>(in), r.device, equal);

  // Numbers of some ten magnitudes: the model's bits, and the twin's up to what both round.
  in = mma_operands<F>(32, [] { return element_of<F>(as_float(ordinary_floats(1)[0])); }, any_sum);
  r = run<mma_atom<F>>(in);
  compare<mma_atom<F>>(name, "model", modelled<F>(in), r.device, equal);
  constexpr double unit =
      (tile<F>::inner + 2) *
      0x1p-23;  // of the terms' sizes: each may lose 2^-24 of the largest, and the sums as much
  int far = 0;
  for (std::size_t number = 0; number < 32; ++number) {
    matrices<F> const m(in, number);
    for (int lane = 0; lane < warp_size; ++lane)
      for (int i = 0; i < 4; ++i) {
        tile_place const p = place_in_c(lane, i);
        std::size_t const at = (number * warp_size + std::size_t(lane)) * 4 + std::size_t(i);
        double const bound = unit * m.size(p);
        far += std::fabs(double(as_float(r.device[at])) - m.exact(p)) > bound;
        far += std::fabs(double(as_float(r.twin[at])) - m.exact(p)) > bound;
      }
  }
  CHECK(far == 0);

  // Elements and sums with any bits: NaN, infinities, subnormals. Few of the sums are finite, so
  // half of the cases have small elements.
  in = mma_operands<F>(
      8, [] { return F == operand_format::tf32 ? random_bits()() : random_bits()() & 0xffff; },
      [] { return floats_at_edges(1 + random_bits()() % 60).back(); });
  words const subnormal = mma_operands<F>(
      8,
      [] {
        return F == operand_format::tf32 ? random_bits()() & 0x80ffffffu
                                         : random_bits()() & 0x83ffu;
      },
      [] { return random_bits()() % 2 == 0 ? edges[random_bits()() % 7] : ordinary_floats(1)[0]; });
  in.insert(in.end(), subnormal.begin(), subnormal.end());
  r = run<mma_atom<F>>(in);
  compare<mma_atom<F>>(
      name, "model, edges", modelled<F>(in), r.device, [](unsigned expected, unsigned found) {
        return equal_floats(expected, found) ||
               ((expected | found) & 0x7fffffffu) == 0;  // of a zero no source says the sign
      });
}

}  // namespace

TEST_CASE("atoms: mma of tf32", "[gpu]") { mma_agrees<operand_format::tf32>("mma.m16n8k8 tf32"); }
TEST_CASE("atoms: mma of bf16", "[gpu]") { mma_agrees<operand_format::bf16>("mma.m16n8k16 bf16"); }
TEST_CASE("atoms: mma of fp16", "[gpu]") { mma_agrees<operand_format::fp16>("mma.m16n8k16 fp16"); }

// ---- ldmatrix ----

namespace {

/// Word 4: where the lane's row of 16 bytes is, of 64.
template <bool Transposed>
struct ldmatrix_atom : atom<5, 4> {
  struct alignas(16) row {
    unsigned of[4];
  };
  struct shared {
    row rows[64];
    unsigned place[threads];
  };
  struct state {
    unsigned of[4];
  };
  template <class Block>
  PIPE_HD static void run(Block& block, arguments const& args) {
    block.phase([&](int thread, state&) {
      unsigned const place = in(args, block.position(), thread, 4);
      for (int i = 0; i < 4; ++i)
        block.shared().rows[place].of[i] = in(args, block.position(), thread, i);
      block.shared().place[thread] = place;
    });
    auto& s = block.shared();
    load_matrices<Transposed>(
        block, [&](int thread) { return &s.rows[s.place[thread]]; },
        [](state& mine) { return mine.of; });
    block.part([&](int thread, state& mine) {
      for (int i = 0; i < 4; ++i) out(args, block.position(), thread, i) = mine.of[i];
    });
  }
};

template <bool Transposed>
void ldmatrix_agrees(char const* name) {
  words in;
  for (unsigned number = 0; number < 8; ++number)
    for (unsigned lane = 0; lane < warp_size; ++lane) {
      for (int i = 0; i < 4; ++i) in.push_back(random_bits()());
      in.push_back((lane * (2 * number + 1) + 5 * number) % 32 * 2 + number % 2);  // all different
    }
  agrees<ldmatrix_atom<Transposed>>(name, in, equal);
}

}  // namespace

TEST_CASE("atoms: ldmatrix", "[gpu]") { ldmatrix_agrees<false>("ldmatrix.x4"); }
TEST_CASE("atoms: ldmatrix, transposed", "[gpu]") { ldmatrix_agrees<true>("ldmatrix.x4.trans"); }

// ---- cp.async ----

namespace {

/// Words 0 to 3 are copied in two groups, of which the second may be pending when the first is
/// read; word 4: whether they are there.
template <int Bytes>
struct copy_atom : atom<8, 8> {
  static constexpr int each = Bytes / 4;
  struct shared {
    alignas(16) unsigned first[threads][4], second[threads][4];
  };
  struct state {};
  template <class Block>
  PIPE_HD static void run(Block& block, arguments const& args) {
    auto& s = block.shared();
    block.phase([&](int thread, state&) {
      for (int i = 0; i < 4; ++i) s.first[thread][i] = s.second[thread][i] = 0xdeadbeef;
    });
    auto const start = [&](unsigned(*to)[4], int which) {
      block.part([&](int thread, state&) {
        bool const present = (in(args, block.position(), thread, 4) >> which & 1) != 0;
        unsigned const* const from = &in(args, block.position(), thread);
        prefetch(from);
        for (int i = 0; i < 4; i += each)
          copy_async<Bytes>(block, to[thread] + i, from + i, present);
      });
      commit_copies(block);
    };
    start(s.first, 0);
    start(s.second, 1);
    await_copies<1>(block);
    block.part([&](int thread, state&) {  // another lane's
      for (int i = 0; i < 4; ++i)
        out(args, block.position(), thread, i) = s.first[threads - 1 - thread][i];
    });
    await_copies<0>(block);
    block.part([&](int thread, state&) {
      for (int i = 0; i < 4; ++i)
        out(args, block.position(), thread, 4 + i) = s.second[threads - 1 - thread][i];
    });
  }
};

template <int Bytes>
void copies_agree(char const* name) {
  words in = small_numbers(4 * warp_size * 8, 0xffffffffu);
  results const r = run<copy_atom<Bytes>>(in);
  compare<copy_atom<Bytes>>(name, "twin", r.twin, r.device, equal);
  words expected(in.size());
  for (std::size_t i = 0; i < in.size() / 8; ++i) {
    std::size_t const other = (i / warp_size * warp_size + warp_size - 1 - i % warp_size) * 8;
    for (std::size_t k = 0; k < 8; ++k)
      expected[8 * i + k] = (in[other + 4] >> k / 4 & 1) != 0 ? in[other + k % 4] : 0;
  }
  compare<copy_atom<Bytes>>(name, "what was to be copied", expected, r.device, equal);
}

/// The same from nowhere: what is absent is not read.
template <int Bytes>
struct absent_atom : atom<1, 1> {
  struct shared {
    alignas(16) unsigned of[threads][4];
  };
  struct state {};
  template <class Block>
  PIPE_HD static void run(Block& block, arguments const& args) {
    auto& s = block.shared();
    block.phase([&](int thread, state&) { s.of[thread][0] = in(args, block.position(), thread); });
    block.part([&](int thread, state&) { copy_async<Bytes>(block, s.of[thread], nullptr, false); });
    commit_copies(block);
    await_copies<0>(block);
    block.part(
        [&](int thread, state&) { out(args, block.position(), thread) = s.of[thread ^ 1][0]; });
  }
};

}  // namespace

TEST_CASE("atoms: cp.async", "[gpu]") {
  copies_agree<4>("cp.async of 4 bytes");
  copies_agree<8>("cp.async of 8 bytes");
  copies_agree<16>("cp.async of 16 bytes");
}

// ---- exchanges within a warp ----

namespace {

template <class T>
PIPE_HD T from_words(unsigned low, unsigned high) {
  if constexpr (sizeof(T) == 8)
    return __builtin_bit_cast(T, std::uint64_t(high) << 32 | low);
  else
    return __builtin_bit_cast(T, low);
}
template <class T>
PIPE_HD unsigned word_of(T x, int i) {
  if constexpr (sizeof(T) == 8)
    return unsigned(__builtin_bit_cast(std::uint64_t, x) >> 32 * i);
  else
    return __builtin_bit_cast(unsigned, x);
}

/// One exchange for each mask of `lanes`; the first output: over which lanes the bits differ.
template <class T, class Op>
struct exchange_atom : atom<2, 16> {
  struct state {
    T x;
  };
  template <class Block>
  PIPE_HD static void run(Block& block, arguments const& args) {
    constexpr int masks[8] = {1, 2, 4, 8, 16, 3, 21, 31};
    for (int k = 0; k < 8; ++k) {
      block.part([&](int thread, state& mine) {
        mine.x = from_words<T>(in(args, block.position(), thread),
                               in(args, block.position(), thread, 1));
      });
      exchange(block, masks[k], [](state& s) -> T& { return s.x; }, Op{});
      block.part([&](int thread, state& mine) {
        for (int i = 0; i < 2; ++i)
          out(args, block.position(), thread, 2 * k + i) = word_of(mine.x, i);
      });
    }
  }
};
struct exclusive_or {
  PIPE_HD unsigned operator()(unsigned a, unsigned b) const { return a ^ b; }
};

template <class T, class Op>
struct reduce_atom : atom<2, 10> {
  struct state {
    T x;
  };
  template <int Width, class Block>
  PIPE_HD static void one(Block& block, arguments const& args, int k) {
    block.part([&](int thread, state& mine) {
      mine.x =
          from_words<T>(in(args, block.position(), thread), in(args, block.position(), thread, 1));
    });
    reduce_lanes<Width>(block, [](state& s) -> T& { return s.x; }, Op{});
    block.part([&](int thread, state& mine) {
      for (int i = 0; i < 2; ++i)
        out(args, block.position(), thread, 2 * k + i) = word_of(mine.x, i);
    });
  }
  template <class Block>
  PIPE_HD static void run(Block& block, arguments const& args) {
    one<2>(block, args, 0);
    one<4>(block, args, 1);
    one<8>(block, args, 2);
    one<16>(block, args, 3);
    one<32>(block, args, 4);
  }
};

struct match_atom : atom<1, 2> {
  struct state {
    int x;
    unsigned same;
  };
  template <class Block>
  PIPE_HD static void run(Block& block, arguments const& args) {
    block.part([&](int thread, state& mine) { mine.x = int(in(args, block.position(), thread)); });
    match_lanes(
        block, [](state& s) -> int& { return s.x; }, [](state& s) -> unsigned& { return s.same; });
    block.part([&](int thread, state& mine) {
      out(args, block.position(), thread) = mine.same;
      out(args, block.position(), thread, 1) = unsigned(count_bits(mine.same));
    });
  }
};

}  // namespace

TEST_CASE("atoms: shuffles", "[gpu]") {
  agrees<exchange_atom<unsigned, exclusive_or>>("shfl.xor of bits",
                                                small_numbers(8 * 64, 0xffffffffu), equal);
  agrees<exchange_atom<float, plus>>("shfl.xor, sum of floats", floats_at_edges(8 * 64),
                                     equal_floats);
  agrees<exchange_atom<float, larger>>("shfl.xor, maximum of floats", floats_at_edges(8 * 64),
                                       equal_floats);
  agrees<exchange_atom<double, plus>>("shfl.xor, sum of doubles", ordinary_floats(8 * 64), equal);
  agrees<reduce_atom<float, plus>>("butterfly, sum of floats", ordinary_floats(8 * 64), equal);
  agrees<reduce_atom<float, larger>>("butterfly, maximum of floats", ordinary_floats(8 * 64),
                                     equal);
  agrees<reduce_atom<double, plus>>("butterfly, sum of doubles", ordinary_floats(8 * 64), equal);
}

TEST_CASE("atoms: match.any", "[gpu]") {
  for (unsigned const below : {1u, 2u, 7u, 32u, 0xffffffffu})
    agrees<match_atom>("match.any", small_numbers(8 * warp_size, below), equal);
}

// ---- conversions ----

namespace {

/// Of a float: to tf32, and its two parts, to bf16, fp16, a pair of each.
struct rounding_atom : atom<1, 7> {
  struct state {};
  template <class Block>
  PIPE_HD static void run(Block& block, arguments const& args) {
    block.part([&](int thread, state&) {
      unsigned const bits = in(args, block.position(), thread);
      float const x = math::from_bits(bits), y = math::from_bits(bits ^ 0x80010000u);
      auto const say = [&](int i, unsigned what) { out(args, block.position(), thread, i) = what; };
      say(0, to_tf32(x));
      unsigned high, rest;
      split(x, high, rest);
      say(1, high);
      say(2, rest);
      say(3, bf16(x).bits);
      say(4, fp16(x).bits);
      say(5, pack<bf16>(x, y));
      say(6, pack<fp16>(x, y));
    });
  }
};

bool is_nan_of_bf16(unsigned h) { return (h & 0x7fff) > 0x7f80; }
bool is_nan_of_fp16(unsigned h) { return (h & 0x7fff) > 0x7c00; }
bool equal_halves(unsigned a, unsigned b, bool (*is_none)(unsigned)) {
  auto const one = [&](unsigned x, unsigned y) { return x == y || (is_none(x) && is_none(y)); };
  return one(a & 0xffff, b & 0xffff) && one(a >> 16, b >> 16);
}

/// A number of 16 bits: as bf16 and as fp16.
struct widening_atom : atom<1, 5> {
  struct state {};
  template <class Block>
  PIPE_HD static void run(Block& block, arguments const& args) {
    block.part([&](int thread, state&) {
      unsigned const bits = in(args, block.position(), thread);
      auto const say = [&](int i, float what) {
        out(args, block.position(), thread, i) = math::bits(what);
      };
      say(0, detail::float_from_bf16(std::uint16_t(bits)));
      say(1, detail::float_from_f16(std::uint16_t(bits)));
      say(2, operand_value<operand_format::bf16>(bits << 16, 1));
      say(3, operand_value<operand_format::fp16>(bits << 16, 1));
      say(4, operand_value<operand_format::tf32>(bits << 16 | 0x1fff, 0));
    });
  }
};

}  // namespace

TEST_CASE("atoms: roundings of all upper halves of a float", "[gpu]") {
  words in;
  for (unsigned const low :
       {0x0000u, 0x0fffu, 0x1000u, 0x1001u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu})
    for (unsigned high = 0; high < 0x10000; ++high) in.push_back(high << 16 | low);
  results const r = run<rounding_atom>(in);
  words model(r.device);
  int wrong = 0;  // of those that are compared with the twin as other than words
  for (std::size_t i = 0; i < in.size(); ++i) {
    unsigned const *const twin = &r.twin[7 * i], *const found = &r.device[7 * i];
    unsigned* const said = &model[7 * i];
    float const x = as_float(in[i]), y = as_float(in[i] ^ 0x80010000u);
    said[0] = ptx::tf32_of(x);
    said[3] = ptx::bf16_of(x), said[4] = ptx::half_of(x);
    said[5] = said[3] | unsigned(ptx::bf16_of(y)) << 16,
    said[6] = said[4] | unsigned(ptx::half_of(y)) << 16;
    wrong += (twin[0] & 0xffffe000u) != found[0];  // the twin leaves what tensor cores do not read
    wrong += twin[1] != found[1];
    wrong += !equal_floats(twin[2], found[2]);
    for (int k : {3, 5}) wrong += !equal_halves(twin[k], found[k], is_nan_of_bf16);
    for (int k : {4, 6}) wrong += !equal_halves(twin[k], found[k], is_nan_of_fp16);
    if (wrong == 1) {
      UNSCOPED_INFO("the first of 0x" << std::hex << in[i]);
      CHECK(words(twin, twin + 7) == words(found, found + 7));
      ++wrong;
    }
  }
  CHECK(wrong == 0);
  compare<rounding_atom>("roundings: tf32, split, split, bf16, fp16, bf16x2, fp16x2", "ISA", model,
                         r.device, equal);
}

TEST_CASE("atoms: all numbers of 16 bits as floats", "[gpu]") {
  words in;
  for (unsigned bits = 0; bits < 0x10000; ++bits) in.push_back(bits);
  agrees<widening_atom>("bf16, fp16, their operands, tf32 operand", in, equal_floats);
}

// ---- arithmetic ----

namespace {

/// What IEEE 754 says, with subnormals.
struct arithmetic_atom : atom<2, 7> {
  struct state {};
  template <class Block>
  PIPE_HD static void run(Block& block, arguments const& args) {
    block.part([&](int thread, state&) {
      float const x = math::from_bits(in(args, block.position(), thread)),
                  y = math::from_bits(in(args, block.position(), thread, 1));
      auto const say = [&](int i, float what) {
        out(args, block.position(), thread, i) = math::bits(what);
      };
      say(0, x + y);
      say(1, x - y);
      say(2, x * y);
      say(3, x / y);
      say(4, 1.0f / x);
      say(5, sqrtf(x));
      say(6, fmaf(x, y, x));
    });
  }
};
struct power_atom : atom<1, 1> {
  struct state {};
  template <class Block>
  PIPE_HD static void run(Block& block, arguments const& args) {
    block.part([&](int thread, state&) {
      out(args, block.position(), thread) =
          math::bits(power_of_2(math::from_bits(in(args, block.position(), thread))));
    });
  }
};

}  // namespace

TEST_CASE("atoms: division and roots are IEEE's", "[gpu]") {
  words in = floats_at_edges(64 * 64);
  for (unsigned const x : edges)
    for (unsigned const y : edges) in.push_back(x), in.push_back(y);
  in.resize(in.size() / 64 * 64);
  agrees<arithmetic_atom>("arithmetic: sum, difference, product, quotient, reciprocal, root, fma",
                          in, equal_floats);
}

TEST_CASE("atoms: ex2.approx", "[gpu]") {
  words in(std::begin(edges), std::end(edges));
  for (int n = -126; n < 128; ++n) in.push_back(math::bits(float(n)));
  for (float const x : {-126.5f, -127.0f, -150.0f, -1000.0f, 128.0f, 200.0f})
    in.push_back(math::bits(x));
  while (in.size() % (32 * warp_size) != 0)
    in.push_back(math::bits(std::ldexp(float(random_bits()()), -25) - 125.0f +
                            float(random_bits()() % 120)));
  results const r = run<power_atom>(in);
  compare<power_atom>("ex2.approx.ftz", "twin", r.twin, r.device,
                      [](unsigned expected, unsigned found) {
                        double const x = as_float(expected), y = as_float(found);
                        return equal_floats(expected, found) ||
                               std::fabs(x - y) <= 0x1p-22 * x;  // the bound of the ISA
                      });
}

// ---- functions ----

namespace {

/// What base/math.hpp makes of the GPU's own instructions.
struct function_atom : atom<1, 5> {
  struct state {};
  template <class Block>
  PIPE_HD static void run(Block& block, arguments const& args) {
    block.part([&](int thread, state&) {
      float const x = math::from_bits(in(args, block.position(), thread));
      auto const say = [&](int i, float what) {
        out(args, block.position(), thread, i) = math::bits(what);
      };
      say(0, math::exp(x));
      say(1, math::exp2(x));
      say(2, math::sigmoid(x));
      say(3, math::quotient(x, 1.0f + x * x));
      say(4, SiLU::forward(x));
    });
  }
};
struct gelu_atom : atom<1, 2> {
  struct state {};
  template <class Block>
  PIPE_HD static void run(Block& block, arguments const& args) {
    block.part([&](int thread, state&) {
      float const x = math::from_bits(in(args, block.position(), thread));
      out(args, block.position(), thread, 0) = math::bits(GELUTanh::forward(x));
      out(args, block.position(), thread, 1) = math::bits(GELUTanh::derivative(x));
    });
  }
};

/// The largest of error / bound(x) over all lanes, and the x of it.
struct worst_error {
  double share = 0;
  float x = 0;
};
template <class Body, class Exact, class Bound>
worst_error worst_of(words const& in, results const& r, int word, Exact exact, Bound bound) {
  worst_error worst;
  for (std::size_t i = 0; i < in.size(); ++i) {
    double const x = as_float(in[i]), found = as_float(r.device[i * Body::out_words + word]);
    double const share = std::fabs(found - exact(x)) / bound(x);
    if (!(share <= worst.share)) worst = {share, float(x)};
  }
  return worst;
}
/// Floats in [least, most], their ends first.
words floats_between(float least, float most) {
  words all{math::bits(least), math::bits(most), math::bits(0.0f)};
  while (all.size() < 64 * warp_size)
    all.push_back(math::bits(least + (most - least) * float(random_bits()() >> 8) * 0x1p-24f));
  return all;
}

}  // namespace

TEST_CASE("functions of the device are within their stated bounds", "[gpu]") {
  auto const sigmoid = [](double x) { return 1 / (1 + std::exp(-x)); };
  auto const check_all = [&](words const& in) {
    results const r = run<function_atom>(in);
    auto const worst = [&](int word, auto exact, auto units) {
      worst_error const w = worst_of<function_atom>(
          in, r, word, exact, [&](double x) { return units(x) * 0x1p-23 * std::fabs(exact(x)); });
      INFO("function " << word << " at " << w.x);
      CHECK(w.share <= 1);
    };
    worst(0, [](double x) { return std::exp(x); }, [](double x) { return 2 + std::fabs(x); });
    worst(1, [](double x) { return std::exp2(x); }, [](double) { return 2.0; });
    worst(2, sigmoid, [](double x) { return 5 + std::fabs(x); });
  };
  check_all(floats_between(-87, 87));
  check_all(floats_between(-1, 1));
  words const in = floats_between(-20, 20);
  results const r = run<function_atom>(in);
  CHECK(worst_of<function_atom>(
            in, r, 3, [](double x) { return x / (1 + x * x); },
            [](double x) { return 0x1p-21 * std::fabs(x) / (1 + x * x) + 0x1p-140; })
            .share <= 1);
  CHECK(worst_of<function_atom>(
            in, r, 4, [&](double x) { return x * sigmoid(x); },
            [&](double x) {
              return (6 + std::fabs(x)) * 0x1p-23 * std::fabs(x * sigmoid(x)) + 0x1p-140;
            })
            .share <= 1);
}

TEST_CASE("functions of the device: GELUTanh and its derivative", "[gpu]") {
  auto const phi = [](double x) {
    return 1 / (1 + std::exp(-1.5957691216057308 * (x + 0.044715 * x * x * x)));
  };
  words const in = floats_between(-10, 10);
  results const r = run<gelu_atom>(in);
  worst_error const forward = worst_of<gelu_atom>(
      in, r, 0, [&](double x) { return x * phi(x); },
      [](double x) { return 0x1p-20 * std::max(std::fabs(x), 1e-30); });
  INFO("forward at " << forward.x);
  CHECK(forward.share <= 1);
  worst_error const slope = worst_of<gelu_atom>(
      in, r, 1,
      [&](double x) {
        return phi(x) * (1 + (1 - phi(x)) * x * 1.5957691216057308 * (1 + 3 * 0.044715 * x * x));
      },
      [](double) { return 0x1p-18; });
  INFO("derivative at " << slope.x);
  CHECK(slope.share <= 1);
}

TEST_CASE("functions of the device keep infinity and what is not a number", "[gpu]") {
  words in(warp_size, 0x7fc00000u);
  in[0] = math::bits(std::numeric_limits<float>::infinity()), in[1] = in[0] | 0x80000000u;
  results const r = run<function_atom>(in);
  auto const at = [&](int lane, int word) {
    return as_float(r.device[std::size_t(lane * function_atom::out_words + word)]);
  };
  CHECK(at(0, 0) == std::numeric_limits<float>::infinity());
  CHECK(at(1, 0) == 0);
  CHECK(at(0, 2) == 1);
  CHECK(at(1, 2) == 0);
  for (int word = 0; word < function_atom::out_words; ++word) CHECK(std::isnan(at(2, word)));
}

// ---- accesses of several elements ----

namespace {

/// Eight floats, as T in memory, read and written Count at a time, through shared memory.
template <class T, int Count>
struct access_atom : atom<8, 16> {
  struct shared {
    alignas(16) T of[threads][8];
  };
  struct state {
    float x[8];
  };
  template <class Block>
  PIPE_HD static void run(Block& block, arguments const& args) {
    auto& s = block.shared();
    block.phase([&](int thread, state& mine) {
      for (int i = 0; i < 8; i += Count) {
        float x[Count];
        load<Count>(reinterpret_cast<float const*>(&in(args, block.position(), thread)) + i, x);
        save<Count, memory_space::shared>(s.of[thread] + i, x);
        for (int k = 0; k < Count; ++k) mine.x[i + k] = as_stored<T>(x[k]);
      }
    });
    block.part([&](int thread, state& mine) {
      for (int i = 0; i < 8; i += Count) {
        float x[Count];
        load<Count>(s.of[thread ^ 1] + i, x);
        save<Count>(reinterpret_cast<float*>(&out(args, block.position(), thread)) + i, x);
      }
      forget(mine.x);
      for (int i = 0; i < 8; ++i)
        out(args, block.position(), thread, 8 + i) = math::bits(mine.x[i]);
    });
  }
};

template <class T>
void accesses_agree(char const* name) {
  words const in = floats_at_edges(2 * warp_size * 8);
  agrees<access_atom<T, 1>>((std::string(name) + ", 1 at once").c_str(), in, equal_floats);
  agrees<access_atom<T, 2>>((std::string(name) + ", 2 at once").c_str(), in, equal_floats);
  agrees<access_atom<T, 4>>((std::string(name) + ", 4 at once").c_str(), in, equal_floats);
  agrees<access_atom<T, 8>>((std::string(name) + ", 8 at once").c_str(), in, equal_floats);
}

}  // namespace

TEST_CASE("atoms: loads and stores", "[gpu]") {
  accesses_agree<float>("fp32 in memory");
  accesses_agree<bf16>("bf16 in memory");
  accesses_agree<fp16>("fp16 in memory");
}

// The last one: if the hardware read from nowhere, what comes after it could not run.
TEST_CASE("atoms: cp.async does not read what is absent", "[gpu]") {
  agrees<absent_atom<4>>("cp.async of 4 absent bytes", small_numbers(warp_size, 100), equal);
  agrees<absent_atom<8>>("cp.async of 8 absent bytes", small_numbers(warp_size, 100), equal);
  agrees<absent_atom<16>>("cp.async of 16 absent bytes", small_numbers(warp_size, 100), equal);
}
