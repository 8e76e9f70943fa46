// SPDX-License-Identifier: BSL-1.0
//
// What parameters are called in files, and that a trainer's weights go out and come in again,
// whatever its stages.
#include "catch.hpp"

#include <filesystem>

#include <pipe/weights/weights.hpp>

#include "laws/data.hpp"
#include "system_calls.hpp"

using namespace pp;
using namespace pp::detail;

namespace {

// [names]
struct Net : Model<Tokens<11, 4>, Named<"words", Embedding<6>>, Positions,
                   Repeat<2, Residual<LayerNorm, Attention<2>>,
                          Residual<RMSNorm, Linear<9, NoBias>, GELUTanh, Linear<6>>>,
                   Repeat<2, Named<"mix", Linear<6>>>, Seq<ReLU, Linear<5>>, Frozen<Linear<6>>,
                   Tied<"words">, CrossEntropy> {};
// [/names]

template <class... More>
using Small = Pipeline<Net, PortableHost, MicroBatches<2>, More...>;

struct temporary {
  std::string path =
      (std::filesystem::temp_directory_path() / ("pipe_names_" + std::to_string(::getpid())))
          .string();
  ~temporary() { std::filesystem::remove(path); }
};

}  // namespace

TEST_CASE("parameters are called as PyTorch calls those of a Sequential", "[train]") {
  Small<> trainer;
  std::string all;
  for (auto const& p : trainer.parameters()) {
    all += p.name;
    for (long const n : p.file_shape) all += " " + std::to_string(n);
    all += "\n";
  }
  CHECK(all ==
        "words.weight 11 6\n1.weight 4 6\n"
        "2.0.0.0.weight 6\n2.0.0.0.bias 6\n2.0.0.1.in_proj_weight 18 6\n2.0.0.1.in_proj_bias 18\n"
        "2.0.0.1.out_proj.weight 6 6\n2.0.0.1.out_proj.bias 6\n"
        "2.0.1.0.weight 6\n2.0.1.1.weight 9 6\n2.0.1.3.weight 6 9\n2.0.1.3.bias 6\n"
        "2.1.0.0.weight 6\n2.1.0.0.bias 6\n2.1.0.1.in_proj_weight 18 6\n2.1.0.1.in_proj_bias 18\n"
        "2.1.0.1.out_proj.weight 6 6\n2.1.0.1.out_proj.bias 6\n"
        "2.1.1.0.weight 6\n2.1.1.1.weight 9 6\n2.1.1.3.weight 6 9\n2.1.1.3.bias 6\n"
        "3.0.mix.weight 6 6\n3.0.mix.bias 6\n3.1.mix.weight 6 6\n3.1.mix.bias 6\n"
        "4.1.weight 5 6\n4.1.bias 5\n5.weight 6 5\n5.bias 6\n");
}

namespace {

using Body = Seq<Linear<4>, Tanh, Named<"out", Linear<4>>>;
template <class... Layers>
struct Of : Model<Input<3>, Linear<4>, Layers..., Linear<2>, MSE> {};

template <class M>
std::string names() {
  std::string all;
  for (parameter_name const& p : parameter_names<M>()) all += std::string(p.name) + " ";
  return all;
}

}  // namespace

TEST_CASE("what decorates a layer has no place in names", "[train]") {
  using Slow = LearningRate<1, 10>;
  CHECK(names<Of<Frozen<Body>>>() == names<Of<Body>>());
  CHECK(names<Of<Group<Slow, Body>>>() == names<Of<Body>>());
  CHECK(names<Of<Group<Init<Zeros>, Frozen<Group<Slow, Body>>>>>() == names<Of<Body>>());
  CHECK(names<Of<Frozen<Linear<4>>>>() == "0.weight 0.bias 1.weight 1.bias 2.weight 2.bias ");
  CHECK(names<Of<Frozen<Residual<Body>>>>() == names<Of<Residual<Body>>>());
  CHECK(names<Of<Residual<Frozen<Body>>>>() == names<Of<Residual<Body>>>());

  std::string const body = names<Of<Named<"body", Body>>>();
  CHECK(body ==
        "0.weight 0.bias body.0.weight body.0.bias body.out.weight body.out.bias 2.weight 2.bias ");
  CHECK(names<Of<Frozen<Named<"body", Body>>>>() == body);
  CHECK(names<Of<Named<"body", Frozen<Body>>>>() == body);
  CHECK(names<Of<Group<Slow, Frozen<Named<"body", Group<Slow, Body>>>>>>() == body);
  CHECK(names<Of<Named<"a", Frozen<Named<"b", Body>>>>>() ==
        names<Of<Named<"a", Named<"b", Body>>>>());

  CHECK(names<Of<Repeat<2, Frozen<Body>>>>() == names<Of<Repeat<2, Body>>>());
  CHECK(names<Of<Frozen<Repeat<2, Body>>>>() == names<Of<Repeat<2, Body>>>());
  CHECK(names<Of<Repeat<2, Frozen<Named<"mix", Body>>>>>() ==
        names<Of<Repeat<2, Named<"mix", Body>>>>());
  CHECK(names<Of<Frozen<Body, Body>>>() == names<Of<Seq<Body, Body>>>());
  CHECK(names<Of<Group<Slow, Named<"a", Body>, Body>>>() ==
        names<Of<Seq<Named<"a", Body>, Body>>>());
}

