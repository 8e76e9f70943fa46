// SPDX-License-Identifier: BSL-1.0
//
// Adapted models and plain models: the names under which a plain model has the weights inside a
// LoRA, the low-rank terms as a file, and the sum of weights and terms as weights of a plain model.
#pragma once
#ifndef PIPE_SHOWS_WARNINGS
#pragma GCC system_header
#endif

#include <cstddef>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <pipe/base/config.hpp>
#include <pipe/base/error.hpp>
#include <pipe/base/utf8.hpp>
#include <pipe/graph/layers.hpp>
#include <pipe/graph/model_tables.hpp>
#include <pipe/nn/lora.hpp>
#include <pipe/weights/copy_weights.hpp>

PIPE_OPTIMIZED_BEGIN
namespace pp {

namespace detail {

/// A name of an adapted model without `base_layer.`, which is the plain model's name.
inline std::string plain_name(std::string name) {
  constexpr std::string_view inside = "base_layer.";
  for (std::size_t at; (at = name.find(inside)) != std::string::npos;)
    name.erase(at, inside.size());
  return name;
}
/// The name of an item of a list of names or of parameters.
inline std::string const& name_in(std::string const& name) { return name; }
template <class Parameter>
std::string const& name_in(Parameter const& p) {
  return p.name;
}
/// to[K, N] = w + factor a b, for a[K, rank] and b[rank, N]; nothing where `to` is empty.
template <class Source, class Target>
void add_product(Source const& w, Source const& a, Source const& b, double factor, int rank,
                 Target const& to) {
  std::size_t const inner = std::size_t(rank), columns = b.size() / inner;
  for (std::size_t i = 0; i < to.size(); ++i) {
    double sum = 0;
    for (std::size_t r = 0; r < inner; ++r)
      sum += double(a[i / columns * inner + r]) * double(b[r * columns + i % columns]);
    to[i] = typename Target::value_type(double(w[i]) + factor * sum);
  }
}
/// Whether a name is that of a parameter of a low-rank term; is_lora_a: of the term's first factor.
inline bool is_lora_a(std::string_view name) { return name.ends_with("lora_A.weight"); }
inline bool is_lora(std::string_view name) {
  return is_lora_a(name) || name.ends_with("lora_B.weight");
}

/// The factors of the low-rank terms of a model, by leaf; 0 for other layers.
template <class... L>
std::vector<double> factors_of(layers<L...>) {
  auto const factor = []<class T>(std::type_identity<T>) {
    if constexpr (requires { T::low_rank_scale; })
      return double(T::low_rank_scale);
    else
      return 0.0;
  };
  return {factor(std::type_identity<L>{})...};
}

}  // namespace detail

/// The names of an adapted model's frozen parameters in a plain model, for load_weights and
/// copy_weights: `0.base_layer.weight` is the plain model's `0.weight`.
///
///     load_weights(adapted, "plain.safetensors", load_policy::partial,
///     names_without_lora(adapted));
template <detail::has_named_parameters Trainer>
name_map names_without_lora(Trainer& trainer) {
  name_map names;
  for (auto const& p : detail::list_of(trainer))
    if (std::string plain = detail::plain_name(p.name); !detail::is_lora(p.name) && plain != p.name)
      names.push_back({p.name, plain});
  return names;
}

/// Saves the low-rank terms alone, in the trainer's number type, under the names that PEFT's
/// adapter_model.safetensors has. load_weights reads them with `partial` and the map {{"",
/// "base_model.model."}}. If ranks are in several processes, all processes call this function.
///
/// throws: as save_weights
template <detail::has_named_parameters Trainer>
void save_lora(Trainer& trainer, std::string const& path,
               std::string const& prefix = "base_model.model.") {
  using element = typename Trainer::element;
  auto const all = detail::named_parameters(trainer);
  auto const views = detail::list_of(trainer);
  std::vector<std::size_t> at;
  auto chosen = all;
  chosen.clear();
  for (std::size_t i = 0; i < all.size(); ++i)
    if (detail::is_lora(all[i].name)) {
      at.push_back(i);
      // Without a list in braces here: nvcc 13 loses the semicolon behind it.
      std::string name(prefix);
      name += std::string_view(all[i].name);
      chosen.push_back(all[i]).name = name;
    }
  auto const processes = trainer.processes();
  std::vector<element> room;
  detail::save_together<element>(processes, chosen, path, detail::stored_type_of<element>(),
                                 &detail::copy_own_out<element>,
                                 detail::metadata_of({{"format", "pt"}}),
                                 [&](std::size_t i, detail::use_of_parameter<element> use) {
                                   auto p = chosen[i];
                                   p.values = processes.values_of(views[at[i]], room);
                                   use(p);
                                 });
}

/// Copies the parameters of an adapted model to a plain model, whose weights become w + alpha /
/// rank A B. A program without LoRA can load these weights from a file.
///
///     merge_lora(adapted, plain);
///     save_weights(plain, "merged.safetensors");
///
/// law:    the outputs are those of the adapted model within rounding: each weight is computed in
///         double and rounded once
/// throws: as copy_weights; data_error, and nothing is written, if the models differ in more than
///         low-rank terms
template <detail::has_named_parameters From, detail::has_named_parameters To>
void merge_lora(From& from, To& to) {
  name_map names;  // from names of `to` to names of `from`
  std::vector<std::string> plain;
  detail::row_list<detail::kept_text> problems;
  for (auto const& p : detail::list_of(from))
    if (!detail::is_lora(p.name)) {
      plain.push_back(detail::plain_name(p.name));
      if (plain.back() != p.name) names.push_back({plain.back(), p.name});
    }
  auto const targets = detail::list_of(to);
  auto const lists = [](auto const& all, std::string const& name) {
    for (auto const& one : all)
      if (detail::name_in(one) == name) return true;
    return false;
  };
  for (auto const& p : targets)
    if (!lists(plain, p.name))
      problems.push_back(detail::in_quotes(p.name) + " is not in the adapted one");
  for (std::string const& name : plain)
    if (!lists(targets, name))
      problems.push_back(detail::in_quotes(name) + " is in the adapted one alone");
  detail::require_fit(detail::weights_source{"to merge", "the adapted model"}, problems);
  copy_weights(from, to, load_policy::partial, names);

  constexpr auto const& tables = detail::model_tables<typename From::model>::parameters;
  auto const factors = detail::factors_of(typename From::model::leaves{});
  std::vector<typename From::element> room, first, second;
  auto const add = [&](auto const& sources, auto const& merged, auto const& set) {
    // The values of a parameter stay until those of the next parameter come.
    auto const copy_of = [&](std::size_t i, auto& to_room) {
      auto const values = detail::values_in_all(from, sources[i], room);
      to_room.assign(values.begin(), values.end());
    };
    for (std::size_t i = 1; i + 1 < sources.size(); ++i) {
      if (!detail::is_lora_a(sources[i].name)) continue;
      auto const& base = sources[i - (sources[i - 1].name.ends_with("bias") ? 2 : 1)];
      copy_of(i, first), copy_of(i + 1, second);
      auto const w = detail::values_in_all(from, base, room);
      double const factor = factors[std::size_t(tables[sources[i].index].leaf)];
      for (auto const& target : merged)
        if (target.name == detail::plain_name(base.name))
          set(target, [&](auto const& values) {
            detail::add_product(w, std::span(first), std::span(second), factor, sources[i].columns,
                                values);
          });
    }
  };
  add(detail::list_of(from), targets, [&](auto const& target, auto const& fill) {
    if (detail::is_here(to, target)) detail::set_values(to, target, fill);
  });
  auto const in_place = [](auto const& target, auto const& fill) { fill(target.values); };
  if constexpr (detail::keeps_averages<To>) {
    if constexpr (detail::keeps_averages<From>)
      add(from.averaged(), to.averaged(), in_place);
    else
      add(detail::list_of(from), to.averaged(), in_place);
  }
  to.parameters_changed();
}

}  // namespace pp
PIPE_OPTIMIZED_END
