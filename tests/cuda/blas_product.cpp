// SPDX-License-Identifier: BSL-1.0
//
// Matrix products as calls of a library: what is described is executed literally, in columns, and
// with our own kernels before and after it gives what fp64 gives, and what our own tiles give; in
// every number format, at odd sizes, for every kind of prologue and epilogue.
#include "cuda/blas_on_host.hpp"
#include "cuda/one_group.hpp"

using namespace pp;
using namespace pp::detail;
using on_host::buffer;

namespace {

constexpr int samples = 2;
using DropQuarter = Dropout<1, 4>;

/// c[samples * Rows, Columns] of a product over Inner; operands are given out in the order of what
/// follows.
template <int Rows, int Columns, int Inner>
struct builder {
  detail::group g;
  constexpr explicit builder(op_kind anchor) {
    bool const weight = anchor == op_kind::matmul_weight_gradient;
    g.anchor = anchor;
    g.rows = Rows, g.columns = Columns, g.attributes = detail::contraction_attributes{Inner};
    g.in[0] = take(), g.in[1] = take();
    if (weight) g.out[0] = take();
  }
  constexpr signed char take() { return static_cast<signed char>(g.operands++); }
  constexpr builder& before(op_kind kind, int leaf = 0, bool stored = false) {
    g.prologue.push_back(make(kind, leaf, stored));
    return *this;
  }
  constexpr builder& after(op_kind kind, int leaf = 0, bool stored = false) {
    g.epilogue.push_back(make(kind, leaf, stored));
    return *this;
  }
  constexpr builder& bias_gradient() {
    g.prologue.push_back(detail::pointwise_op{op_kind::bias_gradient, 0, -1, take(), false});
    return *this;
  }
  /// The second operand is the transpose of a parameter.
  constexpr builder& turned() {
    g.attributes = detail::contraction_attributes{Inner, true};
    return *this;
  }
  /// The last step is one with the product.
  constexpr builder& joined() {
    g.epilogue.back().is_joined = true;
    return *this;
  }
  constexpr builder& store() {
    g.out[0] = take();
    return *this;
  }
  constexpr detail::pointwise_op make(op_kind kind, int leaf, bool stored) {
    detail::pointwise_op s{kind, short(leaf), -1, -1, false};
    if (kind != op_kind::map) s.operand = take();
    if (stored) s.store = take();
    return s;
  }
};

/// Formulas of the chains below: ReLU, GELUTanh, Tanh, DropQuarter.
enum leaf : int { relu, gelu, hyperbolic, drops };

#define PIPE_TEST_GROUP(name, ...)                            \
  struct name {                                               \
    static constexpr group make() { return (__VA_ARGS__).g; } \
  }
using forward = builder<9, 21, 35>;
using even = builder<8, 24, 40>;
PIPE_TEST_GROUP(plain, forward(op_kind::matmul).store());
PIPE_TEST_GROUP(with_bias, forward(op_kind::matmul).after(op_kind::bias, 0, true));
PIPE_TEST_GROUP(with_relu, even(op_kind::matmul).after(op_kind::map, relu, true));
PIPE_TEST_GROUP(bias_and_relu,
                forward(op_kind::matmul).after(op_kind::bias).after(op_kind::map, relu, true));
PIPE_TEST_GROUP(
    bias_read_and_relu,
    even(op_kind::matmul).after(op_kind::bias, 0, true).after(op_kind::map, relu, true));
PIPE_TEST_GROUP(product_read, forward(op_kind::matmul).store().after(op_kind::bias, 0, true));
PIPE_TEST_GROUP(
    bias_and_gelu,
    even(op_kind::matmul).after(op_kind::bias, 0, true).after(op_kind::map, gelu, true));
PIPE_TEST_GROUP(bias_gelu_unread,
                forward(op_kind::matmul).after(op_kind::bias).after(op_kind::map, gelu, true));
PIPE_TEST_GROUP(residual, even(op_kind::matmul).after(op_kind::bias).after(op_kind::add, 0, true));
PIPE_TEST_GROUP(joined_residual, even(op_kind::matmul)
                                     .after(op_kind::bias)
                                     .after(op_kind::add, 0, true)
                                     .joined()
                                     .after(op_kind::map, relu, true));
PIPE_TEST_GROUP(residual_alone, forward(op_kind::matmul).after(op_kind::add, 0, true).joined());
PIPE_TEST_GROUP(
    joined_gelu,
    even(op_kind::matmul).after(op_kind::bias, 0, true).after(op_kind::map, gelu, true).joined());
PIPE_TEST_GROUP(joined_gelu_unread, forward(op_kind::matmul)
                                        .after(op_kind::bias)
                                        .after(op_kind::map, gelu)
                                        .joined()
                                        .after(op_kind::dropout, drops, true));
PIPE_TEST_GROUP(gelu_without_bias,
                even(op_kind::matmul).store().after(op_kind::map, gelu, true).joined());
PIPE_TEST_GROUP(
    joined_relu,
    even(op_kind::matmul).after(op_kind::bias).after(op_kind::map, relu, true).joined());
PIPE_TEST_GROUP(joined_tanh, even(op_kind::matmul)
                                 .after(op_kind::bias, 0, true)
                                 .after(op_kind::map, hyperbolic, true)
                                 .joined());
PIPE_TEST_GROUP(joined_gradient, even(op_kind::matmul_input_gradient)
                                     .turned()
                                     .after(op_kind::map_gradient, gelu, true)
                                     .joined()
                                     .after(op_kind::add, 0, true));
PIPE_TEST_GROUP(long_chain, forward(op_kind::matmul)
                                .after(op_kind::bias)
                                .after(op_kind::map, relu)
                                .after(op_kind::dropout, drops)
                                .after(op_kind::row_bias, 0, true)
                                .after(op_kind::bias)
                                .after(op_kind::map, hyperbolic, true));
PIPE_TEST_GROUP(with_prologue, forward(op_kind::matmul)
                                   .before(op_kind::row_bias)
                                   .before(op_kind::map, gelu)
                                   .after(op_kind::bias, 0, true));
PIPE_TEST_GROUP(prologue_read, even(op_kind::matmul)
                                   .before(op_kind::bias)
                                   .before(op_kind::dropout, drops, true)
                                   .after(op_kind::bias)
                                   .after(op_kind::map, relu)
                                   .after(op_kind::add, 0, true));
PIPE_TEST_GROUP(input_gradient, forward(op_kind::matmul_input_gradient).store());
PIPE_TEST_GROUP(input_gradient_of_map, even(op_kind::matmul_input_gradient)
                                           .after(op_kind::map_gradient, gelu, true)
                                           .after(op_kind::add, 0, true));
PIPE_TEST_GROUP(turned, forward(op_kind::matmul_input_gradient).turned().store());
PIPE_TEST_GROUP(turned_with_bias, even(op_kind::matmul).turned().after(op_kind::bias, 0, true));
PIPE_TEST_GROUP(weight_gradient, forward(op_kind::matmul_weight_gradient));
PIPE_TEST_GROUP(weight_and_bias, even(op_kind::matmul_weight_gradient).bias_gradient());
PIPE_TEST_GROUP(weight_of_many_rows,
                builder<700, 12, 20>(op_kind::matmul_weight_gradient).bias_gradient());
#undef PIPE_TEST_GROUP

template <class T, class Described>
using alone = on_host::one_group<T, Described, samples, ReLU, GELUTanh, Tanh, DropQuarter>;
template <class Described>
constexpr cuda::blas_product described = cuda::describe_blas_product<alone<float, Described>, 0>();

/// The operands of a group, each of exactly its size: what is read are numbers, what is written is
/// `before`.
template <class T, class P>
class operands {
 public:
  static constexpr detail::group g = P::group_at(0);
  static constexpr bool is_weight = g.anchor == op_kind::matmul_weight_gradient;
  using result_type = std::conditional_t<is_weight, float, T>;

