// SPDX-License-Identifier: BSL-1.0
//
// Names of types are the same under every compiler: this file is read by g++, clang++ and nvcc.
#include "catch.hpp"

#include <pipe/base/text.hpp>
#include <pipe/base/type_name.hpp>
#include <pipe/nn/images/image_pool.hpp>

namespace pp {
struct Norm;
template <int...>
struct Wide;
template <class...>
struct Chain;
template <Text Name, class... L>
struct Called;
template <int N>
struct array {
  int items[N];
};
template <array A>
struct Sized;
template <auto Value>
struct Valued;
}  // namespace pp

namespace app {
struct pp_like;
struct extents {
  int high, wide;
};
namespace pp {
struct Inner;
}
}  // namespace app

namespace {
struct Hidden;
}

static_assert(pp::detail::type_name<pp::Norm>() == "Norm");
static_assert(pp::detail::type_name<int>() == "int");
static_assert(pp::detail::type_name<pp::Wide<1, 22, 333>>() == "Wide<1, 22, 333>");
static_assert(pp::detail::type_name<pp::Wide<>>() == "Wide<>");
static_assert(pp::detail::type_name<pp::Chain<pp::Norm, pp::Chain<pp::Wide<3>>>>() ==
              "Chain<Norm, Chain<Wide<3>>>");
static_assert(pp::detail::type_name<pp::Chain<Hidden, app::pp_like>>() ==
              "Chain<Hidden, app::pp_like>");
static_assert(pp::detail::type_name<app::pp::Inner>() == "app::pp::Inner");
static_assert(pp::detail::type_name<pp::Called<"skip">>() == R"(Called<"skip">)");
static_assert(
    pp::detail::type_name<pp::Chain<pp::Called<"">, pp::Called<"a, b", pp::Wide<2>>, pp::Norm>>() ==
    R"(Chain<Called<"">, Called<"a, b", Wide<2>>, Norm>)");
static_assert(pp::detail::type_name<pp::Called<R"(")">>() == R"(Called<"\"">)");
#if defined(__clang_major__) && __clang_major__ < 15  // it spells ten characters
static_assert(pp::detail::type_name<pp::Called<"encoder-output">>() ==
              R"(Called<"encoder-ou...">)");
static_assert(pp::detail::type_name<pp::Called<R"('"\ > },)">>() == R"(Called<"'\"\\ > },">)");
#else
static_assert(pp::detail::type_name<pp::Called<"encoder-output">>() ==
              R"(Called<"encoder-output">)");
static_assert(pp::detail::type_name<pp::Called<R"('"\ > }, pp::Text<2>{"x"})">>() ==
              R"(Called<"'\"\\ > }, pp::Text<2>{\"x\"}">)");
#endif
static_assert(pp::detail::type_name<pp::Called<"caf\u00e9 5">>() == "Called<\"caf\u00e9 5\">");
static_assert(pp::detail::type_name<pp::Called<"\t5">>() == "Called<\"\t5\">");
// An array of numbers is no text, however a compiler spells it.
static_assert(pp::detail::type_name<pp::Sized<pp::array<3>{64, 0, 0}>>().find('"') ==
              std::string_view::npos);
static_assert(pp::detail::type_name<pp::Sized<pp::array<2>{999, 0}>>().find('"') ==
              std::string_view::npos);
static_assert(pp::detail::type_name<pp::Sized<pp::array<2>{-300, 0}>>().find('"') ==
              std::string_view::npos);
static_assert(pp::detail::type_name<pp::Sized<pp::array<2>{64, 65}>>().find('"') ==
              std::string_view::npos);
static_assert(pp::detail::type_name<pp::Sized<pp::array<2>{1, 0}>>().find('"') ==
              std::string_view::npos);

// The extents of a window as a program spells them, and other pairs as the compiler does.
#if !defined(__clang_major__) || __clang_major__ > 14  // which spells no types of values
static_assert(pp::detail::type_name<pp::MaxPool2d<pp::Axes<-1, 22>, pp::Stride<2, 3>>>() ==
              "MaxPool2d<Axes<-1, 22>, Stride<2, 3>>");
#endif
static_assert(pp::detail::type_name<pp::Valued<app::extents{1, 7}>>().find("Axes") ==
              std::string_view::npos);

// Whose a type is: only the outermost namespace counts.
static_assert(pp::detail::is_of_this_library<pp::Norm> &&
              pp::detail::is_of_this_library<pp::Chain<app::pp_like>>);
static_assert(!pp::detail::is_of_this_library<app::pp_like> &&
              !pp::detail::is_of_this_library<app::pp::Inner>);
static_assert(!pp::detail::is_of_this_library<Hidden> && !pp::detail::is_of_this_library<double>);

TEST_CASE("a type's name is text that stays") {
  CHECK(pp::detail::type_name<pp::Norm>().data() == pp::detail::type_name<pp::Norm>().data());
  CHECK(std::string(pp::detail::type_name<pp::Chain<double>>()) == "Chain<double>");
}
