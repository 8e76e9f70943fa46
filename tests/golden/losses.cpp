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

namespace {

using Classes = ClassWeights<1, 5, 2, 0, 3, 1, 4, 2, 1, 6, 2>;

struct Clipped : label_loss<Clipped, Target<"old">, Target<"advantage">> {
  template <class T>
  PIPE_HD static PIPE_INLINE T value(T l, T old, T advantage) {
    T const ratio = math::exp(l - old), limit = advantage > T(0) ? T(1.2) : T(0.8);
    return -advantage * (is_outside(ratio, advantage) ? limit : ratio);
  }
  template <class T>
  PIPE_HD static PIPE_INLINE T slope(T l, T old, T advantage) {
    T const ratio = math::exp(l - old);
    return is_outside(ratio, advantage) ? T(0) : -advantage * ratio;
  }

 private:
  template <class T>
  PIPE_HD static PIPE_INLINE bool is_outside(T ratio, T advantage) {
    return advantage > T(0) ? ratio > T(1.2) : ratio < T(0.8);
  }
};

}  // namespace

TEST_CASE("weights and sums are PyTorch's", "[golden]") {
  check<CrossEntropyWith<Classes>>("class_weights");
  check<CrossEntropyWith<Classes, LabelSmoothing<1, 4>>>("class_weights.smoothing");
  check<CrossEntropyWith<Classes, LabelSmoothing<1, 4>, Reduction<Sum>>>("class_weights.sum");
  check<CrossEntropyWith<Weights<"weight">>>("weights");
  check<MSEWith<Weights<"weight">>>("weights.mse");
  check<BCEWith<PosWeight<7, 2>, Reduction<Sum>>>("positive_weight");
}
TEST_CASE("a clipped policy gradient is PyTorch's", "[golden]") { check<Clipped>("clipped"); }