  explicit operands(float before) {
    constexpr auto bytes = cuda::operand_bytes<P, 0>();
    for (int i = 0; i < g.operands; ++i) {
      std::size_t const size = std::size_t(bytes[i]);
      memory_.emplace_back(size);
      auto const numbers = buffer<T>::random(size / sizeof(T), i + 1);
      std::memcpy(memory_.back().data(), &numbers[0], size);
      a.operand[i] = memory_.back().data();
    }
    detail::for_each_written(g, [&](int index) {
      for (std::size_t k = 0; index >= 0 && k < count(index); ++k)
        a.at<result_type>(index)[k] = result_type(before);
    });
    for (auto const* chain : {&g.prologue, &g.epilogue})
      for (detail::pointwise_op const& s : *chain)
        if (s.kind == op_kind::dropout) *a.at<int>(s.operand) = 3;
    a.training = true;
    state_->seed = 7, state_->step = 2;
    a.run = state_.get();
  }
  std::size_t count(int index) const {
    return memory_[std::size_t(index)].size() / sizeof(result_type);
  }
  std::vector<double> result(int index) const {
    std::vector<double> all;
    for (std::size_t k = 0; k < count(index); ++k)
      all.push_back(double(float(a.at<result_type>(index)[k])));
    return all;
  }
  cuda::arguments a;

