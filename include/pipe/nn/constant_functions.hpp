// SPDX-License-Identifier: BSL-1.0
//
// The check that the functions of a user-defined layer are constexpr: its shapes, its costs and its
// description are computed while the model compiles. One that is not constexpr would prevent the
// whole model from being a constant; here it is reported first, by name.
#pragma once

#include <initializer_list>
#include <type_traits>

#include <pipe/base/constant.hpp>
#include <pipe/base/type_name.hpp>
#include <pipe/graph/builder.hpp>
#include <pipe/graph/diagnostics.hpp>
#include <pipe/graph/layers.hpp>

namespace pp::detail {

/// Whether F::of<Extents...>::call() is a constant expression for some shape of 1 to 4 extents.
template <class F>
inline constexpr bool is_constant_for_some_shape =
    is_constant<typename F::template of<1>> || is_constant<typename F::template of<1, 1>> ||
    is_constant<typename F::template of<1, 1, 1>> ||
    is_constant<typename F::template of<1, 1, 1, 1>>;

/// A function of layer L that takes a shape.
template <class L, wrong::member Which>
struct function_of_shape {
  template <int... Extents>
  struct of {
    static constexpr auto call() {
      constexpr sample_shape in(Extents...);
      if constexpr (Which == wrong::member::result) return L::result(in);
      if constexpr (Which == wrong::member::parameter) return L::parameter(0, in);
      if constexpr (Which == wrong::member::buffer) return L::buffer(0, in);
      if constexpr (Which == wrong::member::saved_per_sample) return L::saved_per_sample(in);
      if constexpr (Which == wrong::member::flops) return L::flops(in);
    }
  };
  static constexpr bool exists(sample_shape in) {
    if constexpr (Which == wrong::member::result) return requires { L::result(in); };
    if constexpr (Which == wrong::member::parameter) return requires { L::parameter(0, in); };
    if constexpr (Which == wrong::member::buffer) return requires { L::buffer(0, in); };
    if constexpr (Which == wrong::member::saved_per_sample)
      return requires { L::saved_per_sample(in); };
    if constexpr (Which == wrong::member::flops) return requires { L::flops(in); };
  }
  static constexpr bool is_right = [] {
    if constexpr (exists(sample_shape(1)))
      return is_constant_for_some_shape<function_of_shape>;
    else
      return true;
  }();
};

/// The first function of Custom layer L that is not constexpr, or `none`.
template <class L>
constexpr wrong::member function_not_constexpr() {
  using enum wrong::member;
  if constexpr (!function_of_shape<L, result>::is_right)
    return result;
  else if constexpr (!function_of_shape<L, parameter>::is_right)
    return parameter;
  else if constexpr (!function_of_shape<L, buffer>::is_right)
    return buffer;
  else if constexpr (!function_of_shape<L, saved_per_sample>::is_right)
    return saved_per_sample;
  else if constexpr (!function_of_shape<L, flops>::is_right)
    return flops;
  else
    return none;
}

/// The builder of a model of layer L alone.
template <class L>
using builder_alone = builder<known_leaves<all_leaves<L>>>;

/// The description of layer L alone, after an input of four numbers.
template <class L>
struct description_alone {
  static constexpr auto call() {
    builder_alone<L> b(directory_of<all_leaves<L>>,
                       handle{operand{space::input, 0}, sample_shape(4)});
    L::describe(b);
    return b.ok();
  }
};

/// The counting run of a model, as a call that is perhaps not constant.
template <class Lowering>
struct measuring {
  static constexpr auto call() { return Lowering::measure(); }
};

/// A layer with user-defined functions: Custom.
template <class L>
concept brings_functions = requires { typename L::kernels; };
/// A layer described neither by this library nor by one of its bases.
template <class L>
concept describes_itself = !is_of_this_library<L> && !requires { typename L::derived; } &&
                           requires(builder_alone<L>& b) { L::describe(b); };

/// The first member of the user-defined layer L that is not constexpr, or `none`.
template <class L>
constexpr wrong::member part_not_constexpr() {
  if constexpr (brings_functions<L>)
    return function_not_constexpr<typename L::kernels>();
  else
    return is_constant<description_alone<L>> ? wrong::member::none : wrong::member::describe;
}

/// The fault of the functions of a model's layers. `Lowering::measure` calls all of them.
template <class Lowering, class... L>
constexpr model_fault fault_of_functions(layers<L...>) {
  model_fault fault;
  if constexpr (any_of({false, (brings_functions<L> || describes_itself<L>)...})) {
    if constexpr (!is_constant<measuring<Lowering>>) {
      int leaf = 0;
      bool is_found = false;
      auto const look = [&]<class Layer>(std::type_identity<Layer>) {
        if constexpr (brings_functions<Layer> || describes_itself<Layer>) {
          constexpr wrong::member found = part_not_constexpr<Layer>(),
                                  usual = brings_functions<Layer> ? wrong::member::result
                                                                  : wrong::member::describe;
          // none: constexpr, but not for the shape that it gets
          if (fault.ok() || (!is_found && found != wrong::member::none))
            fault = model_fault{.what = wrong::function_must_be_constexpr,
                                .layer = -1,
                                .leaf = leaf,
                                .function = found != wrong::member::none ? found : usual};
          is_found = is_found || found != wrong::member::none;
        }
        ++leaf;
      };
      (void)std::initializer_list<int>{(look(std::type_identity<L>{}), 0)...};
    }
  }
  return fault;
}

}  // namespace pp::detail
