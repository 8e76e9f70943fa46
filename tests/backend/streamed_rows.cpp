// SPDX-License-Identifier: BSL-1.0
//
// Row kernels that write more than caches hold write past them: the same bits as kernels that do
// not, wherever a row begins.
#include <algorithm>
#include <cstdint>

#include "catch.hpp"

#include "backend/lone_kernel.hpp"

using namespace pp;

namespace {

constexpr int width = 64, few = 8, many = 49160;

/// Cut before Positions and after LayerNorm: a bias, GELU and a residual are the prologue of the
/// norm, and GELU's derivative the epilogue of the norm's gradient.
struct Rows
    : Model<Input<1, width>, Linear<width, NoBias>, Stash<"residual">, Linear<width, NoBias>,
            Positions, GELUTanh, Pop<"residual">, LayerNorm, Linear<2, NoBias>, MSE> {};
template <int Samples>
using rows = lone::compiled<Rows, Stages<3>, Cut<2, 6>, MicroBatchSize<Samples>>;

template <int Samples>
using forward = lone::kernel<rows<Samples>, op_kind::norm>;
template <int Samples>
using backward = lone::kernel<rows<Samples>, op_kind::norm_gradient>;
static_assert(host::portable::streams<rows<many>, forward<many>::number>());
static_assert(host::portable::streams<rows<many>, backward<many>::number>());
static_assert(!host::portable::streams<rows<few>, forward<few>::number>());

/// What the kernels read and write, for any number of rows.
struct operands_of_rows {
  float *x, *bias, *residual, *gamma, *beta, *dy;                                        // read
  float *before_gelu, *sum, *y, *statistics, *residual_gradient, *before_gelu_gradient;  // written

  operands_of_rows from(std::ptrdiff_t row) const {
    operands_of_rows r = *this;
    for (float** p : {&r.x, &r.residual, &r.dy, &r.before_gelu, &r.sum, &r.y, &r.residual_gradient,
                      &r.before_gelu_gradient})
      *p += row * width;
    r.statistics += 2 * row;
    return r;
  }
};

template <int Samples, class Isa>
void run(Isa isa, operands_of_rows const& o) {
  forward<Samples> f;
  f.in(0) = o.x;
  f.in(1) = o.gamma;
  f.in(2) = o.beta;
  f.out(0) = o.y;
  f.out(1) = o.statistics;
  auto const& ops = f.g.prologue;
  f.with.operand[ops[0].operand] = o.bias;
  f.with.operand[ops[0].store] = o.before_gelu;
  f.with.operand[ops[2].operand] = o.residual;
  f.with.operand[ops[2].store] = o.sum;
  f.run(isa);
  backward<Samples> b;
  b.in(0) = o.dy;
  b.in(1) = o.sum;
  b.in(2) = o.gamma;
  b.in(3) = o.statistics;
  b.out(0) = o.residual_gradient;
  b.with.operand[b.g.epilogue[0].operand] = o.before_gelu;
  b.with.operand[b.g.epilogue[0].store] = o.before_gelu_gradient;
  b.run(isa);
}

struct inputs {
  static constexpr std::ptrdiff_t count = std::ptrdiff_t(many) * width;
  exact<float> x{count, 1}, bias{width, 2}, residual{count, 3}, gamma{width, 4}, beta{width, 5},
      dy{count, 6};
};

/// What is written, from a multiple of a vector on, or from the element after it.
struct outputs {
  static constexpr std::ptrdiff_t vector = host::widest_vector_bytes / sizeof(float);
  exact<float> before_gelu{inputs::count + vector}, sum{inputs::count + vector},
      y{inputs::count + vector}, residual_gradient{inputs::count + vector},
      before_gelu_gradient{inputs::count + vector}, statistics{2 * many};

  operands_of_rows with(inputs const& in, bool aligned) const {
    auto const place = [aligned](exact<float> const& e) {
      float* p = e.data();
      while (reinterpret_cast<std::uintptr_t>(p) % host::widest_vector_bytes !=
             (aligned ? 0 : sizeof(float)))
        ++p;
      return p;
    };
    return {
        in.x.data(),    in.bias.data(),    in.residual.data(),       in.gamma.data(),
        in.beta.data(), in.dy.data(),      place(before_gelu),       place(sum),
        place(y),       statistics.data(), place(residual_gradient), place(before_gelu_gradient)};
  }
};

}  // namespace

TEST_CASE("what is streamed has the bits of what is stored", "[host]") {
  inputs const in;
  on_every_isa([&](auto isa) {
    for (bool aligned : {true, false}) {
      INFO(isa.name << (aligned ? ", aligned" : ", not aligned"));
      outputs const at_once, in_pieces;
      operands_of_rows const a = at_once.with(in, aligned), b = in_pieces.with(in, true);
      run<many>(isa, a);
      for (int row = 0; row < many; row += few) run<few>(isa, b.from(row));
      auto const equal = [](float const* p, float const* q, std::ptrdiff_t n) {
        return std::equal(p, p + n, q);
      };
      CHECK(equal(a.before_gelu, b.before_gelu, inputs::count));
      CHECK(equal(a.sum, b.sum, inputs::count));
      CHECK(equal(a.y, b.y, inputs::count));
      CHECK(equal(a.statistics, b.statistics, 2 * many));
      CHECK(equal(a.residual_gradient, b.residual_gradient, inputs::count));
      CHECK(equal(a.before_gelu_gradient, b.before_gelu_gradient, inputs::count));
    }
  });
}
