// SPDX-License-Identifier: BSL-1.0
//
// The kernels of the norms of channels, groups and responses against numbers that PyTorch 2.15 gave
// in double: first and last element, sum and sum of squares, in PyTorch's order of extents.
#include "catch.hpp"

#include <vector>

#include "backend/lone_kernel.hpp"

using namespace pp;

namespace {

/// Numbers of which all are multiples of 1 / 8.
double v(int a, int i) { return double((a * i + 3) % 11 - 5) / 8; }
std::vector<double> all_of(int a, int n) {
  std::vector<double> x;
  for (int i = 0; i < n; ++i) x.push_back(v(a, i));
  return x;
}
/// v(a, i) by PyTorch's number i of (samples, channels, positions), here channels last.
std::vector<double> image(int a, int samples, int channels, int positions) {
  std::vector<double> x(std::size_t(samples * channels * positions));
  for (int s = 0, i = 0; s < samples; ++s)
    for (int c = 0; c < channels; ++c)
      for (int p = 0; p < positions; ++p, ++i)
        x[std::size_t((s * positions + p) * channels + c)] = v(a, i);
  return x;
}
void check(std::vector<double> const& x, double first, double last, double sum, double squares) {
  double found_sum = 0, found_squares = 0;
  for (double e : x) found_sum += e, found_squares += e * e;
  CHECK(x.front() == Approx(first).epsilon(1e-8));
  CHECK(x.back() == Approx(last).epsilon(1e-8));
  CHECK(found_sum == Approx(sum).epsilon(1e-8).margin(1e-12));
  CHECK(found_squares == Approx(squares).epsilon(1e-8));
}

struct Batch : Model<Input<2, 2, 3>, Linear<3>, BatchNorm, Linear<2>, MSE> {};
struct OfGroups : Model<Input<2, 2, 6>, Linear<6>, GroupNorm<3>, Linear<2>, MSE> {};
struct Responses
    : Model<Input<2, 2, 7>, Linear<7>,
            LocalResponseNorm<5, ResponseScale<1, 10>, ResponseOffset<2>>, Linear<2>, MSE> {};

static_assert(Batch::graph.ops[2].attributes.batch().epsilon == 1e-5);
static_assert(Batch::graph.parameters[4].commit.momentum == 0.1);
static_assert(Responses::graph.ops[2].attributes.response().power == 0.75);

}  // namespace

TEST_CASE("a batch norm and its gradients are PyTorch's", "[nn]") {
  using trained = lone::compiled<Batch, FP64, MicroBatchSize<4>>;
  auto const x = image(7, 4, 3, 4), dy = image(9, 4, 3, 4), gamma = all_of(2, 3),
             beta = all_of(3, 3);
  on_every_isa([&](auto isa) {
    INFO(isa.name);
    std::vector<double> statistics(9), y(48), sums(6), dx(48), mean(3), variance(3, 1.0),
        mean_sum(3), variance_sum(3), dgamma(3), dbeta(3);
    lone::kernel<trained, op_kind::batch_statistics> of;
    of.with.training = true;
    of.in(0) = x.data(), of.in(1) = mean.data(), of.in(2) = variance.data();
    of.out(0) = statistics.data();
    of.run(isa);
    lone::kernel<trained, op_kind::batch_norm> norm;
    norm.in(0) = x.data(), norm.in(1) = statistics.data(), norm.in(2) = gamma.data();
    norm.in(3) = beta.data(), norm.out(0) = y.data();
    norm.run(isa);
    check(y, -.0535473165, .261546933, 6, 7.2498714);
    lone::kernel<trained, op_kind::batch_sums> add;
    add.in(0) = dy.data(), add.in(1) = x.data(), add.in(2) = statistics.data();
    add.out(0) = sums.data();
    add.run(isa);
    lone::kernel<trained, op_kind::batch_norm_gradient> back;
    back.in(0) = dy.data(), back.in(1) = x.data(), back.in(2) = statistics.data();
    back.in(3) = sums.data(), back.in(4) = gamma.data(), back.out(0) = dx.data();
    back.run(isa);
    check(dx, .287236369, .131772863, 0, 1.61392154);
    lone::kernel<trained, op_kind::batch_parameter_gradient> weights;
    weights.in(0) = sums.data(), weights.out(0) = dgamma.data(), weights.out(1) = dbeta.data();
    weights.run(isa);
    check(dgamma, -1.59428909, -2.61081776, -6.54742731, 14.8445922);
    check(dbeta, 1.875, .125, .25, 6.59375);
    lone::kernel<trained, op_kind::batch_running_sums> follow;
    follow.in(0) = statistics.data(), follow.in(1) = mean.data();
    follow.out(0) = mean_sum.data(), follow.out(1) = variance_sum.data();
    follow.run(isa);
    for (std::size_t c = 0; c < 3; ++c) {
      auto const& p = Batch::graph.parameters;
      variance[c] = detail::committed(p[5].commit, variance[c], variance_sum[c], 4, mean_sum[c]);
      mean[c] = detail::committed(p[4].commit, mean[c], mean_sum[c], 4);
    }
    double const means[] = {.00546875, -.00546875, .00078125},
                 variances[] = {.916035156, .916035156, .91718099};
    for (std::size_t c = 0; c < 3; ++c) {
      CHECK(mean[c] == Approx(means[c]).epsilon(1e-7));
      CHECK(variance[c] == Approx(variances[c]).epsilon(1e-8));
    }
  });
}

