// SPDX-License-Identifier: BSL-1.0
//
// The front end's only type lists. A layer is a type with a static `describe(builder&)`; one made
// of other layers names them in `parts`. The leaf types of a model are all layer types that occur
// in it: plain values refer to them by index.
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>

#include <pipe/base/text.hpp>

namespace pp {

/// A list of layer types.
template <class... L>
struct layers {};

template <class... A, class... B>
constexpr layers<A..., B...> operator+(layers<A...>, layers<B...>) {
  return {};
}

/// A layer that only lists others (`Seq`, `Repeat`, `Named`): a cut of the model may fall between
/// its parts. Static `enter` and `leave`, where it has them, are called around each of its
/// repetitions.
template <class L>
concept opened = requires { L::times; };

template <class L>
struct leaves_of {
  using type = layers<L>;
};
template <class L>
  requires requires { typename L::parts; }
struct leaves_of<L> {
  template <class... P>
  static constexpr auto join(layers<P...>) {
    return (layers<L>{} + ... + typename leaves_of<P>::type{});
  }
  using type = decltype(join(typename L::parts{}));
};

/// Every layer type in L..., parts included, in order of appearance; repetitions stay.
template <class... L>
using all_leaves = decltype((layers<>{} + ... + typename leaves_of<L>::type{}));

template <class... L>
constexpr int leaf_count(layers<L...>) {
  return int(sizeof...(L));
}

/// Where L stands first among the leaves, so that equal layers have equal numbers.
template <class L, class... Leaves>
constexpr int leaf_index(layers<Leaves...>) {
  bool const same[] = {std::is_same_v<L, Leaves>..., true};
  int i = 0;
  while (!same[i]) ++i;
  return i;
}

template <std::size_t I, class L>
struct indexed_leaf {};
template <class, class>
struct leaf_table;
template <std::size_t... I, class... L>
struct leaf_table<std::index_sequence<I...>, layers<L...>> : indexed_leaf<I, L>... {};
template <std::size_t I, class L>
std::type_identity<L> select_leaf(indexed_leaf<I, L> const&);

template <int I, class List>
struct leaf_at_index;
template <int I, class... L>
struct leaf_at_index<I, layers<L...>> {
  using table = leaf_table<std::index_sequence_for<L...>, layers<L...>>;
  using type = typename decltype(select_leaf<std::size_t(I)>(std::declval<table const&>()))::type;
};

/// Back from a value to a type: the I-th leaf.
template <int I, class List>
using leaf_at = typename leaf_at_index<I, List>::type;

/// Inputs, which are not layers.
template <class L>
inline constexpr bool is_input = requires { L::input; };

/// A layer that a user gave a name.
template <class L>
concept has_name = requires { L::name; };

/// Makes copies of what is inside it (`Repeat`), which count from 0 in names, also a single one.
template <class L>
inline constexpr bool makes_copies = requires { L::makes_copies; };

/// Says something about the one layer inside it and is none itself (`Frozen`, `Group`): it has no
/// place in names.
template <class L>
inline constexpr bool decorates_one = false;
template <class L>
  requires requires { L::decorates; }
inline constexpr bool decorates_one<L> = leaf_count(typename L::parts{}) == 1;

/// Whether a name stands where L stands in a list: L's own, or that of the layer which L decorates.
template <class L>
constexpr bool brings_name() {
  if constexpr (decorates_one<L>)
    return []<class Part>(layers<Part>) { return brings_name<Part>(); }(typename L::parts{});
  else
    return has_name<L>;
}

/// A layer whose several parameters a user gave their names.
template <class L>
inline constexpr bool names_parameters = false;
template <class L>
  requires requires { L::names_parameters; }
inline constexpr bool names_parameters<L> = L::names_parameters;

/// Whether a layer, or a parameter beside others of its layer, has a name of the user's.
template <class... L>
constexpr bool some_have_names(layers<L...>) {
  return ((has_name<L> || names_parameters<L>) || ...);
}

/// The base from which a user derives a layer F, `activation<F>`, named in its place. Such a base
/// calls F `derived`.
template <class L>
inline constexpr bool is_base_alone = false;
template <class L>
  requires requires { typename L::derived; }
inline constexpr bool is_base_alone<L> = !std::is_base_of_v<typename L::derived, L>;

/// Made of other layers, of which there is none: `Residual<>`.
template <class L>
inline constexpr bool has_no_parts = false;
template <class L>
  requires(
              requires { typename L::parts; } &&
              !requires { L::labels_are_ids; })  // the parts of a loss are options
inline constexpr bool has_no_parts<L> = leaf_count(typename L::parts{}) == 0;

/// How many of the leaves share the parameters of a layer with a name.
template <class... L>
constexpr int count_tied(layers<L...>) {
  return (0 + ... + int(requires { L::tied_name; }));
}

/// Which leaf gives that name to a layer, or -1.
template <text Name, class... L>
constexpr int naming_leaf(layers<L...>) {
  auto const wanted = []<class T>(std::type_identity<T>) {
    if constexpr (requires {
                    typename T::layer;
                    T::name;
                  })
      return T::name.view() == Name.view();
    else
      return false;
  };
  int i = 0, found = -1;
  ((found = found < 0 && wanted(std::type_identity<L>{}) ? i : found, ++i), ...);
  return found;
}
template <int I, class Leaves>
struct named_by {
  using type = typename leaf_at<I, Leaves>::layer;
};
template <class Leaves>
struct named_by<-1, Leaves> {
  using type = void;
};
/// The layer type that a name was given to, among the leaves; void if there is none.
template <text Name, class Leaves>
using named_layer = typename named_by<naming_leaf<Name>(Leaves{}), Leaves>::type;

}  // namespace pp
