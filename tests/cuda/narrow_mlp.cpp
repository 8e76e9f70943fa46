// SPDX-License-Identifier: BSL-1.0
//
// Chains of narrow layers as one kernel give the bits of their launches: in every number format, at
// odd sizes, of every kind of program.
#include "cuda/narrow_chains.hpp"
#include "laws/worse.hpp"

using namespace pp;
using cuda::product_format;

namespace {

struct Even : Model<Input<24>, Linear<40>, ReLU, Linear<64>, GELUTanh, Linear<10>, MSE> {};
struct Odd : Model<Input<7>, Linear<5>, Tanh, Linear<33, NoBias>, SiLU, Linear<1>, MSE> {};
struct Wide : Model<Input<128>, Linear<128>, ReLU, Linear<128>, MSE> {};
struct Five : Model<Input<64>, Linear<64>, ReLU, Linear<64>, ReLU, Linear<64>, ReLU, Linear<64>,
                    ReLU, Linear<64>, MSE> {};
/// Positions, a residual, dropout after a layer.
struct Rich : Model<Input<3, 20>, Linear<48>, Dropout<1, 4>, Linear<32>, GELUTanh,
                    Residual<Linear<32>>, Linear<6>, MSE> {};

/// Slopes that are trained: of a layer, and of each channel at a width without wide accesses.
struct Sloped : Model<Input<24>, Linear<40>, PReLU, Linear<33, NoBias>, With<PReLU, PerChannel>,
                      Linear<40>, PReLU, Linear<33>, With<PReLU, PerChannel>, Linear<10>, MSE> {};

template <class M, int Samples, class... More>
using Trained = Pipeline<M, PortableHost, MicroBatches<2>, MicroBatchSize<Samples>, More...>;

template <class M, int Samples, class T, product_format F, int Forward = 1, int Backward = 1>
void both_ways(bool accumulate = false) {
  using trainer = Trained<M, Samples>;
  using P = narrow::source<trainer, T, F>;
  using programs = narrow::programs_of<trainer, 0, T, F>;
  narrow::are_their_launches<P, programs, detail::program::forward, Forward>();
  narrow::are_their_launches<P, programs, detail::program::backward, Backward>(accumulate);
}

constexpr auto fp32 = product_format::fp32, tf32 = product_format::tf32, bf = product_format::bf16,
               half = product_format::fp16;

/// The chains of a program of a model with so many samples, stage S of it.
template <class T, product_format F, class Trainer, detail::program Which, int S = 0>
constexpr detail::view<detail::launch_chain> chains =
    narrow::programs_of<Trainer, S, T, F>::template chains<Which>;

constexpr bool is_one_chain(detail::view<detail::launch_chain> found,
                            detail::launch_chain const& expected) {
  return found.count == 1 && found[0] == expected;
}

}  // namespace

TEST_CASE("which launches run as one kernel", "[cuda]") {
  using five = Trained<Five, 1000>;
  STATIC_REQUIRE(is_one_chain(chains<float, fp32, five, detail::program::forward>, {0, 5, 64}));
  STATIC_REQUIRE(is_one_chain(chains<bf16, bf, five, detail::program::forward>, {0, 5, 128}));
  STATIC_REQUIRE(is_one_chain(chains<bf16, bf, five, detail::program::backward>, {0, 13, 128, 4}));
  STATIC_REQUIRE(
      is_one_chain(chains<float, fp32, five, detail::program::backward>, {0, 13, 32, 4}));

  // one weight of 128 x 128 in fp32 leaves no room for another
  STATIC_REQUIRE(chains<float, fp32, Trained<Wide, 1000>, detail::program::forward>.count == 0);
  STATIC_REQUIRE(
      is_one_chain(chains<bf16, bf, Trained<Wide, 1000>, detail::program::forward>, {0, 2, 128}));
  struct Wider : Model<Input<64>, Linear<129>, ReLU, Linear<129>, ReLU, Linear<64>, MSE> {};
  STATIC_REQUIRE(chains<bf16, bf, Trained<Wider, 1000>, detail::program::forward>.count == 0);
  STATIC_REQUIRE(chains<bf16, bf, Trained<Wider, 1000>, detail::program::backward>.count == 0);
  struct One : Model<Input<64>, Linear<64>, MSE> {};
  STATIC_REQUIRE(chains<bf16, bf, Trained<One, 1000>, detail::program::forward>.count == 0);
  STATIC_REQUIRE(chains<bf16, bf, Trained<One, 1000>, detail::program::backward>.count == 0);

  // B and W apart: gradients of inputs are a chain, those of weights are none
  using apart = Trained<Five, 1000, Stages<2>, ZeroBubbleH1>;
  STATIC_REQUIRE(chains<bf16, bf, apart, detail::program::backward_input, 1>.count == 1);
  STATIC_REQUIRE(chains<bf16, bf, apart, detail::program::backward_weight, 1>.count == 0);

  // forward that keeps nothing has no place in memory for what is handed on
  struct Narrower : Model<Input<64>, Linear<64>, ReLU, Linear<64>, ReLU, Linear<64>, GELUTanh,
                          Linear<10>, MSE> {};
  STATIC_REQUIRE(is_one_chain(
      chains<float, fp32, Trained<Narrower, 1000, RecomputeAll>, detail::program::forward>,
      {0, 4, 64}));
}

