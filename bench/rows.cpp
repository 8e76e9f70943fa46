// SPDX-License-Identifier: BSL-1.0
//
// Bias, GELU, residual and norm as the library's kernels run them, against a copy of as many bytes.
// The layers are a stage of a pipeline, so their kernels are those that the planner makes of them:
//
//   forward   one kernel:     reads x and the residual; writes what GELU reads (x + bias), what
//                             the norm reads, and y
//   backward  input gradient: reads dy, what the norm read, what GELU read; writes the gradients
//                             of the residual and of x
//             two sums:       of the bias's gradient, which reads the gradient of x, and of those
//                             of the norm's scale and shift, which read dy and what the norm read
//
// Fewest bytes: every operand of a kernel once. (The sums are kernels of their own because a
// schedule may run them later.) A copy reads half of the bytes and writes as many: by memcpy, by a
// loop over vectors, or by such a loop whose stores go past the caches, as those of the library's
// kernels do for the largest size. The fastest counts.
//
// Argument: rounds (default 31).
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <numeric>
#include <utility>
#include <vector>

#include <pipe/pipe.hpp>

#include "peer/machine.hpp"
#include "peer/turns.hpp"

using namespace pp;
using namespace pp::detail;

namespace {

constexpr int width = 1024;

/// The second of three stages is Positions, GELUTanh, Pop and LayerNorm. With one position,
/// Positions is a bias.
struct Rows
    : Model<Input<1, width>, Linear<width, NoBias>, Stash<"residual">, Linear<width, NoBias>,
            Positions, GELUTanh, Pop<"residual">, LayerNorm, Linear<width, NoBias>, MSE> {};
constexpr int measured_stage = 1;

template <int Samples>
using compiled = compiled_pipeline<Rows, option_set<Stages<3>, Cut<2, 6>, MicroBatchSize<Samples>>>;

float* numbers_in(arena const& memory) { return reinterpret_cast<float*>(memory.data()); }

/// As uniform as matters here, in [-2, 2), in memory such as a rank's.
arena random_numbers(long count, unsigned state) {
  arena all(count * long(sizeof(float)));
  for (long i = 0; i < count; ++i) {
    state = state * 1664525u + 1013904223u;
    numbers_in(all)[i] = float(state >> 8) / 4194304.0f - 2;
  }
  return all;
}

/// The kernels of the measured stage from one of the passes' lists, with memory for every operand.
template <class C>
class stage {
  using passes = typename C::passes;
  static constexpr auto const& kernels_of = passes::ranges[measured_stage].segments;
  static_assert(kernels_of[detail::op_list::forward].size() == 1 &&
                kernels_of[detail::op_list::input_gradients].size() == 1 &&
                kernels_of[detail::op_list::weight_gradients].size() == 2);

 public:
  void run(detail::op_list which) {
    for (launch const& l : launches(which)) kernels_.groups[l.group](l.with);
  }
  /// Every operand of every kernel once.
  long bytes(detail::op_list which) {
    long total = 0;
    for (launch const& l : launches(which)) total += l.bytes;
    return total;
  }

 private:
  struct launch {
    int group;
    long bytes;
    host::arguments<float> with;
  };

  std::vector<launch> const& launches(detail::op_list which) {
    auto& all = launches_[which];
    detail::range const kernels = kernels_of[which];
    for (int i = kernels.begin + int(all.size()); i < kernels.end; ++i) {
      detail::described_group const d = passes::kernels.describe(which, i);
      int const group = passes::kernels.fused[which].segments[i].group;
      launch l{passes::numbers.number(which, group), 0, {}};
      for (int index = 0; index < int(d.operands.size()); ++index) {
        long const count = elements(d.operands[index]);
        l.with.operand[index] = memory(d.operands[index], count);
        l.bytes += count * long(sizeof(float));
      }
      workspaces_.push_back(random_numbers(
          host::workspace_bytes<float>(d.shape, C::samples) / long(sizeof(float)), 1));
      l.with.workspace = workspaces_.back().data();
      all.push_back(l);
    }
    return all;
  }
  static long elements(detail::operand x) {
    if (x.where == detail::space::value) return passes::values.batch_elements(x.index);
    return passes::forward.parameters[x.index].elements();
  }
  void* memory(detail::operand x, long count) {
    auto& place = memory_[{int(x.where), x.index}];
    if (place.data() == nullptr) place = random_numbers(count, unsigned(x.index) + 1);
    return place.data();
  }

