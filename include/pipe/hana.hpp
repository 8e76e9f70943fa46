// SPDX-License-Identifier: BSL-1.0
//
// Models from computed lists: a Boost.Hana sequence of layer types stands wherever layers do, and
// so does a hana::type; the layers of a model are such a sequence again. The only header that needs
// Boost; not part of <pipe/pipe.hpp>, as the library's own work on lists is folds over packs.
//
// A template that takes layers is specialised for arguments with a sequence, and derived from the
// list that is written out (`written`): passes, names and files see that list, and a program
// without this header compiles nothing of it. Unpack takes decltype(items) and not items, since
// clang++ 14 has no template arguments of such class types, and a reference to a constant would
// make another type in every file. Functions take integral constants, such as 6_c.
#pragma once
#ifndef PIPE_SHOWS_WARNINGS
#pragma GCC system_header
#endif

#include <type_traits>
#include <utility>

#include <boost/hana/concept/foldable.hpp>
#include <boost/hana/core/is_a.hpp>
#include <boost/hana/tuple.hpp>
#include <boost/hana/type.hpp>
#include <boost/hana/unpack.hpp>

#include <pipe/graph/diagnostics.hpp>
#include <pipe/nn/branches.hpp>
#include <pipe/nn/compose.hpp>
#include <pipe/nn/group.hpp>
#include <pipe/nn/lora.hpp>
#include <pipe/nn/model.hpp>
#include <pipe/nn/named.hpp>
#include <pipe/nn/norm.hpp>
#include <pipe/nn/reversible.hpp>

