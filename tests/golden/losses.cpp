// SPDX-License-Identifier: BSL-1.0
//
// Every loss and its options against PyTorch: the loss, and the gradients of a small network before it. The cases are those
// of loss_cases() in write_golden.py.
#include "golden/record.hpp"

using namespace pp;

namespace {

template <class Loss>
struct Ends : Model<Input<3, 5>, Linear<8>, Tanh, Linear<11>, Loss> {};

template <class Loss>
void check(char const* name) {
  golden::check_model<Pipeline<Ends<Loss>, PortableHost, MicroBatches<2>, MicroBatchSize<2>>>("losses", name);
}

}  // namespace

TEST_CASE("CrossEntropy is PyTorch's", "[golden]") {
  check<CrossEntropy>("cross_entropy");
  check<CrossEntropy>("ignored");
  check<CrossEntropyWith<LabelSmoothing<1, 10>>>("smoothing");
  check<CrossEntropyWith<ZLoss<1, 100>>>("z_loss");
  check<CrossEntropyWith<ZLoss<1, 8>, LabelSmoothing<1, 4>>>("all_terms");
}
TEST_CASE("mini-batches of fewer samples are PyTorch's", "[golden]") {
  check<CrossEntropy>("three_samples");
  check<CrossEntropy>("one_sample");
  check<MSE>("three_samples.mse");
}
TEST_CASE("losses of real numbers are PyTorch's", "[golden]") {
  check<MSE>("mse");
  check<BCE>("bce");
  check<Huber<>>("huber");
  check<Huber<1, 2>>("huber_half");
}