 private:
  std::unique_ptr<cuda::run_state> state_ = std::make_unique<cuda::run_state>();
  std::vector<buffer<char>> memory_;
};

/// A group in double precision, from the numbers in its operands. What is accumulated was `before`.
template <class T, class P>
class reference {
 public:
  static constexpr detail::group g = P::group_at(0);
  static constexpr int rows = g.rows * P::samples, inner = g.attributes.contraction().inner;
  std::vector<double> of[detail::group::max_operands];

  reference(operands<T, P> const& from, double before) : a_(from.a) {
    detail::for_each_written(g, [&](int index) {
      if (index >= 0) of[index].resize(from.count(index));
    });
    if constexpr (operands<T, P>::is_weight)
      make_weight(before);
    else
      make_rows();
  }

 private:
  double number(int index, long at) const { return double(float(a_.at<T const>(index)[at])); }

  void make_weight(double before) {
    for (int k = 0; k < inner; ++k)
      for (int c = 0; c < g.columns; ++c) {
        double& sum = of[g.out[0]][std::size_t(k * g.columns + c)];
        sum = before;
        for (int r = 0; r < rows; ++r)
          sum += number(g.in[0], r * inner + k) * number(g.in[1], r * g.columns + c);
      }
    for (detail::pointwise_op const& s : g.prologue)
      for (int c = 0; c < g.columns; ++c) {
        double& sum = of[s.store][std::size_t(c)];
        sum = before;
        for (int r = 0; r < rows; ++r) sum += number(g.in[1], r * g.columns + c);
      }
  }
  void make_rows() {
    for (int r = 0; r < rows; ++r) {
      std::vector<double> left;
      for (int k = 0; k < inner; ++k) {
        double v = number(g.in[0], r * inner + k);
        run(g.prologue, inner, r, k, v);
        left.push_back(double(float(T(float(v)))));
      }
      for (int c = 0; c < g.columns; ++c) {
        double v = 0;
        for (int k = 0; k < inner; ++k)
          v += left[std::size_t(k)] * number(g.in[1], g.attributes.contraction().is_transposed
                                                          ? c * inner + k
                                                          : k * g.columns + c);
        if (g.out[0] >= 0) of[g.out[0]][std::size_t(r * g.columns + c)] = v;
        run(g.epilogue, g.columns, r, c, v);
      }
    }
  }
  void run(detail::static_vector<detail::pointwise_op, detail::group::max_ops> const& chain,
           int width, int r, int c, double& v) {
    for (detail::pointwise_op const& s : chain) {
      long const at = long(r) * width + c;
      if (s.kind == op_kind::bias) {
        v += number(s.operand, c);
      } else if (s.kind == op_kind::row_bias) {
        v += number(s.operand, long(r % g.rows) * width + c);
      } else if (s.kind == op_kind::add) {
        v += number(s.operand, at);
      } else if (s.kind == op_kind::dropout) {
        v *= kept(*a_.ids(s.operand), width, r, c);
      } else if (s.kind == op_kind::map) {
        v = s.leaf == relu   ? ReLU::forward(v)
            : s.leaf == gelu ? GELUTanh::forward(v)
                             : Tanh::forward(v);
      } else {
        v *= GELUTanh::derivative(number(s.operand, at));
      }
      if (s.store >= 0) of[s.store][std::size_t(at)] = v;
    }
  }
  double kept(int stream, int width, int r, int c) const {
    detail::philox_block const bits = detail::philox(
        detail::philox_block{{unsigned(r % g.rows * ((width + 3) / 4) + c / 4),
                              unsigned(r / g.rows), unsigned(stream), unsigned(a_.run->step)}},
        unsigned(a_.run->seed), 0);
    return bits.word[c % 4] < DropQuarter::drops_below ? 0 : 4.0 / 3;
  }