TEST_CASE("a group norm and its gradients are PyTorch's", "[nn]") {
  using trained = lone::compiled<OfGroups, FP64, MicroBatchSize<2>>;
  auto const x = image(7, 2, 6, 4), dy = image(9, 2, 6, 4), gamma = all_of(2, 6),
             beta = all_of(3, 6);
  on_every_isa([&](auto isa) {
    INFO(isa.name);
    std::vector<double> statistics(12), y(48), dx(48), dgamma(6), dbeta(6);
    lone::kernel<trained, op_kind::group_norm> norm;
    norm.in(0) = x.data(), norm.in(1) = gamma.data(), norm.in(2) = beta.data();
    norm.out(0) = y.data(), norm.out(1) = statistics.data();
    norm.run(isa);
    check(y, -.0498463768, .610276522, -.00401339201, 11.861442);
    lone::kernel<trained, op_kind::group_norm_gradient> back;
    back.in(0) = dy.data(), back.in(1) = x.data(), back.in(2) = gamma.data();
    back.in(3) = statistics.data(), back.out(0) = dx.data();
    back.run(isa);
    check(dx, .234022238, .0103718753, 0, 5.75261462);
    lone::kernel<trained, op_kind::group_parameter_gradient> weights;
    weights.in(0) = dy.data(), weights.in(1) = x.data(), weights.in(2) = statistics.data();
    weights.out(0) = dgamma.data(), weights.out(1) = dbeta.data();
    weights.run(isa);
    check(dgamma, -.634979827, -1.84524383, -5.85437128, 7.26098682);
    check(dbeta, 1.25, -.25, .25, 3.96875);
  });
}

TEST_CASE("a local response norm and its gradient are PyTorch's", "[nn]") {
  using trained = lone::compiled<Responses, FP64, MicroBatchSize<2>>;
  auto const x = image(7, 2, 7, 4), dy = image(9, 2, 7, 4);
  on_every_isa([&](auto isa) {
    INFO(isa.name);
    std::vector<double> y(56), dx(56);
    lone::kernel<trained, op_kind::response_norm> norm;
    norm.in(0) = x.data(), norm.out(0) = y.data();
    norm.run(isa);
    check(y, -.148286116, -.148268798, -.148269249, 3.02748171);
    lone::kernel<trained, op_kind::response_norm_gradient> back;
    back.in(0) = dy.data(), back.in(1) = x.data(), back.out(0) = dx.data();
    back.run(isa);
    check(dx, -.148147552, -.14895917, -.135423956, 3.01920145);
  });
}