namespace {

/// Three layers forward from numbers in memory of type T, y = tanh(tanh(x A) B) C, against fp64.
template <class T, product_format F>
double error_of_three_layers() {
  struct Three : Model<Input<24>, Linear<40, NoBias>, Tanh, Linear<64, NoBias>, Tanh,
                       Linear<10, NoBias>, MSE> {};
  using trainer = Trained<Three, 140>;
  using P = narrow::source<trainer, T, F>;
  using programs = narrow::programs_of<trainer, 0, T, F>;
  using mlp =
      cuda::lowered_chain<P, narrow::kernel_constant<programs, detail::program::forward, 0>>;
  constexpr std::size_t rows = 140, width[] = {24, 40, 64, 10};
  std::vector<on_host::buffer<T>> values, weights;
  values.push_back(on_host::buffer<T>::random(rows * width[0], 1));
  for (std::size_t i = 0; i < 3; ++i) {
    weights.push_back(on_host::buffer<T>::random(width[i] * width[i + 1], int(i) + 2, 0.3));
    values.emplace_back(rows * width[i + 1]);
  }
  std::vector<void*> operands;
  for (std::size_t i = 0; i < 3; ++i) {
    detail::group const g = programs::template unplaced<detail::program::forward>.shape(int(i));
    void** const mine = &*operands.insert(operands.end(), std::size_t(g.operands), nullptr);
    mine[g.in[0]] = values[i].data(), mine[g.in[1]] = weights[i].data();
    mine[i < 2 ? g.epilogue.back().store : g.out[0]] = values[i + 1].data();
  }
  [&]<class... Body>(cuda::kernel_list<Body...>) {
    (cuda::run_on_host<Body>(mlp::pack({}, operands.data())), ...);
  }(mlp::kernels());
  double most = 0;
  for (std::size_t r = 0; r < rows; ++r) {
    std::vector<double> x(width[0]);
    for (std::size_t k = 0; k < width[0]; ++k) x[k] = values[0].value(r * width[0] + k);
    for (std::size_t i = 0; i < 3; ++i) {
      std::vector<double> y(width[i + 1]);
      for (std::size_t n = 0; n < width[i + 1]; ++n) {
        for (std::size_t k = 0; k < width[i]; ++k)
          y[n] += x[k] * weights[i].value(k * width[i + 1] + n);
        if (i < 2) y[n] = std::tanh(y[n]);
        if (i == 2)  // the others have no place in memory
          most = laws::worse(most, std::fabs(y[n] - values[i + 1].value(r * width[i + 1] + n)));
      }
      x = y;
    }
  }
  return most;
}

}  // namespace

TEST_CASE("narrow layers are those of fp64", "[cuda]") {
  CHECK(error_of_three_layers<float, fp32>() < 2e-6);
  CHECK(error_of_three_layers<float, tf32>() < 3e-3);
  CHECK(error_of_three_layers<bf16, bf>() < 3e-2);
  CHECK(error_of_three_layers<fp16, half>() < 3e-3);
}

TEST_CASE("narrow layers of a stage between others, with B and W apart, and made again", "[cuda]") {
  using apart = Trained<Five, 300, Stages<2>, ZeroBubbleH1>;
  using P = narrow::source<apart, bf16, bf>;
  narrow::are_their_launches<P, narrow::programs_of<apart, 0, bf16, bf>, detail::program::forward,
                             1>();
  narrow::are_their_launches<P, narrow::programs_of<apart, 0, bf16, bf>,
                             detail::program::backward_input, 1>();
  narrow::are_their_launches<P, narrow::programs_of<apart, 1, bf16, bf>,
                             detail::program::backward_input, 1>();
  using again = Trained<Even, 150, RecomputeAll>;
  narrow::are_their_launches<narrow::source<again, float, fp32>,
                             narrow::programs_of<again, 0, float, fp32>, detail::program::backward,
                             2>();
}

TEST_CASE("narrow layers in fp32", "[cuda]") {
  both_ways<Even, 150, float, fp32>(true);
  both_ways<Odd, 70, float, fp32>();
  both_ways<Five, 600, float, fp32>();
}
TEST_CASE("narrow layers in tf32", "[cuda]") {
  both_ways<Even, 513, float, tf32>(true);
  both_ways<Odd, 129, float, tf32>();
}
TEST_CASE("narrow layers in bf16", "[cuda]") {
  both_ways<Even, 150, bf16, bf>(true);
  both_ways<Odd, 70, bf16, bf>();
  both_ways<Five, 1100, bf16, bf>();
  both_ways<Wide, 1030, bf16, bf, 1, 1>();
}
TEST_CASE("narrow layers in fp16", "[cuda]") {
  both_ways<Even, 600, fp16, half>();
  both_ways<Odd, 129, fp16, half>(true);
}
TEST_CASE("residuals, dropout and positions in narrow layers", "[cuda]") {
  both_ways<Rich, 50, float, fp32, 1, 1>(true);
  both_ways<Rich, 97, bf16, bf, 1, 1>();
}

namespace {

/// Sums for slopes are between the launches of backward, so only forward is a chain, and the
/// gradients of inputs where weights have a program of their own.
template <int Samples, class T, product_format F>
void with_slopes() {
  using trainer = Trained<Sloped, Samples>;
  using programs = narrow::programs_of<trainer, 0, T, F>;
  narrow::are_their_launches<narrow::source<trainer, T, F>, programs, detail::program::forward,
                             1>();
  STATIC_REQUIRE(programs::template chains<detail::program::backward>.count == 0);
  using apart = Trained<Sloped, Samples, Stages<2>, ZeroBubbleH1>;
  narrow::are_their_launches<narrow::source<apart, T, F>, narrow::programs_of<apart, 1, T, F>,
                             detail::program::backward_input, 1>();
}

}  // namespace

TEST_CASE("trained slopes behind narrow layers", "[cuda]") {
  with_slopes<70, float, fp32>();
  with_slopes<97, bf16, bf>();
}
