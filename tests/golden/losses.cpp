// SPDX-License-Identifier: BSL-1.0
//
// Every loss and its options against PyTorch: the loss, and the gradients of a small network before
// it. The cases are those of loss_cases() in write_golden.py.
#include "golden/record.hpp"
#include "../../examples/cart_pole/clipped.hpp"

using namespace pp;

namespace {

template <class Loss>
struct Ends : Model<Input<3, 5>, Linear<8>, Tanh, Linear<11>, Loss> {};

/// Rows of an anchor, a positive and a negative of four numbers each, or of two halves.
template <class Loss>
struct Triplets : Model<Input<3, 5>, Linear<8>, Tanh, Linear<12>, Loss> {};

/// Two rows of length 1 for each row.
struct Contrasted : Model<Input<3, 5>, Linear<8>, Tanh,
                          ConcatOf<Seq<Linear<6>, Normalize>, Seq<Linear<6>, Normalize>>,
                          InfoNCE<7, 100, Symmetric>> {};

template <class Loss>
void check(char const* name) {
  golden::check_in_two<Ends<Loss>>("losses", name);
}

}  // namespace

TEST_CASE("CrossEntropy is PyTorch's", "[golden]") {
  check<CrossEntropy>("cross_entropy");
  check<CrossEntropy>("ignored");
  check<With<CrossEntropy, ZLoss<1, 8>, LabelSmoothing<1, 4>>>("all_terms");
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
  check<L1Loss>("l1");
  check<FocalLoss<>>("focal");
  check<FocalLoss<0, 3, 4>>("focal_0");
}
TEST_CASE("losses by rows are PyTorch's", "[golden]") {
  check<SoftCrossEntropy>("soft_cross_entropy");
  check<KLDivLoss>("kl_divergence");
  golden::check_in_two<Triplets<TripletMarginLoss<>>>("losses", "triplet");
  golden::check_in_two<Triplets<TripletMarginLoss<1, 2>>>("losses", "triplet_half");
}

TEST_CASE("losses of all rows of a micro-batch are PyTorch's", "[golden]") {
  golden::check_in_two<Triplets<InfoNCE<1, 4>>>("losses", "info_nce");
  golden::check_in_two<Contrasted>("losses", "info_nce.symmetric");
  golden::check_in_two<Contrasted>("losses", "info_nce.three_samples");
}

namespace {

using Classes = ClassWeights<1, 5, 2, 0, 3, 1, 4, 2, 1, 6, 2>;

}  // namespace

TEST_CASE("weights and sums are PyTorch's", "[golden]") {
  check<With<CrossEntropy, Classes, LabelSmoothing<1, 4>>>("class_weights.smoothing");
  check<With<CrossEntropy, Classes, LabelSmoothing<1, 4>, Reduction<Sum>>>("class_weights.sum");
  check<With<CrossEntropy, Weights<"weight">>>("weights");
  check<With<MSE, Weights<"weight">>>("weights.mse");
  check<With<BCE, PosWeight<7, 2>, Reduction<Sum>>>("positive_weight");
}

namespace {

/// Each loss has rows of its own to leave out, so each is a mean over another number of terms.
struct Several
    : Model<Input<3, 5>, Linear<8>, Tanh, Stash<"early">, Linear<11>, Stash<"late">,
            Losses<CrossEntropy,
                   FurtherLoss<"kind", "early", LossWeight<1, 2>, Linear<4>, ReLU, Linear<4>,
                               With<CrossEntropy, LabelSmoothing<1, 10>>>,
                   FurtherLoss<"size", "late", LossWeight<2>, Flatten, Linear<2>, MSE>>> {};

}  // namespace

TEST_CASE("several losses are the sum of PyTorch's", "[golden]") {
  golden::check_in_two<Several>("losses", "several");
}
TEST_CASE("a clipped policy gradient is PyTorch's", "[golden]") { check<Clipped>("clipped"); }