  cuda::arguments a_;
};

template <class P>
constexpr double close_to_fp64 = std::is_same_v<typename P::element, float>                 ? 2e-6
                                 : P::group_at(0).anchor == op_kind::matmul_weight_gradient ? 1e-5
                                 : std::is_same_v<typename P::element, fp16>                ? 2e-3
                                                                                            : 2e-2;

/// By description and by our own tiles, against fp64: everything that the group writes, whatever
/// was there before.
template <class T, class Described, bool TakesAll>
void agrees_by(bool accumulate) {
  using P = alone<T, Described>;
  using lowering = cuda::blas_lowering<P, 0, TakesAll>;
  constexpr detail::group g = P::group_at(0);
  float const before = accumulate ? 0.5f : NAN;
  std::vector<std::vector<double>> first;
  for (auto order : {cuda::thread_order::ascending, cuda::thread_order::descending}) {
    operands<T, P> ours(before), theirs(before);
    ours.a.accumulate = theirs.a.accumulate = accumulate;
    reference<T, P> const expected(ours, accumulate ? 0.5 : 0);
    on_host::run_alone<P>(ours.a, order);
    buffer<char> workspace(std::size_t(lowering::first_byte + lowering::after_bytes) + 1);
    theirs.a.workspace = workspace.data();
    on_host::order = order;
    on_host::run_blas_lowering<P, 0, TakesAll>(theirs.a);
    on_host::order = cuda::thread_order::ascending;
    int written = 0;
    detail::for_each_written(g, [&](int index) {
      if (index < 0) return;
      auto const found = theirs.result(index);
      CHECK(on_host::difference(expected.of[index], found) < close_to_fp64<P>);
      CHECK(on_host::difference(ours.result(index), found) < close_to_fp64<P>);
      if (order == cuda::thread_order::ascending) first.push_back(found);
      CHECK(first[std::size_t(written++)] == found);
    });
    CHECK(written > 0);
  }
}
/// An activation in the call, if it has one, and behind it.
template <class T, class Described>
void agrees(bool accumulate = false) {
  constexpr auto product = cuda::describe_blas_product<alone<T, Described>, 0>();
  agrees_by<T, Described, true>(accumulate);
  if constexpr (product.activation != cuda::blas_activation::none)
    agrees_by<T, Described, false>(accumulate);
}
template <class... Described>
void all_agree() {
  (agrees<float, Described>(), ...);
  (agrees<bf16, Described>(), ...);
  (agrees<fp16, Described>(), ...);
}

}  // namespace

TEST_CASE("a product in rows is one in columns with its operands exchanged", "[cuda]") {
  constexpr auto p = described<plain>;
  STATIC_REQUIRE((p.m == 21 && p.n == 9 * samples && p.k == 35));
  STATIC_REQUIRE((p.lda == 21 && p.ldb == 35 && p.ldd == 21 && !p.transposes_a && !p.transposes_b &&
                  !p.accumulates && !p.makes_fp32));
  STATIC_REQUIRE((p.a == 1 && p.b == 0 && p.d == 2 && p.bias == -1));
  constexpr auto t = described<turned>;
  STATIC_REQUIRE((t.m == 21 && t.n == 9 * samples && t.k == 35));
  STATIC_REQUIRE((t.lda == 35 && t.ldb == 35 && t.ldd == 21 && t.transposes_a && !t.transposes_b));
  constexpr auto w = described<weight_gradient>;
  STATIC_REQUIRE((w.m == 21 && w.n == 35 && w.k == 9 * samples));
  STATIC_REQUIRE((w.lda == 21 && w.ldb == 35 && w.ldd == 21 && w.transposes_b && w.accumulates &&
                  w.makes_fp32));
  STATIC_REQUIRE((described<with_prologue>.b == -1));
  STATIC_REQUIRE((described<prologue_read>.b == prologue_read::make().prologue[1].store));
}

