// SPDX-License-Identifier: BSL-1.0
//
// Saving and loading of a model's parameters in safetensors files, with the names and layouts of
// PyTorch. Loading is all or nothing: every mismatch is found and reported before the first
// parameter changes.
#pragma once
#ifndef PIPE_SHOWS_WARNINGS
#pragma GCC system_header
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <pipe/base/error.hpp>
#include <pipe/base/libm.hpp>
#include <pipe/io/atomic_file.hpp>
#include <pipe/train/name_map.hpp>
#include <pipe/train/named_parameter.hpp>
#include <pipe/train/safetensors.hpp>
#include <pipe/train/weight_files.hpp>
#include <pipe/train/weight_pairs.hpp>

namespace pp::detail {

/// Saves parameters whose values are there when they are written: values_of(index) is called for
/// each in turn.
template <class T, class ValuesOf>
void write_weights(std::vector<named_parameter<T>> const& parameters, std::string const& path,
                   stored_type type, safetensors_metadata const& metadata,
                   ValuesOf const& values_of) {
  if (!is_real(type))
    throw data_error(std::string("save_weights: type: expected F64, F32, F16 or BF16, got ") +
                     name_of(type));
  std::vector<safetensors_place> places;
  for (named_parameter<T> const& p : parameters) {
    require_law(p);
    places.push_back({p.name, type, p.shape});
  }
  place_tensors(places);
  atomic_file file(path);
  file.write(safetensors_preamble(places, metadata));
  std::vector<std::byte> bytes;
  // Of one type, so in the order of their places.
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    copy_out(values_of(i), type, bytes);
    file.write(bytes);
  }
  file.commit();
}

}  // namespace pp::detail