  host::kernels<C> kernels_ = C::backend::template kernels<C>();
  std::map<std::pair<int, int>, arena> memory_;
  std::vector<arena> workspaces_;
  detail::per_op_list<std::vector<launch>> launches_;
};

/// Ways to copy, half of `bytes` to the other half. More than one number of bytes: one copy after
/// the other in the same memory, as kernels share operands.
struct copies {
  std::vector<long> counts;
  arena from, to;
  explicit copies(std::vector<long> const& bytes) {
    for (long const b : bytes) counts.push_back(b / 2 / 64 * 16);
    long const most = *std::max_element(counts.begin(), counts.end());
    from = random_numbers(most, 1), to = random_numbers(most, 2);
  }

  void by_library() const {
    for (long const count : counts)
      std::memcpy(numbers_in(to), numbers_in(from), sizeof(float) * std::size_t(count));
  }
  void by_loop() const {
    typedef float line __attribute__((vector_size(64)));
    auto const* const in = reinterpret_cast<line const*>(numbers_in(from));
    auto* const out = reinterpret_cast<line*>(numbers_in(to));
    for (long const count : counts)
      for (long i = 0; i < count / 16; ++i) {
        out[i] = in[i];
        asm volatile("" ::: "memory");  // or it would become a call of memcpy
      }
  }
  void past_caches() const {
    using namespace host::portable;
    for (long const count : counts)
      for (long i = 0; i < count; i += lanes<float>)
        stream(numbers_in(to) + i, load(numbers_in(from) + i));
    finish_streaming();
  }
};

/// Seconds of the fastest copy over those of `work`, whose kernels must move `bytes`; prints a row
/// of the table.
template <class Work>
double of_copy(char const* what, int samples, std::vector<long> const& bytes, int rounds,
               Work const& work) {
  copies const copy(bytes);
  bench::turns const seconds(
      {work, [&] { copy.by_library(); }, [&] { copy.by_loop(); }, [&] { copy.past_caches(); }},
      rounds, bench::thread_seconds);
  double const all = double(std::accumulate(bytes.begin(), bytes.end(), 0L)),
               ratio = std::min({seconds.ratio(1, 0), seconds.ratio(2, 0), seconds.ratio(3, 0)});
  auto const speed = [&](std::size_t side) { return 1e-9 * all / seconds.median(side); };
  std::printf("%5d x %d  %-26s %8.2f %8.1f %8.1f %8.1f %8.1f %8.3f\n", samples, width, what,
              1e-6 * all, speed(0), speed(1), speed(2), speed(3), ratio);
  std::fflush(stdout);
  return ratio;
}

struct figures {
  double forward, backward;
};

template <int Samples>
figures measure(int rounds) {
  using measured = stage<compiled<Samples>>;
  measured s;
  long const back = s.bytes(detail::op_list::input_gradients),
             sums = s.bytes(detail::op_list::weight_gradients);
  s.run(detail::op_list::forward);  // the statistics that backward reads
  figures f;
  f.forward = of_copy("forward", Samples, {s.bytes(detail::op_list::forward)}, rounds,
                      [&] { s.run(detail::op_list::forward); });
  of_copy("backward: input gradient", Samples, {back}, rounds,
          [&] { s.run(detail::op_list::input_gradients); });
  of_copy("backward: sums", Samples, {sums}, rounds,
          [&] { s.run(detail::op_list::weight_gradients); });
  f.backward = of_copy("backward", Samples, {back, sums}, rounds, [&] {
    s.run(detail::op_list::input_gradients);
    s.run(detail::op_list::weight_gradients);
  });
  return f;
}

}  // namespace

int main(int count, char** arguments) {
  int const rounds = count > 1 ? std::max(1, std::atoi(arguments[1])) : 31;
  std::printf(
      "bias, GELUTanh, residual, LayerNorm in fp32 with %s, one thread; medians of %d rounds in "
      "turns\n",
      bench::instruction_set(), rounds);
  std::printf("%-39s %8s %8s %8s %8s %8s %8s\n", "rows, what", "MB", "GB/s", "memcpy", "loop",
              "streamed", "of copy");
  figures const in_l2 = measure<64>(rounds);
  measure<512>(rounds);  // in L3
  figures const in_memory = measure<4096>(rounds);
  std::printf("figure rows_forward_of_copy %.3f\n", in_memory.forward);
  std::printf("figure rows_backward_of_copy %.3f\n", in_memory.backward);
  std::printf("figure rows_forward_of_copy_in_l2 %.3f\n", in_l2.forward);
  std::printf("figure rows_backward_of_copy_in_l2 %.3f\n", in_l2.backward);
}
