// SPDX-License-Identifier: BSL-1.0
//
// A model: an input, layers, a loss. Naming one checks every shape in it and lowers the types to a
// graph, a plain value.
#pragma once

#include <type_traits>

#include <pipe/base/diagnosis.hpp>
#include <pipe/graph/builder.hpp>
#include <pipe/graph/names_in_files.hpp>
#include <pipe/nn/constant_functions.hpp>
#include <pipe/nn/embedding.hpp>
#include <pipe/nn/input.hpp>
#include <pipe/nn/linear.hpp>
#include <pipe/nn/loss.hpp>

namespace pp {

namespace detail {

/// The size of a lowered model, and its first fault.
struct lowered {
  graph_size size;
  model_fault fault;
};

/// The first (last_of: the last) of a list of items; void for an empty list.
template <class...>
struct first_item {
  using type = void;
};
template <class First, class... Rest>
struct first_item<First, Rest...> {
  using type = First;
};
template <class... Items>
using first_of = typename first_item<Items...>::type;
template <class... Items>
using last_of =
    typename decltype((std::type_identity<void>{}, ..., std::type_identity<Items>{}))::type;

/// Runs the descriptions of a model's items on a builder.
template <class... Items>
struct lowering;
template <class... Items>
  requires all_are_types<Items...>
struct lowering<Items...> {
  using leaves = all_leaves<Items...>;
  static constexpr auto const& directory = directory_of<leaves>;
  using loss = last_of<Items...>;
  static constexpr int count = sizeof...(Items);

  template <class Builder>
  static constexpr void run(Builder& b) {
    int i = -1;
    (item<Items>(b, i++), ...);
    if constexpr (!loss_layer<last_of<Items...>>)
      b.report_at(wrong::loss_is_missing_at_the_end_of_the_model,
                  b.position() > 0 ? b.position() - 1 : 0, leaf_index<last_of<Items...>>(leaves{}));
  }

  /// Describes item i; the input is number -1, so that layers are counted from 0.
  template <class Item, class Builder>
  static constexpr void item(Builder& b, int i) {
    if constexpr (loss_layer<Item>) {
      constexpr int leaf = leaf_index<Item>(leaves{});
      if (i + 2 < count)
        return b.report_at(wrong::loss_must_be_the_last_item_of_a_model, b.position(), leaf);
      if (b.open_units() == 0)
        b.report_at(wrong::model_needs_at_least_one_layer, b.position(), leaf);
      b.template close<Item>();
    } else if (i >= 0) {
      b.template part<Item>(i);
    } else if constexpr (input_item<Item> && has_name<Item>) {
      b.name_input(Item::name.view());
    }
  }

  /// The first of two runs: the extents of the graph's arrays and the first fault. Faults are found
  /// here, before any array has a size.
  static constexpr lowered measure() {
    using first = first_of<Items...>;
    if constexpr (!input_item<first>) {
      return lowered{graph_size{},
                     model_fault{wrong::first_item_of_a_model_must_be_its_input, 0, 0}};
    } else {
      builder<known_leaves<leaves>> b(directory, first::input);
      run(b);
      return lowered{b.sizes(), b.fault()};
    }
  }
  static constexpr lowered measured = [] {
    if constexpr (constexpr model_fault f = fault_of_functions<lowering>(leaves{}); f.ok())
      return measure();
    else
      return lowered{graph_size{}, f};
  }();

  /// The second run, into arrays of exactly those extents: the graph as a constant.
  static constexpr auto lower() {
    builder<known_leaves<leaves>, measured.size> b(directory, first_of<Items...>::input);
    run(b);
    return b.finish();
  }

  /// The second run at run time, on the heap, for a model whose graph is too large for a constant;
  /// the caller deletes it.
  template <class Graph>
  static Graph* lower_on_heap() {
    using builder_type = builder<known_leaves<leaves>, measured.size>;
    struct owner {
      builder_type* it = new builder_type(directory, first_of<Items...>::input);
      ~owner() { delete it; }
    } b;
    run(*b.it);
    return new Graph(b.it->finish());
  }

