// SPDX-License-Identifier: BSL-1.0
//
// Models from computed lists: a Boost.Hana sequence of layer types becomes a model. The only header
// that needs Boost; not part of <pipe/pipe.hpp>.
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
#include <pipe/nn/model.hpp>
#include <pipe/nn/norm.hpp>

namespace pp {

namespace wrong {
/// The diagnoses of Unpack: the type is no Hana sequence; its element number Element, from 0, is
/// not a hana::type.
template <class... What>
struct sequence_of_hana_is_expected;
template <class... What>
struct element_is_not_a_hana_type;
template <int>
struct Element;
}  // namespace wrong

namespace detail {

/// Stand-in for a rejected list, so that the diagnosis is the only error.
template <template <class...> class List>
struct instead_of_list {
  using type = List<LayerNorm>;
};
template <>
struct instead_of_list<Model> {
  using type = Model<Input<1>, Linear<1>, MSE>;
};

/// List<T...> for elements hana::type<T>...; otherwise the diagnosis of the first element that is
/// not a hana::type.
template <template <class...> class List>
struct list_of_types {
  template <class... E>
  constexpr auto operator()(E const&...) const {
    constexpr int count = sizeof...(E), wrong_at = first_without_type<E...>();
    if constexpr (wrong_at == count)
      return std::type_identity<List<typename E::type...>>{};
    else
      return diagnosis_of<wrong::element_is_not_a_hana_type, wrong::Element<wrong_at>,
                          leaf_at<wrong_at, layers<E...>>>();
  }
  /// The index of the first element that is not a hana::type; sizeof...(E) if all are.
  template <class... E>
  static constexpr int first_without_type() {
    bool const is_type[] = {boost::hana::is_a<boost::hana::type_tag, E>..., false};
    int i = 0;
    while (is_type[i]) ++i;
    return i;
  }
};

/// The type of the list as std::type_identity, or a diagnosis.
template <template <class...> class List, class Sequence>
constexpr auto unpack_types() {
  if constexpr (boost::hana::Foldable<Sequence>::value)
    return decltype(boost::hana::unpack(std::declval<Sequence const&>(), list_of_types<List>{})){};
  else
    return diagnosis_of<wrong::sequence_of_hana_is_expected, Sequence>();
}

/// The list; for a diagnosis, its message as a failed assertion, and a stand-in for the list.
template <template <class...> class List, class Result>
struct unpacked {
  static_assert(sizeof(detail::diagnosed(std::type_identity<Result>{})) > 0);
  using type = typename instead_of_list<List>::type;
};
template <template <class...> class List, class... T>
struct unpacked<List, List<T...>> {
  using type = List<T...>;
};

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
using Unpack = typename detail::unpacked<
    List,
    typename decltype(detail::unpack_types<List, std::remove_cvref_t<Sequence>>())::type>::type;

}  // namespace pp
