// SPDX-License-Identifier: BSL-1.0
//
// What puts layers together against PyTorch: residuals, named values, further inputs, shared and
// frozen parameters. The models are those of layer_cases() in write_golden.py.
#include "golden/record.hpp"

using namespace pp;

namespace {

template <class M>
void check(char const* name) {
  golden::check_in_two<M>("layers", name);
}

struct Residuals
    : Model<Input<3, 5>, Linear<6>, Residual<LayerNorm, Linear<9>, GELUTanh, Linear<6>>,
            Residual<Residual<Tanh>, Linear<6>>, Linear<2>, MSE> {};
struct Flat : Model<Input<2, 3, 2>, Linear<4>, Tanh, Flatten, Linear<3>, MSE> {};
struct PartlyFrozen : Model<Input<5>, Linear<7>, Tanh, Frozen<Linear<6>>, Tanh, Linear<3>, MSE> {};
struct Skips : Model<Input<4>, Linear<6>, Stash<"outer">, ReLU, Linear<5>, Stash<"inner">, GELUTanh,
                     Linear<5>, Pop<"inner">, Linear<4>, Pop<"outer", Concat>, LayerNorm, Linear<5>,
                     Pop<"inner">, Linear<3>, MSE> {};
struct Inputs : Model<Input<4, 3>, Linear<5>, Tanh, Stash<"left">, Named<"second", Tokens<9, 4>>,
                      Embedding<5>, Pop<"left">, Stash<"both">, Named<"third", Input<4, 5>>,
                      Pop<"both">, Linear<2>, MSE> {};
struct Joins
    : Model<Input<3, 4>, Linear<6>, Stash<"first">,
            ProductOf<Seq<Linear<5>, Sigmoid>, Linear<5, NoBias>, Linear<5>>, Stash<"second">,
            DifferenceOf<Tanh, Linear<5>>, Linear<6>, Pop<"first", Multiply>, Linear<5>,
            Pop<"second", Subtract>, ConcatOf<Tanh, SumOf<Linear<3>, Linear<3>>>, Linear<2>, MSE> {
};
/// Rows compared, of a stashed value and of branches that begin with further inputs.
template <class How, template <class, class> class Of>
struct Compares : Model<Input<3, 4>, Linear<6>, Stash<"first">, Linear<6>, Pop<"first", How>,
                        Flatten, Linear<5>, ConcatOf<Identity, Named<"more", Input<3>>>, Linear<6>,
                        Of<Seq<Linear<7>, Tanh>, Seq<Named<"other", Input<4>>, Linear<7>>>, MSE> {};
struct TiedTable : Model<Tokens<11, 4>, Named<"table", Embedding<6>>, Positions, Stash<"left">,
                         Named<"right", Tokens<11, 4>>, Tied<"table">, Pop<"left">, LayerNorm,
                         Tied<"table">, CrossEntropy> {};
struct TiedBlock
    : Model<Input<3, 6>, Named<"block", Seq<Residual<LayerNorm, Attention<2>>, Linear<6>>>, Tanh,
            Repeat<2, Tied<"block">>, Linear<4>, MSE> {};

}  // namespace

TEST_CASE("what puts layers together gives PyTorch's numbers", "[golden]") {
  check<Residuals>("residual");
  check<Flat>("flatten");
  check<PartlyFrozen>("frozen");
}
TEST_CASE("named values and further inputs give PyTorch's numbers", "[golden]") {
  check<Skips>("skips");
  check<Inputs>("inputs");
}
TEST_CASE("sums, differences and products of values give PyTorch's numbers", "[golden]") {
  check<Joins>("joins");
}
TEST_CASE("values that are compared row by row give PyTorch's numbers", "[golden]") {
  check<Compares<Dot, DotOf>>("dot");
  check<Compares<CosineSimilarity, CosineSimilarityOf>>("cosine");
  check<Compares<PairwiseDistance, PairwiseDistanceOf>>("distance");
}
TEST_CASE("shared weights give PyTorch's numbers", "[golden]") {
  check<TiedTable>("tied_table");
  check<TiedBlock>("tied_block");
}