  /// An observer with the hashes of the names of parameters in files, and the name of parameter
  /// `wanted` in full.
  static constexpr auto names(int wanted) {
    using observer = names_in_files<measured.size.parameters>;
    observer named;
    named.wanted = wanted;
    builder<known_leaves<leaves>, graph_size{}, observer> b(directory, first_of<Items...>::input,
                                                            named);
    run(b);
    return b.observer();
  }
  /// The first parameter whose name an earlier one has, or -1. Not computed for models without
  /// user-given names of layers or parameters, where names are distinct by construction.
  static constexpr int repeated_name = [] {
    if constexpr (measured.fault.ok() && some_have_names(leaves{}))
      return names(-1).repeated();
    else
      return -1;
  }();
  /// The repeated name as words of the error message: its layers and numbers from the outside in.
  static constexpr auto spell_repeated_name() {
    if constexpr (repeated_name >= 0) {
      constexpr auto found = names(repeated_name);
      return [&]<std::size_t... Is>(std::index_sequence<Is...>) {
        return word_list<wrong::Called<found.way[Is]...>>{};
      }(std::make_index_sequence<std::size_t(found.length)>{});
    } else {
      return word_list<>{};
    }
  }

  /// The first fault of the model.
  static constexpr model_fault fault = [] {
    model_fault f = measured.fault;
    if constexpr (repeated_name >= 0) {
      parameter const second = lower().parameters[repeated_name];
      f = model_fault{wrong::parameters_have_the_same_name_in_files, second.unit, second.leaf};
    }
    return f;
  }();
};
/// A list with an item that is not a type: the smallest model stands in.
template <class... Items>
struct lowering : lowering<Input<1>, Linear<1>, MSE> {};

/// The smallest model with this kind of input and this loss.
template <bool Ids, class Loss>
using stand_in = std::conditional_t<Ids, lowering<Tokens<1, 1>, Embedding<2>, Loss>,
                                    lowering<Input<1>, Linear<2>, Loss>>;

/// Whether the first item is an input of token ids; ends_in_ids: whether the loss has class labels.
template <class First>
constexpr bool begins_with_ids() {
  if constexpr (input_item<First>) return First::input.is_ids;
  return false;
}
template <class Last>
constexpr bool ends_in_ids() {
  if constexpr (loss_layer<Last>) return Last::labels_are_ids;
  return false;
}

/// Base of every model.
struct any_model {};

}  // namespace detail

/// A model as a type: an input, layers and a loss. Name it by deriving a struct from it.
///
///     struct Digits : Model<Input<784>, Linear<128>, ReLU, Linear<10>, CrossEntropy> {};
///
/// law: every shape is checked here; a wrong model is one error whose line names the layer, what it
///      expects and what it gets
template <class... Items>
struct Model : detail::any_model {
  using items = detail::lowering<Items...>;
  static constexpr bool valid = items::fault.ok();
  using diagnosis = decltype(detail::diagnose<items::fault, typename items::leaves,
                                              decltype(items::spell_repeated_name())>());
  // The name of the diagnosis is a heading in docs/reference/errors.md.
  static_assert(decltype(detail::diagnosed(diagnosis{}))::ok);
  static constexpr bool labels_are_ids = detail::ends_in_ids<typename items::loss>();

  /// The items that are lowered: after a reported fault, the smallest model with the same kinds of
  /// input and label, so that nothing else is reported.
  using described =
      std::conditional_t<valid, items,
                         detail::stand_in<detail::begins_with_ids<detail::first_of<Items...>>(),
                                          std::conditional_t<labels_are_ids, CrossEntropy, MSE>>>;
  using leaves = typename described::leaves;
  using loss = typename described::loss;
  using graph_type = detail::graph<described::measured.size>;
  static constexpr graph_type graph = described::lower();
  /// The graph on the heap, made at run time: for a model that is too large for a constant.
  static graph_type* new_graph() { return described::template lower_on_heap<graph_type>(); }
};

namespace detail {

/// A type that a Pipeline accepts as a model.
template <class M>
concept model_type = requires {
  typename M::leaves;
  M::graph;
  M::valid;
};

}  // namespace detail

}  // namespace pp