TEST_CASE("copies count from 0, also a single one", "[train]") {
  using A = Linear<4>;
  CHECK(names<Of<Repeat<1, A, Tanh, A>>>() ==
        "0.weight 0.bias 1.0.0.weight 1.0.0.bias 1.0.2.weight 1.0.2.bias 2.weight 2.bias ");
  CHECK(names<Of<Repeat<1, A>>>() == "0.weight 0.bias 1.0.weight 1.0.bias 2.weight 2.bias ");
  CHECK(names<Of<Repeat<1, Named<"mix", A>>>>() ==
        "0.weight 0.bias 1.0.mix.weight 1.0.mix.bias 2.weight 2.bias ");

  auto const first_copy_is_the_only_one =
      []<class... L>(detail::layers<L...>) {  // a deeper model takes up a shallow one
        std::string const one = names<Of<Repeat<1, L...>>>(), two = names<Of<Repeat<2, L...>>>();
        std::size_t const rest = one.find("2.weight");
        CHECK(one.substr(0, rest) == two.substr(0, rest));
        if (sizeof...(L) > 1) CHECK(one == names<Of<Repeat<1, Seq<L...>>>>());
      };
  first_copy_is_the_only_one(detail::layers<A, Tanh, A>{});
  first_copy_is_the_only_one(detail::layers<Body>{});
  first_copy_is_the_only_one(detail::layers<Named<"mix", A>, A>{});
  first_copy_is_the_only_one(detail::layers<Frozen<A>, Residual<A>>{});
  static_assert(Of<Repeat<1, Named<"mix", A>>, Named<"mix", A>>::valid);
}

namespace {

/// y = scale * x + shift, as far as names are concerned.
struct Affine {
  static constexpr int parameters = 2;
  static constexpr custom::parameter parameter(int i, sample_shape in) {
    return {1, in.columns(), i == 0 ? "scale" : "größe.2"};
  }
  static constexpr sample_shape result(sample_shape in) { return in; }
  template <class T>
  static void forward(custom::forward<T> const&) {}
  template <class T>
  static void input_gradient(custom::input_gradient<T> const&) {}
  template <class T>
  static void weight_gradient(custom::weight_gradient<T> const&) {}
};

}  // namespace

TEST_CASE("parameters of a Custom have the names that it gives them", "[train]") {
  CHECK(names<Of<Custom<Affine>, Repeat<2, Custom<Affine>>>>() ==
        "0.weight 0.bias 1.scale 1.größe.2 2.0.scale 2.0.größe.2 2.1.scale 2.1.größe.2 3.weight "
        "3.bias ");
}

TEST_CASE("names do not depend on how a model is cut", "[train]") {
  Small<> one;
  Small<Stages<5>> five;
  auto const a = one.parameters(), b = five.parameters();
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) CHECK(a[i].name == b[i].name);
}

TEST_CASE("weights go out of one trainer and into another", "[train]") {
  temporary const file;
  Small<> first({.seed = 1});
  Small<Stages<5>> second({.seed = 2});
  laws::sample_batch<Small<>> const data(3);
  first.step(data.view());
  save_weights(first, file.path);
  auto const before = laws::snapshot(second).values, expected = laws::snapshot(first).values;
  CHECK_FALSE(laws::same_numbers(expected, before));
  int failures = 0;
  for (bool failed = true; failed; ++failures) {  // whichever allocation fails, nothing has changed
    failed = failing_allocation::happened(failures, [&] { load_weights(second, file.path); });
    CHECK(laws::same_numbers(laws::snapshot(second).values, failed ? before : expected));
  }
  CHECK(failures > 100);
  CHECK(laws::same_numbers(laws::snapshot(first).values, laws::snapshot(second).values));
  CHECK(
      laws::same_bits(first.evaluate(data.view()), second.evaluate(data.view<Small<Stages<5>>>())));
}
