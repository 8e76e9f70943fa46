// SPDX-License-Identifier: BSL-1.0
//
// Saving and loading of a model's parameters in safetensors files, with the names and layouts of
// PyTorch. Loading is all or nothing: every mismatch is found and reported before the first
// parameter changes.
#pragma once
#ifndef PIPE_SHOWS_WARNINGS
#pragma GCC system_header
#endif

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <pipe/base/error.hpp>
#include <pipe/base/function_ref.hpp>
#include <pipe/base/joined_text.hpp>
#include <pipe/base/owner.hpp>
#include <pipe/base/together.hpp>
#include <pipe/io/atomic_file.hpp>
#include <pipe/io/kept_text.hpp>
#include <pipe/io/row_list.hpp>
#include <pipe/weights/checked_load.hpp>
#include <pipe/weights/file_blocks.hpp>
#include <pipe/weights/name_map.hpp>
#include <pipe/weights/named_parameter.hpp>
#include <pipe/weights/safetensors.hpp>
#include <pipe/weights/weight_files.hpp>
#include <pipe/weights/weight_pairs.hpp>

namespace pp::detail {

/// Takes a parameter, or a part that follows the part before it in the file.
template <class T>
using use_of_parameter = function_ref<void(named_parameter<T> const&)>;
/// Calls use(part) for parameter `index`, once, or for parts that follow each other in the file.
template <class T>
using read_parameter = function_ref<void(std::size_t index, use_of_parameter<T> use)>;

/// Passes a part of a parameter to append(bytes), as `type`: copy_out, or copy_own_out, which is
/// all that programs compile that save in their own type.
template <class T>
using copy_part = void (*)(named_parameter<T> const&, stored_type, use_of_bytes append);

/// Saves parameters whose values come one parameter at a time, in their order.
template <class T>
[[gnu::cold]] void write_weights(std::span<named_parameter<T> const> parameters,
                                 std::string const& path, stored_type type, copy_part<T> copy,
                                 safetensors_metadata const& metadata, read_parameter<T> read) {
  if (!is_real(type))
    throw_error<data_error>(
        {"save_weights: type: expected F64, F32, F16 or BF16, got ", name_of(type)});
  row_list<safetensors_place> places;
  for (named_parameter<T> const& p : parameters) {
    require_law(p);
    places.push_back({p.name, type, p.shape});
  }
  place_tensors(places);
  atomic_file file(path);
  file.write(safetensors_preamble(places, metadata));
  // All tensors have one type, so they are in the order of their places.
  for (std::size_t i = 0; i < parameters.size(); ++i)
    read(i, [&](named_parameter<T> const& part) {
      copy(part, type, [&](std::span<std::byte const> bytes) { file.write(bytes); });
    });
  file.commit();
}

}  // namespace pp::detail

