// SPDX-License-Identifier: BSL-1.0
//
// Diagnostics of a wrong model, one readable line each. Passes record the first fault as a value;
// at the outermost template that value selects one of the types in namespace `wrong`, none of which
// is ever defined (base/diagnosis.hpp). Its name says what is wrong, in which layer, what was
// expected and what was found.
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>

#include <pipe/base/diagnosis.hpp>
#include <pipe/base/shape.hpp>
#include <pipe/graph/fault.hpp>
#include <pipe/graph/layers.hpp>

namespace pp {

namespace wrong {
/// Words of the messages: `Layer<3>`, `Expected<128, 384>`, `Found<128, 100>`, `Called<'s', 'k',
/// 'i', 'p'>`, `Missing<member::derivative>`.
///
/// Layer: the position of the top-level layer, from 0, in the list that `explain` prints.
template <int Position>
struct Layer;
/// Extents of a shape, or one number. A ratio is found as numerator, denominator.
template <int... Extents>
struct Expected;
template <int... Extents>
struct Found;
/// A user-given name.
template <char... Letters>
struct Called;
/// A member that the type lacks; below: a function or a value that is not constexpr.
template <member What>
struct Missing;
template <member What>
struct Function;
template <member What>
struct Value;
/// The layer to use in place of one that does not exist.
template <class... What>
struct UseInstead;

/// The diagnoses, one for each fault_kind but `none`: diagnose() has the words of each.
template <class... What>
struct first_item_of_a_model_must_be_its_input;
template <class... What>
struct input_must_be_the_first_item_of_a_model;
template <class... What>
struct loss_is_missing_at_the_end_of_the_model;
template <class... What>
struct loss_must_be_the_last_item_of_a_model;
template <class... What>
struct layer_needs_real_numbers_but_gets_token_ids;
template <class... What>
struct layer_needs_token_ids_but_gets_real_numbers;
template <class... What>
struct residual_must_keep_the_shape;
template <class... What>
struct branches_must_have_the_same_shape;
template <class... What>
struct heads_do_not_divide_the_width;
template <class... What>
struct key_value_heads_do_not_divide_the_heads;
template <class... What>
struct norm_groups_must_divide_the_channels;
template <class... What>
struct norm_group_has_one_number;
template <class... What>
struct rotary_embedding_needs_an_even_head_size;
template <class... What>
struct gate_needs_an_even_width;
template <class... What>
struct patches_do_not_divide_the_image;
template <class... What>
struct reversible_needs_an_even_width;
template <class... What>
struct pooling_needs_more_than_one_position;
template <class... What>
struct window_is_larger_than_its_padded_input;
template <class... What>
struct padding_must_be_at_most_half_of_the_window;
template <class... What>
struct reflection_must_be_narrower_than_its_input;
template <class... What>
struct reshape_must_keep_the_number_of_elements;
template <class... What>
struct size_must_be_positive;
template <class... What>
struct size_must_not_be_negative;
template <class... What>
struct layer_needs_an_image_of_three_extents;
template <class... What>
struct layer_needs_a_sequence_of_two_extents;
template <class... What>
struct groups_do_not_divide_the_channels;
template <class... What>
struct output_padding_must_be_below_the_stride;
template <class... What>
struct ratio_is_out_of_range;
template <class... What>
struct item_is_not_a_layer;
template <class... What>
struct model_needs_at_least_one_layer;
template <class... What>
struct value_is_popped_but_never_stashed;
template <class... What>
struct popped_value_must_have_the_shape_of_the_current_one;
template <class... What>
struct value_is_stashed_but_never_popped;
template <class... What>
struct value_must_be_stashed_before_another_replaces_it;
template <class... What>
struct model_has_too_many_inputs;
template <class... What>
struct tied_name_must_belong_to_exactly_one_layer_before;
template <class... What>
struct tied_layer_needs_parameters_of_the_same_shape;
template <class... What>
struct tied_layer_must_have_no_buffers;
template <class... What>
struct buffer_rule_is_out_of_range;
template <class... What>
struct tied_layers_have_too_many_parameters;
template <class... What>
struct name_is_given_twice;
template <class... What>
struct size_is_too_large;
template <class... What>
struct input_needs_one_to_four_extents;
template <class... What>
struct layer_does_not_take_this_option;
template <class... What>
struct layer_option_is_given_twice;
template <class... What>
struct formula_needs_forward_and_derivative;
template <class... What>
struct loss_needs_value_and_slope;
template <class... What>
struct class_weights_must_be_one_for_each_class;
template <class... What>
struct custom_layer_needs_its_shapes_and_its_functions;
template <class... What>
struct custom_layer_has_too_many_parameters;
template <class... What>
struct layer_has_no_layers_inside;
template <class... What>
struct lora_needs_a_linear_or_an_attention_inside;
template <class... What>
struct layer_is_derived_from_this_and_named_itself;
template <class... What>
struct ratio_is_written_as_two_integers;
template <class... What>
struct loss_takes_logits_but_gets_probabilities;
template <class... What>
struct loss_needs_two_classes;
template <class... What>
struct attention_needs_two_positions;
template <class... What>
struct layer_needs_two_channels;
template <class... What>
struct name_must_not_be_empty;
template <class... What>
struct name_must_be_utf8;
template <class... What>
struct parameters_have_the_same_name_in_files;
template <class... What>
struct model_has_too_many_layers;
template <class... What>
struct layers_are_nested_too_deep;
template <class... What>
struct function_must_be_constexpr;
template <class... What>
struct value_must_be_constexpr;
template <class... What>
struct there_is_no_such_layer;
}  // namespace wrong

namespace detail {

/// A word of a message as a value. A deduced argument is the type itself and not an alias of it,
/// which nvcc would spell instead.
template <class T>
using word = std::type_identity<T>;

/// Expected or Found with the extents of S.
template <template <int...> class Word, shape S>
constexpr auto spell() {
  return []<std::size_t... Is>(std::index_sequence<Is...>) {
    return word<Word<S.extent[Is]...>>{};
  }(std::make_index_sequence<S.rank>{});
}

/// A name, letter by letter: the only spelling of it that is readable in every compiler.
template <text Letters>
constexpr auto spell_text() {
  return []<std::size_t... Is>(std::index_sequence<Is...>) {
    return word<wrong::Called<Letters.characters[Is]...>>{};
  }(std::make_index_sequence<Letters.view().size()>{});
}
/// The name in layer type L; an empty one where it has none.
template <class L>
constexpr auto spell_name(word<L>) {
  if constexpr (requires { L::key; })
    return spell_text<L::key>();
  else if constexpr (requires { L::tied_name; })
    return spell_text<L::tied_name>();
  else if constexpr (requires { L::name.characters; })
    return spell_text<L::name>();
  else
    return word<wrong::Called<>>{};
}

/// Entry Index of a list of types; void if there is none.
template <int Index, class... T>
constexpr auto spell_leaf(layers<T...>) {
  if constexpr (Index >= 0 && Index < int(sizeof...(T)))
    return decltype(select_leaf<std::size_t(Index)>(
        std::declval<leaf_table<std::index_sequence_for<T...>, layers<T...>> const&>())){};
  else
    return word<void>{};
}

/// The type under which a layer is reported.
template <class L>
constexpr auto spell_written(word<L>) {
  return written_type<L>();
}

/// The option of leaf type L that a fault is about; void if it is not about an option.
template <int Index, class L>
constexpr auto spell_option(word<L>) {
  if constexpr (Index >= 0)
    return spell_leaf<Index>(typename L::options{});
  else
    return word<void>{};
}

/// The type whose name is the message.
template <template <class...> class Wrong, class... Words>
constexpr std::type_identity<Wrong<Words...>> say(word<Words>...) {
  return {};
}

/// The same for types that may be spelled by an alias.
template <template <class...> class Wrong, class... Words>
constexpr auto diagnosis_of() {
  return say<Wrong>(word<Words>{}...);
}

/// The replacement of a layer that does not exist: L is derived from no_such<Instead>.
template <template <class> class NoSuch, class Instead>
constexpr auto spell_base(NoSuch<Instead> const*) {
  return word<wrong::UseInstead<Instead>>{};
}
template <class L>
constexpr auto spell_instead(word<L>) {
  if constexpr (requires { typename L::use_instead; })
    return spell_base(static_cast<L const*>(nullptr));
  else
    return word<void>{};
}

/// The message of fault `F` in a model with leaf layer types `Leaves`. `Name`: the name in files
/// that two parameters share, for the fault of that kind.
template <model_fault F, class Leaves, class Name = wrong::Called<>>
constexpr auto diagnose() {
  if constexpr (F.ok()) {
    return std::type_identity<nothing_wrong>{};
  } else {
    constexpr word<wrong::Layer<F.layer>> at{};
    constexpr auto type = spell_written(spell_leaf<F.leaf>(Leaves{}));
    constexpr auto expected = spell<wrong::Expected, F.expected>();
    constexpr auto found = spell<wrong::Found, F.found>();
    constexpr auto name = spell_name(type);
    constexpr auto option = spell_option<F.option>(type);
    constexpr word<wrong::Missing<F.missing>> missing{};
    using enum fault_kind;
    if constexpr (F.what == first_item_is_not_an_input)
      return say<wrong::first_item_of_a_model_must_be_its_input>(at, type);
    else if constexpr (F.what == input_is_not_first)
      return say<wrong::input_must_be_the_first_item_of_a_model>(at, type);
    else if constexpr (F.what == loss_is_missing)
      return say<wrong::loss_is_missing_at_the_end_of_the_model>(at, type);
    else if constexpr (F.what == loss_is_not_last)
      return say<wrong::loss_must_be_the_last_item_of_a_model>(at, type);
    else if constexpr (F.what == needs_real_numbers)
      return say<wrong::layer_needs_real_numbers_but_gets_token_ids>(at, type, found);
    else if constexpr (F.what == needs_token_ids)
      return say<wrong::layer_needs_token_ids_but_gets_real_numbers>(at, type, found);
    else if constexpr (F.what == residual_changes_the_shape)
      return say<wrong::residual_must_keep_the_shape>(at, type, expected, found);
    else if constexpr (F.what == branches_differ)
      return say<wrong::branches_must_have_the_same_shape>(at, type, expected, found);
    else if constexpr (F.what == heads_do_not_divide)
      return say<wrong::heads_do_not_divide_the_width>(at, type, found);
    else if constexpr (F.what == key_value_heads_do_not_divide)
      return say<wrong::key_value_heads_do_not_divide_the_heads>(at, type, found);
    else if constexpr (F.what == norm_groups_do_not_divide)
      return say<wrong::norm_groups_must_divide_the_channels>(at, type, found);
    else if constexpr (F.what == norm_group_of_one)
      return say<wrong::norm_group_has_one_number>(at, type, found);
    else if constexpr (F.what == rotary_head_is_odd)
      return say<wrong::rotary_embedding_needs_an_even_head_size>(at, type, found);
    else if constexpr (F.what == gate_width_is_odd)
      return say<wrong::gate_needs_an_even_width>(at, type, found);
    else if constexpr (F.what == patches_do_not_divide)
      return say<wrong::patches_do_not_divide_the_image>(at, type, expected, found);
    else if constexpr (F.what == reversible_width_is_odd)
      return say<wrong::reversible_needs_an_even_width>(at, type, found);
    else if constexpr (F.what == pool_of_one_row)
      return say<wrong::pooling_needs_more_than_one_position>(at, type, found);
    else if constexpr (F.what == window_too_large)
      return say<wrong::window_is_larger_than_its_padded_input>(at, type, expected, found);
    else if constexpr (F.what == padding_over_half)
      return say<wrong::padding_must_be_at_most_half_of_the_window>(at, type, expected, found);
    else if constexpr (F.what == reflection_too_wide)
      return say<wrong::reflection_must_be_narrower_than_its_input>(at, type, expected, found);
    else if constexpr (F.what == reshape_changes_the_size)
      return say<wrong::reshape_must_keep_the_number_of_elements>(at, type, expected, found);
    else if constexpr (F.what == size_not_positive)
      return say<wrong::size_must_be_positive>(at, type, found);
    else if constexpr (F.what == size_is_negative)
      return say<wrong::size_must_not_be_negative>(at, type, found);
    else if constexpr (F.what == not_an_image)
      return say<wrong::layer_needs_an_image_of_three_extents>(at, type, found);
    else if constexpr (F.what == not_a_sequence)
      return say<wrong::layer_needs_a_sequence_of_two_extents>(at, type, found);
    else if constexpr (F.what == groups_do_not_divide)
      return say<wrong::groups_do_not_divide_the_channels>(at, type, expected, found);
    else if constexpr (F.what == output_padding_too_large)
      return say<wrong::output_padding_must_be_below_the_stride>(at, type, expected, found);
    else if constexpr (F.what == ratio_out_of_range && F.option >= 0)
      return say<wrong::ratio_is_out_of_range>(at, option, found);
    else if constexpr (F.what == ratio_out_of_range)
      return say<wrong::ratio_is_out_of_range>(at, type, found);
    else if constexpr (F.what == option_not_taken)
      return say<wrong::layer_does_not_take_this_option>(at, type, option);
    else if constexpr (F.what == option_twice)
      return say<wrong::layer_option_is_given_twice>(at, type, option);
    else if constexpr (F.what == not_a_layer)
      return say<wrong::item_is_not_a_layer>(at, type);
    else if constexpr (F.what == pop_without_stash)
      return say<wrong::value_is_popped_but_never_stashed>(at, type, name);
    else if constexpr (F.what == popped_shape_differs)
      return say<wrong::popped_value_must_have_the_shape_of_the_current_one>(at, type, name,
                                                                             expected, found);
    else if constexpr (F.what == stash_is_never_popped)
      return say<wrong::value_is_stashed_but_never_popped>(at, type, name, found);
    else if constexpr (F.what == value_is_thrown_away)
      return say<wrong::value_must_be_stashed_before_another_replaces_it>(at, type, found);
    else if constexpr (F.what == too_many_inputs)
      return say<wrong::model_has_too_many_inputs>(at, type, expected);
    else if constexpr (F.what == tied_to_nothing)
      return say<wrong::tied_name_must_belong_to_exactly_one_layer_before>(at, type, name, expected,
                                                                           found);
    else if constexpr (F.what == tied_shape_differs)
      return say<wrong::tied_layer_needs_parameters_of_the_same_shape>(at, type, expected, found);
    else if constexpr (F.what == tied_buffer)
      return say<wrong::tied_layer_must_have_no_buffers>(at, type);
    else if constexpr (F.what == commit_out_of_range)
      return say<wrong::buffer_rule_is_out_of_range>(at, type);
    else if constexpr (F.what == formula_is_incomplete)
      return say<wrong::formula_needs_forward_and_derivative>(at, type, missing);
    else if constexpr (F.what == loss_is_incomplete)
      return say<wrong::loss_needs_value_and_slope>(at, type, missing);
    else if constexpr (F.what == class_weights_differ)
      return say<wrong::class_weights_must_be_one_for_each_class>(at, type, expected, found);
    else if constexpr (F.what == custom_is_incomplete)
      return say<wrong::custom_layer_needs_its_shapes_and_its_functions>(at, type, missing);
    else if constexpr (F.what == too_many_custom_parameters)
      return say<wrong::custom_layer_has_too_many_parameters>(at, type, expected, found);
    else if constexpr (F.what == name_twice)
      return say<wrong::name_is_given_twice>(at, type, name);
    else if constexpr (F.what == size_too_large)
      return say<wrong::size_is_too_large>(at, type, found);
    else if constexpr (F.what == extents_of_input)
      return say<wrong::input_needs_one_to_four_extents>(at, type);
    else if constexpr (F.what == no_layers_inside)
      return say<wrong::layer_has_no_layers_inside>(at, type);
    else if constexpr (F.what == nothing_to_adapt)
      return say<wrong::lora_needs_a_linear_or_an_attention_inside>(at, type);
    else if constexpr (F.what == base_is_no_layer)
      return say<wrong::layer_is_derived_from_this_and_named_itself>(at, type);
    else if constexpr (F.what == ratio_of_real_numbers && F.option >= 0)
      return say<wrong::ratio_is_written_as_two_integers>(at, option);
    else if constexpr (F.what == ratio_of_real_numbers)
      return say<wrong::ratio_is_written_as_two_integers>(at, type);
    else if constexpr (F.what == probabilities_to_a_loss_of_logits)
      return say<wrong::loss_takes_logits_but_gets_probabilities>(at, type);
    else if constexpr (F.what == one_class)
      return say<wrong::loss_needs_two_classes>(at, type, found);
    else if constexpr (F.what == one_position)
      return say<wrong::attention_needs_two_positions>(at, type, found);
    else if constexpr (F.what == one_channel)
      return say<wrong::layer_needs_two_channels>(at, type, found);
    else if constexpr (F.what == name_is_empty)
      return say<wrong::name_must_not_be_empty>(at, type);
    else if constexpr (F.what == name_is_no_text)
      return say<wrong::name_must_be_utf8>(at, type);
    else if constexpr (F.what == parameters_of_one_name)
      return say<wrong::parameters_have_the_same_name_in_files>(at, type, word<Name>{});
    else if constexpr (F.what == too_many_layers)
      return say<wrong::model_has_too_many_layers>(at, type, expected);
    else if constexpr (F.what == nested_too_deep)
      return say<wrong::layers_are_nested_too_deep>(at, type, expected);
    else if constexpr (F.what == function_not_constexpr && F.option >= 0)
      return say<wrong::function_must_be_constexpr>(option, word<wrong::Function<F.missing>>{});
    else if constexpr (F.what == value_not_constexpr)
      return say<wrong::value_must_be_constexpr>(type, word<wrong::Value<F.missing>>{});
    else if constexpr (F.what == function_not_constexpr)
      return say<wrong::function_must_be_constexpr>(type, word<wrong::Function<F.missing>>{});
    else if constexpr (F.what == no_such_layer)
      return say<wrong::there_is_no_such_layer>(type, spell_instead(type));
    else if constexpr (F.what == too_many_tied)
      return say<wrong::tied_layers_have_too_many_parameters>(at, type, expected);
    else
      return say<wrong::model_needs_at_least_one_layer>(at, type);
  }
}

}  // namespace detail

}  // namespace pp