namespace pp {

/// Saves parameters as `type`, in the given order. `metadata`: by default that of PyTorch's files.
///
/// law: equal parameters give equal bytes; saved in the element's own type, they load bit for bit
/// throws: file_error, and the previous file is unchanged; data_error for names that are not unique
///         or a number too large for `type`
template <class T>
void save_weights(std::vector<detail::named_parameter<T>> const& parameters,
                  std::string const& path, stored_type type = detail::stored_type_of<T>(),
                  detail::safetensors_metadata const& metadata = {{"format", "pt"}}) {
  detail::write_weights(parameters, path, type, metadata,
                        [&](std::size_t i) -> auto const& { return parameters[i]; });
}

namespace detail {

/// The agreement of one process with itself.
struct agreed {
  void operator()() const {}
};

/// Loads matched parameters. `fetch`: given the pairs, returns bytes_of(pair) -> span, with bytes
/// that were read then or are read by this call. agree(): called before the first parameter is
/// written; it may throw.
template <class T, class Tensor, class Fetch, class Agree>
load_report load_pairs(std::vector<named_parameter<T>> const& parameters,
                       std::vector<Tensor> const& tensors, weights_source const& from,
                       load_policy policy, name_map const& map, Fetch fetch, Agree const& agree) {
  weight_pairs found = pair_weights(
      parameters, tensors, policy, map, from,
      [&](weight_sources const& pair, named_parameter<T> const& p) {
        std::vector<std::size_t> const& which = pair.tensors;
        if (!misfit_of_shape(p.shape, joined_shape(tensors, which)).empty())
          return "expected shape " + text_of_shape(p.shape) + ", found " +
                 text_of_shapes(tensors, which);
        Tensor const& t = tensors[which[0]];
        for (std::size_t const other : which)
          if (tensors[other].type != t.type)
            return "expected one type, found " + text_of_type(t) + " and " +
                   text_of_type(tensors[other]);
        return is_real(t.type) ? "" : "expected F64, F32, F16 or BF16, found " + text_of_type(t);
      });
  std::erase_if(found.pairs,
                [&](weight_sources const& pair) { return parameters[pair.parameter].elsewhere; });
  std::vector<named_parameter<T>> to;
  for (weight_sources const& pair : found.pairs)
    to.push_back(as_there(parameters[pair.parameter], pair.transposed));
  auto const bytes_of = fetch(found.pairs);
  std::vector<std::string> problems;
  for (std::size_t i = 0; i < found.pairs.size(); ++i) {
    Tensor const& t = tensors[found.pairs[i].tensors[0]];
    if (t.type != stored_type::f64) continue;  // which is the only type with larger numbers
    if (long const at = first_too_large<T>(t.type, bytes_of(i)); at >= 0)
      problems.push_back("tensor " + in_quotes(t.name) + ": number " + std::to_string(at) +
                         " is too large for " + name_of(stored_type_of<T>()));
  }
  require_fit(from, problems);
  agree();
  // Nothing but reading can fail from here on.
  for (std::size_t i = 0; i < found.pairs.size(); ++i)
    copy_in(tensors[found.pairs[i].tensors[0]].type, bytes_of(i).data(), to[i]);
  return std::move(found.report);
}

/// When the tensors of a file are read.
enum class reading : unsigned char {
  before,   ///< all of them before the first parameter is written
  in_place  ///< each when its parameter is written: memory is that of the largest
};

/// The same, from some tensors of an open file, or of several.
template <class T, class Tensor, class File, class Agree>
load_report load_tensors(std::vector<named_parameter<T>> const& parameters,
                         std::vector<Tensor> const& tensors, File const& file,
                         weights_source const& from, load_policy policy, name_map const& map,
                         Agree const& agree, reading when = reading::before) {
  std::unique_ptr<std::byte[]> data;
  return load_pairs(
      parameters, tensors, from, policy, map,
      [&](std::vector<weight_sources> const& pairs) {
        std::vector<std::uint64_t> begins, sizes;
        std::uint64_t all = 0;
        for (weight_sources const& pair : pairs) {
          std::uint64_t size = 0;
          for (std::size_t const t : pair.tensors) size += tensors[t].end - tensors[t].begin;
          begins.push_back(when == reading::before ? all : 0);
          sizes.push_back(size);
          all = when == reading::before ? all + size : std::max(all, size);
        }
        data = memory_for(all, "the tensors that are loaded", file.name());
        auto bytes_of = [begins, sizes, at = data.get()](std::size_t i) {
          return std::span(at + begins[i], std::size_t(sizes[i]));
        };
        auto read = [&tensors, &file, &pairs, bytes_of](std::size_t i) {
          std::span<std::byte> room = bytes_of(i);
          for (std::size_t const t : pairs[i].tensors) {
            std::size_t const bytes = std::size_t(tensors[t].end - tensors[t].begin);
            file.read(tensors[t], room.first(bytes));
            room = room.subspan(bytes);
          }
        };
        if (when == reading::before)
          for (std::size_t i = 0; i < pairs.size(); ++i) read(i);
        return [read, bytes_of, when](std::size_t i) {
          if (when == reading::in_place) read(i);
          return bytes_of(i);
        };
      },
      agree);
}
/// A file, for messages.
inline weights_source source_of(std::string const& file) {
  return {"in '" + file + "'", "the file"};
}

}  // namespace detail

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
template <class T, class Agree = detail::agreed>
load_report load_weights(std::vector<detail::named_parameter<T>> const& parameters,
                         weight_files const& files, load_policy policy = load_policy::strict,
                         name_map const& names = {}, Agree const& agree = {}) {
  return detail::load_tensors(parameters, files.tensors(), files, detail::source_of(files.name()),
                              policy, names, agree);
}
template <class T>
load_report load_weights(std::vector<detail::named_parameter<T>> const& parameters,
                         safetensors_file const& file, load_policy policy = load_policy::strict,
                         name_map const& names = {}) {
  return detail::load_pairs(
      parameters, file.tensors(), detail::source_of(file.name()), policy, names,
      [&](auto const& pairs) {
        std::vector<std::vector<std::byte>> joined(pairs.size());  // empty for those of one tensor
        for (std::size_t i = 0; i < pairs.size(); ++i)
          if (pairs[i].tensors.size() > 1)
            for (std::size_t const t : pairs[i].tensors)
              joined[i].insert(joined[i].end(), file.tensors()[t].bytes.begin(),
                               file.tensors()[t].bytes.end());
        return [&, joined = std::move(joined)](std::size_t i) {
          return joined[i].empty() ? file.tensors()[pairs[i].tensors[0]].bytes
                                   : std::span<std::byte const>(joined[i]);
        };
      },
      detail::agreed{});
}
template <class T>
load_report load_weights(std::vector<detail::named_parameter<T>> const& parameters,
                         std::string const& path, load_policy policy = load_policy::strict,
                         name_map const& names = {}) {
  return load_weights(parameters, weight_files(path), policy, names);
}

namespace detail {

/// A trainer with averages of its parameters: averaged() lists them in the order of parameters().
template <class Trainer>
concept keeps_averages = requires { requires Trainer::keeps_averages; };

/// Parameters whose old values nothing needs after a load that has failed.
template <class Trainer>
concept is_read_in_place = requires { requires Trainer::is_read_in_place; };

/// Views of the averages of all parameters; empty if the trainer keeps none.
template <has_named_parameters Trainer>
auto averages_of(Trainer& trainer) {
  std::vector<decltype(trainer.parameters().front().values)> all;
  if constexpr (keeps_averages<Trainer>)
    for (auto const& p : trainer.averaged()) all.push_back(p.values);
  return all;
}

/// Saves parameters of a trainer whose processes all call it: that of rank 0 writes the file.
/// values_of(index): the parameter with its values, which all collect, one parameter at a time.
///
/// throws: as write_weights, in that process; in the others file_error
template <class Processes, class T, class ValuesOf>
void save_together(Processes const& processes, std::vector<named_parameter<T>> const& parameters,
                   std::string const& path, stored_type type, safetensors_metadata const& metadata,
                   ValuesOf const& values_of) {
  std::size_t next = 0;
  auto const collect = [&](std::size_t i) {
    next = i + 1;
    return values_of(i);
  };
  std::exception_ptr failure;
  if (processes.writes_files()) try {
      write_weights(parameters, path, type, metadata, collect);
    } catch (...) {
      failure = std::current_exception();
    }
  while (next < parameters.size()) collect(next);
  bool const is_saved = processes.agree(!failure);
  if (failure) std::rethrow_exception(failure);
  if (!is_saved) throw file_error("the process of rank 0 could not save " + in_quotes(path));
}
/// Saves a trainer's parameters.
template <has_named_parameters Trainer>
void save_trainer(Trainer& trainer, std::string const& path, stored_type type,
                  safetensors_metadata const& metadata, name_map const& names = {}) {
  auto const parameters = all_there(named_parameters(trainer), names);
  if constexpr (has_processes<Trainer>) {
    auto const views = trainer.parameters();
    auto const processes = trainer.processes();
    std::vector<typename Trainer::element> room;
    save_together(processes, parameters, path, type, metadata, [&](std::size_t i) {
      auto p = parameters[i];
      p.values = processes.values_of(views[i], room);
      return p;
    });
  } else {
    save_weights(parameters, path, type, metadata);
  }
}

/// Loads in all processes of a trainer, or in none. agrees(here): whether something is so in all;
/// load(agree): calls agree() before the first number is written.
///
/// throws: what `load` has thrown; data_error if another process could not load
template <class Agrees, class Load>
auto load_together(std::string const& path, Agrees const& agrees, Load const& load) {
  bool has_agreed = false;
  auto const agree = [&] {
    has_agreed = true;
    if (!agrees(true)) throw data_error("another process could not load " + in_quotes(path));
  };
  try {
    return load(agree);
  } catch (...) {
    if (!has_agreed) agrees(false);
    throw;
  }
}

/// Loads a trainer's parameters from open() -> weight_files. `path`: for messages.
template <has_named_parameters Trainer, class Open>
load_report load_trainer(Trainer& trainer, std::string const& path, load_policy policy,
                         name_map const& names, Open const& open) {
  auto const parameters = named_parameters(trainer);
  auto const averages = averages_of(trainer);
  load_report const report = load_together(
      path,
      [&](bool here) {
        if constexpr (has_processes<Trainer>) return trainer.processes().agree(here);
        return here;
      },
      [&](auto const& agree) {
        weight_files const& files = open();
        return load_tensors(parameters, files.tensors(), files, source_of(files.name()), policy,
                            names, agree,
                            is_read_in_place<Trainer> ? reading::in_place : reading::before);
      });
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
void save_weights(Trainer& trainer, std::string const& path, name_map const& names = {}) {
  using element = typename decltype(trainer.parameters().front().values)::value_type;
  detail::save_trainer(trainer, path, detail::stored_type_of<element>(), {{"format", "pt"}}, names);
}
template <detail::has_named_parameters Trainer>
void save_weights(Trainer& trainer, std::string const& path, stored_type type,
                  detail::safetensors_metadata const& metadata = {{"format", "pt"}}) {
  detail::save_trainer(trainer, path, type, metadata);
}
/// Loads a trainer's parameters. Files have no averages (see Averaging): these are set to the
/// loaded parameters. Accumulated gradients are discarded. If its ranks are in several processes,
/// all of them call it, and each loads its own parameters.
///
/// throws: in all processes, and nothing was written, if it does in one. Only model_weights, which
///         are read tensor by tensor, may be written in part if a read fails
template <detail::has_named_parameters Trainer>
load_report load_weights(Trainer& trainer, std::string const& path,
                         load_policy policy = load_policy::strict, name_map const& names = {}) {
  std::optional<weight_files> files;
  return detail::load_trainer(trainer, path, policy, names,
                              [&]() -> weight_files const& { return files.emplace(path); });
}
template <detail::has_named_parameters Trainer>
load_report load_weights(Trainer& trainer, weight_files const& files,
                         load_policy policy = load_policy::strict, name_map const& names = {}) {
  return detail::load_trainer(trainer, files.name(), policy, names,
                              [&]() -> weight_files const& { return files; });
}

}  // namespace pp
