// SPDX-License-Identifier: BSL-1.0
//
// The type lists of the front end: no other header has lists of layer types. A layer is a type with
// a static `describe(builder&)`; a layer that is made of others lists them in `parts`. The leaf
// types of a model are all layer types in it: plain values refer to a leaf type by its index.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <type_traits>
#include <utility>

#include <pipe/base/text.hpp>

namespace pp::detail {

/// A list of layer types.
template <class... L>
struct layers {};

/// Whether any value of a list is true. A loop, since clang++ limits the operands of a fold to 256,
/// and a model may have more leaves.
constexpr bool any_of(std::initializer_list<bool> all) {
  for (bool const one : all)
    if (one) return true;
  return false;
}

/// Concatenation of lists.
template <class... A, class... B>
constexpr layers<A..., B...> operator+(layers<A...>, layers<B...>) {
  return {};
}

/// A layer that only lists other layers (`Seq`, `Repeat`, `Named`): the model may be cut between
/// its parts. Its static `enter` and `leave`, if any, are called around each repetition of the
/// parts.
template <class L>
concept opened = requires { L::times; };

/// A layer that joins the results of its parts (`Residual`, `SumOf`): the model is cut between the
/// parts only inside a `CutInside`.
template <class L>
concept joins_parts = requires { L::joins_parts; };

/// The formulas of L beside its own: types that an op refers to as it does to a layer type.
template <class L>
constexpr auto formulas_of() {
  if constexpr (requires { typename L::formulas; })
    return typename L::formulas{};
  else
    return layers<>{};
}

/// A layer type, followed by its formulas and the layer types of its parts, recursively.
template <class L>
struct leaves_of {
  using type = decltype(layers<L>{} + formulas_of<L>());
};
template <class L>
  requires requires { typename L::parts; }
struct leaves_of<L> {
  template <class... P>
  static constexpr auto join(layers<P...>) {
    return ((layers<L>{} + formulas_of<L>()) + ... + typename leaves_of<P>::type{});
  }
  using type = decltype(join(typename L::parts{}));
};

/// Every layer type in L..., parts included, in order of appearance, with repetitions.
template <class... L>
using all_leaves = decltype((layers<>{} + ... + typename leaves_of<L>::type{}));

/// The length of a list.
template <class... L>
constexpr int leaf_count(layers<L...>) {
  return int(sizeof...(L));
}

/// The first index of L among the leaves, so that equal layers have equal indices.
template <class L, class... Leaves>
constexpr int leaf_index(layers<Leaves...>) {
  bool const same[] = {std::is_same_v<L, Leaves>..., true};
  int i = 0;
  while (!same[i]) ++i;
  return i;
}

/// A type as a value: the address of a variable that each type has. With -fsanitize=undefined, g++
/// does not compare addresses in constant expressions; then the value is the type's name, as text.
template <class L>
inline constexpr char leaf_address = 0;
#ifdef __clang__
inline constexpr bool has_leaf_addresses = true;
#else
inline constexpr bool has_leaf_addresses =
    __builtin_constant_p(&leaf_address<int> == &leaf_address<char>);
#endif
template <class L>
constexpr char const* leaf_key() {
  if constexpr (has_leaf_addresses)
    return &leaf_address<L>;
  else
    return __PRETTY_FUNCTION__;
}
/// The hash bucket of a type, below leaf_buckets: from the length of its name, so most types have a
/// bucket of their own.
inline constexpr int leaf_buckets = 61;
template <class L>
constexpr int leaf_bucket() {
  return int(__builtin_strlen(__PRETTY_FUNCTION__) % leaf_buckets);
}

/// A hash table of the types of a list, each type once. Its own type depends on the length of the
/// list only.
template <std::size_t Count>
struct leaf_directory {
  struct entry {
    char const* key = nullptr;
    int next = -1;
  };
  entry entries[Count + 1]{};
  int first[leaf_buckets]{};