TEST_CASE("a call takes a bias if nobody reads what is before it, and no more", "[cuda]") {
  constexpr auto takes_bias = [](cuda::blas_product const& p) { return p.bias >= 0 && p.ops == 1; };
  constexpr auto takes_none = [](cuda::blas_product const& p) { return p.bias < 0 && p.ops == 0; };
  STATIC_REQUIRE(takes_none(described<plain>));
  STATIC_REQUIRE(takes_bias(described<with_bias>));
  STATIC_REQUIRE(takes_none(described<with_relu>));
  STATIC_REQUIRE(takes_bias(described<bias_and_relu>));
  STATIC_REQUIRE(takes_bias(described<bias_read_and_relu>));
  STATIC_REQUIRE(takes_none(described<product_read>));
  STATIC_REQUIRE(takes_bias(described<residual>));
  STATIC_REQUIRE(takes_bias(described<long_chain>));
  STATIC_REQUIRE(takes_none(described<input_gradient_of_map>));
  STATIC_REQUIRE(described<bias_read_and_relu>.d == bias_read_and_relu::make().epilogue[0].store);
  STATIC_REQUIRE(described<bias_gelu_unread>.d == bias_gelu_unread::make().epilogue[1].store);
}

TEST_CASE("a call takes what is one with the product, if the library has it", "[cuda]") {
  using enum cuda::blas_activation;
  constexpr auto takes = [](cuda::blas_product const& p, int ops, cuda::blas_activation what) {
    return p.ops == ops && p.activation == what;
  };
  STATIC_REQUIRE(takes(described<joined_residual>, 2, none));
  STATIC_REQUIRE(described<joined_residual>.c == joined_residual::make().epilogue[1].operand);
  STATIC_REQUIRE(described<joined_residual>.d == joined_residual::make().epilogue[1].store);
  STATIC_REQUIRE((takes(described<residual_alone>, 1, none) && described<residual_alone>.c == 2));
  STATIC_REQUIRE(takes(described<joined_gelu>, 2, gelu));
  STATIC_REQUIRE(described<joined_gelu>.aux == joined_gelu::make().epilogue[0].store);
  STATIC_REQUIRE(described<joined_gelu>.d == joined_gelu::make().epilogue[1].store);
  STATIC_REQUIRE(takes(described<joined_gelu_unread>, 2, gelu));
  STATIC_REQUIRE((described<joined_gelu_unread>.aux == -1 &&
                  described<joined_gelu_unread>.d == joined_gelu_unread::make().epilogue[2].store));
  STATIC_REQUIRE(cuda::blas_lowering<alone<bf16, joined_gelu_unread>, 0>::aux_bytes >=
                 9 * 21 * samples * 2);
  STATIC_REQUIRE(takes(described<gelu_without_bias>, 1, gelu));
  STATIC_REQUIRE(described<gelu_without_bias>.aux == gelu_without_bias::make().out[0]);
  STATIC_REQUIRE(takes(described<joined_gradient>, 1, gelu_gradient));
  STATIC_REQUIRE(described<joined_gradient>.aux == joined_gradient::make().epilogue[0].operand);
  // The library has no such activation, or it may take none.
  STATIC_REQUIRE(takes(described<joined_relu>, 1, none));
  STATIC_REQUIRE(takes(described<joined_tanh>, 1, none));
  STATIC_REQUIRE(takes(cuda::describe_blas_product<alone<bf16, joined_gelu>, 0, false>(), 1, none));
}

TEST_CASE("calls of a library agree with fp64 and with our own tiles", "[cuda]") {
  all_agree<plain, with_bias, with_relu, bias_and_relu, bias_read_and_relu, product_read>();
}
TEST_CASE("what a call leaves of a chain is done after it", "[cuda]") {
  all_agree<bias_and_gelu, bias_gelu_unread, residual, long_chain>();
}
TEST_CASE("activations and residuals in a call agree with those of our own tiles", "[cuda]") {
  all_agree<joined_residual, residual_alone, joined_gelu, joined_gelu_unread, gelu_without_bias,
            joined_relu, joined_tanh, joined_gradient>();
}
TEST_CASE("prologues run before a call", "[cuda]") { all_agree<with_prologue, prologue_read>(); }
TEST_CASE("gradients of inputs and weights are calls, too", "[cuda]") {
  all_agree<input_gradient, input_gradient_of_map, weight_gradient, weight_and_bias,
            weight_of_many_rows, turned, turned_with_bias>();
  agrees<float, weight_and_bias>(true);
  agrees<bf16, weight_and_bias>(true);
  agrees<bf16, weight_of_many_rows>(true);
  agrees<fp16, weight_of_many_rows>(true);
}