namespace pp {

namespace wrong {
template <int>
struct Element;
}  // namespace wrong

namespace detail {

/// The type of a Hana sequence, or of anything else that hana::unpack takes apart: a set, an
/// optional.
template <class T>
inline constexpr bool is_sequence = boost::hana::Foldable<std::remove_cvref_t<T>>::value;

/// The type of a hana::type, as hana::type_c<L> is one.
template <class T>
inline constexpr bool is_hana_type =
    boost::hana::is_a<boost::hana::type_tag, std::remove_cvref_t<T>>;

/// What hana computes, and no layer is: a sequence, or a hana::type.
template <class T>
concept computed = is_sequence<T> || is_hana_type<T>;

/// layers<T...> for elements hana::type<T>..., where an element that is a sequence stands for
/// itself; otherwise the diagnosis of the first element that is neither.
struct types_of_elements {
  template <class E>
  static constexpr auto type_of(E const&) {
    if constexpr (is_hana_type<E>)
      return std::type_identity<typename E::type>{};
    else
      return std::type_identity<E>{};
  }
  template <class... E>
  constexpr auto operator()(E const&...) const {
    constexpr int count = sizeof...(E), wrong_at = first_without_type<E...>();
    if constexpr (wrong_at == count)
      return layers<typename decltype(type_of(std::declval<E const&>()))::type...>{};
    else
      return diagnosis_of<wrong::element_is_not_a_hana_type, wrong::Element<wrong_at>,
                          leaf_at<wrong_at, layers<E...>>>();
  }
  /// The index of the first element that is not a hana::type; sizeof...(E) if all are.
  template <class... E>
  static constexpr int first_without_type() {
    bool const fits[] = {computed<E>..., false};
    int i = 0;
    while (fits[i]) ++i;
    return i;
  }
};

/// The types of a sequence as layers<T...>, or a diagnosis as std::type_identity.
template <class Sequence>
constexpr auto unpack_types() {
  if constexpr (is_sequence<Sequence>)
    return decltype(boost::hana::unpack(std::declval<Sequence const&>(), types_of_elements{})){};
  else
    return diagnosis_of<wrong::sequence_of_hana_is_expected, Sequence>();
}
template <class Sequence>
using unpacked_types = decltype(unpack_types<std::remove_cvref_t<Sequence>>());

/// The types of an item of a list: of a sequence its own, of a hana::type the one that it holds, of
/// any other type that one.
template <class Item>
constexpr auto spliced_types() {
  if constexpr (is_sequence<Item>)
    return unpacked_types<Item>{};
  else if constexpr (is_hana_type<Item>)
    return layers<typename Item::type>{};
  else
    return layers<Item>{};
}
/// Concatenation; a diagnosis takes the place of the whole list.
template <class... A, class Found>
constexpr auto operator+(layers<A...>, std::type_identity<Found> found) {
  return found;
}
template <class Found, class Next>
constexpr auto operator+(std::type_identity<Found> found, Next) {
  return found;
}

/// Stand-in for a rejected list, so that the diagnosis is the only error.
template <template <class...> class List>
struct instead_of_list {
  using type = List<LayerNorm>;
};
template <>
struct instead_of_list<Model> {
  using type = Model<Input<1>, Linear<1>, MSE>;
};

/// List<T...> of layers<T...>; for a diagnosis, its message as a failed assertion, and a stand-in.
template <template <class...> class List, class Types>
struct listed {
  static_assert(decltype(detail::diagnosed(Types{}))::ok);
  using type = typename instead_of_list<List>::type;
};
template <template <class...> class List, class... T>
struct listed<List, layers<T...>> {
  using type = List<T...>;
};

/// A list in which some items are sequences: the list with their types in place of each.
template <template <class...> class List, class... Items>
using spliced = typename listed<List, decltype((layers<>{} + ... + spliced_types<Items>()))>::type;

/// The layer that an item stands for where there is one: several types are a Seq.
template <class... L>
struct as_one {
  using type = Seq<L...>;
};
template <class L>
struct as_one<L> {
  using type = L;
};
template <class... L>
using one_of = typename as_one<L...>::type;
template <class Item>
using one_layer = spliced<one_of, Item>;

/// Base of a layer with computed parts: the one that is written, under whose name it is reported.
template <class Written>
struct stands_for : Written {
  using written = Written;
};
template <template <class...> class List, class... Items>
using splice = stands_for<spliced<List, Items...>>;
template <class... Items>
concept with_computed = (computed<Items> || ...);

/// Repeat for a known number of times: a template over layers alone.
template <int N>
struct repeat_of {
  template <class... L>
  using list = Repeat<N, L...>;
};

/// The list of a model, or of a layer made of layers, as layers<T...>.
template <class... Items>
constexpr layers<Items...> list_of(std::type_identity<lowering<Items...>>) {
  return {};
}
template <class M>
constexpr auto list_of() {
  if constexpr (requires { typename M::described; })
    return list_of(std::type_identity<typename M::items>{});
  else if constexpr (requires { typename M::parts; })
    return typename M::parts{};
  else
    return diagnosis_of<wrong::type_has_no_list_of_layers, M>();
}
template <class... L>
using tuple_of_types = boost::hana::tuple<boost::hana::type<L>...>;

}  // namespace detail

/// `List<T...>` for a Hana sequence of `hana::type<T>...`: `Model`, `Seq`, `Residual` or any other
/// template over types.
///
///     constexpr auto hidden =
///         hana::replicate<hana::tuple_tag>(hana::type_c<Linear<64>>, hana::size_c<3>);
///     using Hidden = Unpack<Seq, decltype(hidden)>;  // Seq<Linear<64>, Linear<64>, Linear<64>>
///
/// law: the type is the one written by hand; nothing downstream can tell them apart.
template <template <class...> class List, class Sequence>
using Unpack = typename detail::listed<List, detail::unpacked_types<Sequence>>::type;

/// The layers of a model, with its input and loss, or those inside a layer that is made of layers
/// (`Seq`, `Repeat`, `SumOf`, `Named`, ...), as a `hana::tuple` of `hana::type`s.
///
/// law: Model<decltype(layers_of<M>)> is the model M
template <class M>
inline constexpr
    typename detail::listed<detail::tuple_of_types, decltype(detail::list_of<M>())>::type
        layers_of{};

// A sequence among the items of a list stands for its types: Model<Input<8>, decltype(items), MSE>.
// The list is derived from the one that is written out.
template <class... Items>
  requires detail::with_computed<Items...>
struct Model<Items...> : detail::splice<Model, Items...> {};
template <class... L>
  requires detail::with_computed<L...>
struct Seq<L...> : detail::splice<Seq, L...> {};
template <int N, class... L>
  requires detail::with_computed<L...>
struct Repeat<N, L...> : detail::splice<detail::repeat_of<N>::template list, L...> {};
template <class... L>
  requires detail::with_computed<L...>
struct Residual<L...> : detail::splice<Residual, L...> {};
template <class... L>
  requires detail::with_computed<L...>
struct SumOf<L...> : detail::splice<SumOf, L...> {};
template <class... L>
  requires detail::with_computed<L...>
struct ProductOf<L...> : detail::splice<ProductOf, L...> {};
template <class... L>
  requires detail::with_computed<L...>
struct ConcatOf<L...> : detail::splice<ConcatOf, L...> {};
template <class... L>
  requires detail::with_computed<L...>
struct Frozen<L...> : detail::splice<Frozen, L...> {};
template <class... L>
  requires detail::with_computed<L...>
struct CutInside<L...> : detail::splice<CutInside, L...> {};
template <class... Items>
  requires detail::with_computed<Items...>
struct Group<Items...> : detail::splice<Group, Items...> {};

// Where there is one layer, a sequence stands for it: for a Seq, if it has several types.
template <Text Name, class L>
  requires detail::computed<L>
struct Named<Name, L> : detail::stands_for<Named<Name, detail::one_layer<L>>> {};
template <class F, class G>
  requires detail::with_computed<F, G>
struct Reversible<F, G>
    : detail::stands_for<Reversible<detail::one_layer<F>, detail::one_layer<G>>> {};
template <class L, int Rank, class... Options>
  requires detail::computed<L>
struct LoRA<L, Rank, Options...>
    : detail::stands_for<LoRA<detail::one_layer<L>, Rank, Options...>> {};

}  // namespace pp