namespace pp {

/// Saves parameters as `type`, in the given order. `metadata`: by default that of PyTorch's files.
///
/// law: equal parameters give equal bytes; parameters that are saved in their own type load bit for
///      bit
/// throws: file_error, and the previous file is unchanged; data_error for names that are not unique
///         or a number too large for `type`
template <class T>
[[gnu::cold]] void save_weights(
    std::vector<detail::named_parameter<T>> const& parameters, std::string const& path,
    files::stored_type type = detail::stored_type_of<T>(),
    detail::safetensors_metadata const& metadata = detail::metadata_of({{"format", "pt"}})) {
  detail::write_weights<T>(
      parameters, path, type, &detail::copy_out<T>, metadata,
      [&](std::size_t i, detail::use_of_parameter<T> use) { use(parameters[i]); });
}

/// Loads parameters from a file, or from a folder or an index of several (see weight_files),
/// converting to their type. `names` maps parameter names to names in the file: a parameter may be
/// several tensors there, which are joined along their first extent, and a matrix may be stored the
/// other way round; other tensors are passed over (see name_map).
///
/// law: all or nothing: if it throws, nothing was written
/// throws: data_error with the first eight mismatches and the number of the others: with either
///         policy a tensor of another shape, of no real type, or with a number too large for T;
///         with `strict` also missing and unused names; with `partial` if there is no common name.
///         file_error if a tensor cannot be read, or memory is exhausted
template <class T>
[[gnu::cold]] load_report load_weights(std::vector<detail::named_parameter<T>> const& parameters,
                                       weight_files const& files,
                                       load_policy policy = load_policy::strict,
                                       name_map const& names = {}) {
  return detail::check_tensors<T>(parameters, files.tensors(), files,
                                  detail::source_of(files.name()), policy,
                                  detail::source_names(names))
      .write();
}
template <class T>
[[gnu::cold]] load_report load_weights(std::vector<detail::named_parameter<T>> const& parameters,
                                       safetensors_file const& file,
                                       load_policy policy = load_policy::strict,
                                       name_map const& names = {}) {
  return detail::check_pairs<T>(
             parameters, file.tensors(), detail::source_of(file.name()), policy,
             detail::source_names(names),
             [&](auto const& pairs, auto const&) { return detail::joined_bytes(file, pairs); })
      .write();
}
template <class T>
[[gnu::cold]] load_report load_weights(std::vector<detail::named_parameter<T>> const& parameters,
                                       std::string const& path,
                                       load_policy policy = load_policy::strict,
                                       name_map const& names = {}) {
  return load_weights(parameters, weight_files(path), policy, names);
}

namespace detail {

/// A trainer with averages of its parameters: averaged() lists them in the order of parameters().
template <class Trainer>
concept keeps_averages = requires { requires Trainer::keeps_averages; };

/// A trainer whose old values nothing needs after a load that has failed.
template <class Trainer>
concept is_read_in_place = requires { requires Trainer::is_read_in_place; };

/// Views of the averages of all parameters; empty if the trainer keeps none.
template <has_named_parameters Trainer>
[[gnu::cold]] auto averages_of(Trainer& trainer) {
  std::vector<decltype(trainer.parameters().front().values)> all;
  if constexpr (keeps_averages<Trainer>)
    for (auto const& p : trainer.averaged()) all.push_back(p.values);
  return all;
}

/// Saves parameters of a trainer whose processes all call it: that of rank 0 writes the file. All
/// processes read each parameter in turn, to its end also if `use` throws.
///
/// throws: as write_weights, in that process; in the others file_error
template <class T, class Processes>
[[gnu::cold]] void save_together(Processes const& processes,
                                 std::span<named_parameter<T> const> parameters,
                                 std::string const& path, stored_type type, copy_part<T> copy,
                                 safetensors_metadata const& metadata, read_parameter<T> read) {
  if constexpr (are_one<Processes>)
    return write_weights<T>(parameters, path, type, copy, metadata, read);
  std::size_t next = 0;
  auto const write = [&] {
    if (processes.writes_files())
      write_weights<T>(parameters, path, type, copy, metadata,
                       [&](std::size_t i, use_of_parameter<T> use) {
                         next = i + 1;
                         read(i, use);
                       });
  };
  auto const read_rest = [&] {
    while (next < parameters.size()) read(next++, [](named_parameter<T> const&) {});
  };
  together<file_error>(processes, "the process of rank 0 could not save", path,
                       [&] { with_rest(write, read_rest); });
}
/// Saves a trainer's parameters, which have the names and shapes that they have in the file.
template <has_named_parameters Trainer, class T>
[[gnu::cold]] void save_trainer(Trainer& trainer, row_list<named_parameter<T>> const& parameters,
                                std::string const& path, stored_type type, copy_part<T> copy,
                                safetensors_metadata const& metadata) {
  auto const processes = processes_of(trainer);
  std::vector<T> room;
  save_together<T>(processes, parameters, path, type, copy, metadata,
                   [&](std::size_t i, use_of_parameter<T> use) {
                     named_parameter<T> p = parameters[i];
                     p.values = processes.values_of(p, room);
                     use(p);
                   });
}

/// Loads a trainer's parameters from files that are open, or from those of a path.
template <has_named_parameters Trainer>
[[gnu::cold]] load_report load_trainer(Trainer& trainer, std::string const& path,
                                       load_policy policy, source_names const& names,
                                       weight_files const* files = nullptr) {
  owner<weight_files> opened;
  auto const parameters = named_parameters(trainer);
  using T = element_of<std::remove_cvref_t<decltype(parameters)>>;
  constexpr reading when = is_read_in_place<Trainer>   ? reading::in_place
                           : lists_parameters<Trainer> ? reading::twice
                                                       : reading::before;
  load_report report;
  [[maybe_unused]] auto const averages = [&] {
    if constexpr (keeps_averages<Trainer>)
      return averages_of(trainer);
    else
      return 0;
  }();
  load_together(
      agreement_of(trainer), path,
      [&] {
        if (files == nullptr) {
          opened = owner<weight_files>(new weight_files(path));
          files = opened.get();
        }
        return check_tensors<T>(parameters, files->tensors(), *files, source_of(files->name()),
                                policy, names, when);
      },
      [&](auto& checked) {
        report = checked.write(
            [&](std::size_t i, stored_type type, named_parameter<T>& to, read_blocks blocks) {
              set_values(trainer, parameters[i], [&](auto const& values) {
                to.values = values;
                copied_in<T>(i, type, to, blocks);
              });
            });
      },
      [&] {
        if constexpr (lists_parameters<Trainer>)
          trainer.processes().parameters.engine->spoil(trainer.steps());
      });
  if constexpr (keeps_averages<Trainer>)
    for (std::size_t i = 0, next = 0; i < averages.size() && next < report.loaded.size(); ++i)
      if (parameters[i].name == report.loaded[next]) {
        std::copy(parameters[i].values.begin(), parameters[i].values.end(), averages[i].begin());
        ++next;
      }
  trainer.parameters_changed();
  return report;
}

}  // namespace detail

/// Saves all parameters of a trainer, in its own type, or as `type`; under their own names, or
/// under those of a map, with the layouts that it says. If its ranks are in several processes, all
/// of them call it.
///
/// throws: in all processes, if it does in one; data_error for a map that joins tensors
template <detail::has_named_parameters Trainer>
[[gnu::cold]] void save_weights(Trainer& trainer, std::string const& path) {
  auto const parameters = detail::named_parameters(trainer);
  using T = detail::element_of<std::remove_cvref_t<decltype(parameters)>>;
  detail::save_trainer<Trainer, T>(trainer, parameters, path, detail::stored_type_of<T>(),
                                   &detail::copy_own_out<T>,
                                   detail::metadata_of({{"format", "pt"}}));
}
template <detail::has_named_parameters Trainer>
[[gnu::cold]] void save_weights(Trainer& trainer, std::string const& path, name_map const& names) {
  auto const parameters = detail::all_there(detail::named_parameters(trainer), names);
  using T = detail::element_of<std::remove_cvref_t<decltype(parameters)>>;
  detail::save_trainer<Trainer, T>(trainer, parameters, path, detail::stored_type_of<T>(),
                                   &detail::copy_own_out<T>,
                                   detail::metadata_of({{"format", "pt"}}));
}
template <detail::has_named_parameters Trainer>
[[gnu::cold]] void save_weights(
    Trainer& trainer, std::string const& path, files::stored_type type,
    detail::safetensors_metadata const& metadata = detail::metadata_of({{"format", "pt"}})) {
  auto const parameters = detail::named_parameters(trainer);
  using T = detail::element_of<std::remove_cvref_t<decltype(parameters)>>;
  detail::save_trainer<Trainer, T>(trainer, parameters, path, type, &detail::copy_out<T>, metadata);
}
/// Loads a trainer's parameters. Files have no averages (see Averaging): these are set to the
/// loaded parameters. Accumulated gradients are discarded. If its ranks are in several processes,
/// all of them call it, and each loads its own parameters.
///
/// One block at a time is in memory: all blocks are read before the first number is written, and
/// then once more.
///
/// throws: in all processes, and nothing was written, if it does in one. Should a file be damaged
///         between the two, the trainer is broken, and later calls throw pp::error; model_weights
///         are read once, and may be written in part if that fails
template <detail::has_named_parameters Trainer>
[[gnu::cold]] load_report load_weights(Trainer& trainer, std::string const& path,
                                       load_policy policy = load_policy::strict) {
  return detail::load_trainer(trainer, path, policy, {});
}
template <detail::has_named_parameters Trainer>
[[gnu::cold]] load_report load_weights(Trainer& trainer, std::string const& path,
                                       load_policy policy, name_map const& names) {
  return detail::load_trainer(trainer, path, policy, detail::source_names(names));
}
template <detail::has_named_parameters Trainer>
[[gnu::cold]] load_report load_weights(Trainer& trainer, weight_files const& files,
                                       load_policy policy = load_policy::strict,
                                       name_map const& names = {}) {
  return detail::load_trainer(trainer, files.name(), policy, detail::source_names(names), &files);
}

}  // namespace pp
#if defined(PIPE_COMPILED) && !defined(__CUDACC__)
namespace pp::detail {

PIPE_COMPILED template class file_reading<row_list<placed_tensor>, weight_files>;
PIPE_COMPILED template checked_load<float, file_reading<row_list<placed_tensor>, weight_files>>
check_tensors<float, row_list<placed_tensor>, weight_files>(std::span<named_parameter<float> const>,
                                                            row_list<placed_tensor> const&,
                                                            weight_files const&,
                                                            weights_source const&, load_policy,
                                                            source_names const&, reading);
PIPE_COMPILED template decltype(copied_in<float>) copied_in<float>;
PIPE_COMPILED template decltype(write_weights<float>) write_weights<float>;

}  // namespace pp::detail
#endif