  constexpr leaf_directory(char const* const* keys, int const* buckets) {
    for (int& f : first) f = -1;
    for (int i = 0; i < int(Count); ++i)
      if (int& begin = first[buckets[i]]; find(keys[i], begin) < 0)
        entries[i] = entry{keys[i], begin}, begin = i;
  }
  /// The first index of L, or the length of the list.
  template <class L>
  constexpr int index_of() const {
    int const i = find(leaf_key<L>(), first[leaf_bucket<L>()]);
    return i >= 0 ? i : int(Count);
  }

 private:
  /// The entry of a key, in the list from entry i on; -1: none.
  constexpr int find(char const* key, int i) const {
    while (i >= 0 && (has_leaf_addresses ? entries[i].key != key
                                         : __builtin_strcmp(entries[i].key, key) != 0))
      i = entries[i].next;
    return i;
  }
};

/// Base of a class that looks up the indices of leaves. The name of its type has their number, not
/// the list.
template <std::size_t Count>
class leaf_finder {
 public:
  using directory = leaf_directory<Count>;
  constexpr explicit leaf_finder(directory const& all) : all_(&all) {}
  /// The first index of L, or the number of leaves.
  template <class L>
  constexpr int index_of() const {
    return all_->template index_of<L>();
  }

 private:
  directory const* all_;
};

/// Whether types with equal names are equal types. Two closure types in a function may have one
/// name.
template <class... L>
constexpr bool names_tell_apart() {
  char const* const keys[] = {leaf_key<L>()..., nullptr};
  auto const alike = []<class A>(std::type_identity<A>) {
    return (0 + ... + int(std::is_same_v<A, L>));
  };
  int const types[] = {alike(std::type_identity<L>{})..., 0};
  for (int i = 0; i < int(sizeof...(L)); ++i) {
    int names = 0;
    for (int k = 0; k < int(sizeof...(L)); ++k) names += __builtin_strcmp(keys[i], keys[k]) == 0;
    if (names != types[i]) return false;
  }
  return true;
}

/// The directory of a list.
template <class List>
inline constexpr int directory_of = 0;
template <class... L>
inline constexpr leaf_directory<sizeof...(L)> directory_of<layers<L...>> = [] {
  char const* const keys[] = {leaf_key<L>()..., nullptr};
  int const buckets[] = {leaf_bucket<L>()..., 0};
  if constexpr (!has_leaf_addresses)
    static_assert(names_tell_apart<L...>(),
                  "pipe: two layer types have one name: -fsanitize=undefined needs other names");
  return leaf_directory<sizeof...(L)>(keys, buckets);
}();

/// The index of a type by overload resolution on a base class: constant depth for any length.
template <std::size_t Index, class L>
struct indexed_leaf {};
/// A list as a class, with a base indexed_leaf<Index, L> for each of its types.
template <class, class>
struct leaf_table;
template <std::size_t... Is, class... L>
struct leaf_table<std::index_sequence<Is...>, layers<L...>> : indexed_leaf<Is, L>... {};
template <std::size_t Index, class L>
std::type_identity<L> select_leaf(indexed_leaf<Index, L> const&);

template <int Index, class List>
struct leaf_at_index;
template <int Index, class... L>
struct leaf_at_index<Index, layers<L...>> {
  using table = leaf_table<std::index_sequence_for<L...>, layers<L...>>;
  using type =
      typename decltype(select_leaf<std::size_t(Index)>(std::declval<table const&>()))::type;
};

/// The leaf type with index `Index`.
template <int Index, class List>
using leaf_at = typename leaf_at_index<Index, List>::type;

/// Whether L is an input, which is not a layer.
template <class L>
inline constexpr bool is_input = requires { L::input; };

/// A layer with a user-given name.
template <class L>
concept has_name = requires { L::name; };

/// Whether L repeats its parts (`Repeat`): names number the copies from 0, even a single copy.
template <class L>
inline constexpr bool makes_copies = requires { L::makes_copies; };

/// The type under which L is reported: L::written if there is one, else L.
template <class L>
constexpr auto written_type() {
  if constexpr (requires { typename L::written; })
    return std::type_identity<typename L::written>{};
  else
    return std::type_identity<L>{};
}
template <class L>
using as_written = typename decltype(written_type<L>())::type;

/// Whether L only adds settings to the one layer inside it (`Frozen`, `Group`): it has no place in
/// names.
template <class L>
inline constexpr bool decorates_one = false;
template <class L>
  requires requires { L::decorates; }
inline constexpr bool decorates_one<L> = leaf_count(typename L::parts{}) == 1;

/// Whether L contributes a name to the list in which it stands: its own name, or the name of the
/// layer that L decorates.
template <class L>
constexpr bool brings_name() {
  if constexpr (decorates_one<L>)
    return []<class Part>(layers<Part>) { return brings_name<Part>(); }(typename L::parts{});
  else
    return has_name<L>;
}

/// Whether a layer has several parameters with user-given names.
template <class L>
inline constexpr bool names_parameters = false;
template <class L>
  requires requires { L::names_parameters; }
inline constexpr bool names_parameters<L> = L::names_parameters;

/// Whether any of the layers has a user-given name, or parameters with such names.
template <class... L>
constexpr bool some_have_names(layers<L...>) {
  return any_of({false, (has_name<L> || names_parameters<L>)...});
}

/// Whether L is a base such as `Activation<F>`, written in a model in place of the layer F that is
/// derived from L. In such a base, `derived` is F.
template <class L>
inline constexpr bool is_base_alone = false;
template <class L>
  requires requires { typename L::derived; }
inline constexpr bool is_base_alone<L> = !std::is_base_of_v<typename L::derived, L>;

/// Whether L should list other layers but lists none: `Residual<>`. (The parts of a loss are
/// options.)
template <class L>
inline constexpr bool has_no_parts = false;
template <class L>
  requires(
              requires { typename L::parts; } && !requires { L::labels_are_ids; })
inline constexpr bool has_no_parts<L> = leaf_count(typename L::parts{}) == 0;

/// Whether L shares the parameters of a named layer (`Tied`).
template <class L>
inline constexpr bool is_tied = requires { L::tied_name; };
/// The number of leaves that share the parameters of a named layer.
template <class... L>
constexpr int count_tied(layers<L...>) {
  int count = 0;
  for (bool const one : {false, is_tied<L>...}) count += one;
  return count;
}

/// The length of a list of leaves, used in place of the list where no layer is tied to another.
template <int Count>
struct counted_leaves {};
template <int Count>
constexpr int leaf_count(counted_leaves<Count>) {
  return Count;
}
template <int Count>
constexpr int count_tied(counted_leaves<Count>) {
  return 0;
}
/// The argument of the builder's type for a model's leaves: the list if layers are tied, else its
/// length only. Compilers write out the names of all instances of the builder's functions, each
/// with this argument.
template <class List>
using known_leaves =
    std::conditional_t<(count_tied(List{}) > 0), List, counted_leaves<leaf_count(List{})>>;

/// The index of the leaf that gives a layer the name `Name`, or -1.
template <Text Name, class... L>
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
  bool const all[] = {wanted(std::type_identity<L>{})..., true};
  int i = 0;
  while (!all[i]) ++i;
  return i < int(sizeof...(L)) ? i : -1;
}
/// The `layer` of leaf Index, which gives this layer its name; void for index -1.
template <int Index, class Leaves>
struct named_by {
  using type = typename leaf_at<Index, Leaves>::layer;
};
template <class Leaves>
struct named_by<-1, Leaves> {
  using type = void;
};
/// The layer type with name `Name` among the leaves; void if there is none.
template <Text Name, class Leaves>
using named_layer = typename named_by<naming_leaf<Name>(Leaves{}), Leaves>::type;

}  // namespace pp::detail
