// SPDX-License-Identifier: BSL-1.0
//
// Every layer and loss with values in bfloat16 on the host: losses and gradients are those of fp32,
// as near as values with eight digits of mantissa are.
#include "catch.hpp"

#include "laws/every_layer.hpp"
#include "laws/everything.hpp"
#include "laws/gradient_law.hpp"
#include "laws/images.hpp"
#include "laws/scaled_layer.hpp"

using namespace pp;

namespace {

template <class M, class P>
using Of = Pipeline<M, P, PortableHost, AdamW, MicroBatches<2>, MicroBatchSize<2>>;

template <class M>
void is_near_fp32(double most) {
  laws::float_report const r = laws::compare_with_double<Of<M, BF16>, Of<M, FP32>>(3);
  INFO("parameter " << r.worst_parameter);
  CHECK(r.worst < most);
  CHECK(r.worst > 1e-4);  // values are not in fp32
  CHECK(r.smallest > 1e-8);
}

/// The same of all gradients as one vector: that of a bias before a norm of its channels is 0.
template <class M>
void is_near_fp32_together(double most) {
  Of<M, BF16> narrow({.seed = 3});
  Of<M, FP32> wide({.seed = 3});
  laws::disturb(narrow, 3, 0.3);
  laws::copy_parameters(narrow, wide);
  laws::sample_batch<Of<M, FP32>> const data(3);
  double const expected = wide.gradients(data.view()).loss;
  CHECK(narrow.gradients(data.template view<Of<M, BF16>>()).loss == Approx(expected).epsilon(most));
  auto const found = laws::snapshot(narrow).gradients, truth = laws::snapshot(wide).gradients;
  laws::distance d;
  for (std::size_t i = 0; i < truth.size(); ++i) d.add(double(found[i]), double(truth[i]));
  CHECK(d.relative() < most);
  CHECK(d.relative() > 1e-4);
}

}  // namespace

TEST_CASE("bf16: gradients of every layer are near those of fp32", "[laws]") {
  is_near_fp32<laws::EveryLayer>(0.06);
  is_near_fp32<laws::Everything>(0.06);
  is_near_fp32<laws::EveryPool<MeanPool>>(0.03);
  is_near_fp32<laws::EveryPool<LastPosition>>(0.03);
  is_near_fp32<laws::EveryBag<>>(0.05);
  is_near_fp32<laws::EveryBag<Reduction<Sum>, PaddingIndex<0>>>(0.05);
  is_near_fp32<laws::EveryComparison>(0.04);
}
TEST_CASE("bf16: gradients of layers of images are near those of fp32", "[laws]") {
  is_near_fp32<laws::EveryResampling>(0.06);
  is_near_fp32_together<laws::Images>(0.06);
  is_near_fp32<laws::Vision>(0.06);
}
TEST_CASE("bf16: gradients of losses are near those of fp32", "[laws]") {
  is_near_fp32<laws::EveryContrast<>>(0.02);
  is_near_fp32<laws::EveryContrast<Symmetric>>(0.02);
  is_near_fp32<laws::FurtherContrast>(0.05);
  is_near_fp32<laws::EveryLoss<MSE>>(0.02);
  is_near_fp32<laws::EveryLoss<L1Loss>>(0.02);
  is_near_fp32<laws::EveryLoss<CrossEntropy>>(0.02);
  is_near_fp32<laws::EveryLoss<SoftCrossEntropy>>(0.02);
  is_near_fp32<laws::EveryLoss<laws::LogCosh>>(0.02);
  is_near_fp32<laws::EveryLoss<laws::Surprise>>(0.02);
  is_near_fp32<laws::EveryLoss<laws::Spread>>(0.02);
  is_near_fp32<laws::EveryLoss<laws::UnequalClasses>>(0.02);
}

namespace {

struct Scaled : laws::Scaled {
  static constexpr bool samples_are_independent = true;
};
struct WithOwn : Model<Input<5>, Linear<12>, Custom<Scaled>, Linear<9>, Linear<3>, MSE> {};

}  // namespace

TEST_CASE("bf16: a user-defined layer reads values, and adds gradients in fp32", "[laws]") {
  static_assert(std::is_same_v<custom::accumulated<bf16>, float>);
  is_near_fp32<WithOwn>(0.03);
}
