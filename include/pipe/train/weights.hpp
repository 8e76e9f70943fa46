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
#include <pipe/train/safetensors_reader.hpp>
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

/// Loads matched parameters. `fetch`: given the pairs, reads their bytes and returns
/// bytes_of(pair) -> span. agree(): called before the first parameter is written; it may throw.
template <class T, class Tensor, class Fetch, class Agree>
load_report load_pairs(std::vector<named_parameter<T>> const& parameters,
                       std::vector<Tensor> const& tensors, weights_source const& from,
                       load_policy policy, name_map const& map, Fetch fetch, Agree const& agree) {
  weight_pairs found = pair_weights(
      parameters, tensors, policy, map, from,
      [&](std::vector<std::size_t> const& which, named_parameter<T> const& p) {
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
  auto const bytes_of = fetch(found.pairs);  // all data is in memory from here on
  std::vector<std::string> problems;
  for (std::size_t i = 0; i < found.pairs.size(); ++i) {
    Tensor const& t = tensors[found.pairs[i].tensors[0]];
    if (long const at = first_too_large<T>(t.type, bytes_of(i)); at >= 0)
      problems.push_back("tensor " + in_quotes(t.name) + ": number " + std::to_string(at) +
                         " is too large for " + name_of(stored_type_of<T>()));
  }
  require_fit(from, problems);
  agree();
  for (std::size_t i = 0; i < found.pairs.size(); ++i)  // nothing from here on can fail
    copy_in(tensors[found.pairs[i].tensors[0]].type, bytes_of(i).data(),
            parameters[found.pairs[i].parameter]);
  return std::move(found.report);
}

/// The same, from some tensors of an open file.
template <class T, class Agree>
load_report load_tensors(std::vector<named_parameter<T>> const& parameters,
                         std::vector<safetensors_place> const& tensors,
                         safetensors_reader const& file, weights_source const& from,
                         load_policy policy, name_map const& map, Agree const& agree) {
  std::unique_ptr<std::byte[]> data;
  return load_pairs(
      parameters, tensors, from, policy, map,
      [&](auto const& pairs) {
        std::vector<std::uint64_t> begins{0};
        for (weight_sources const& pair : pairs) {
          begins.push_back(begins.back());
          for (std::size_t const t : pair.tensors)
            begins.back() += tensors[t].end - tensors[t].begin;
        }
        data = memory_for(begins.back(), "the tensors that are loaded", file.name());
        auto bytes_of = [at = data.get(), begins](std::size_t i) {
          return std::span(at + begins[i], std::size_t(begins[i + 1] - begins[i]));
        };
        for (std::size_t i = 0; i < pairs.size(); ++i) {
          std::span<std::byte> room = bytes_of(i);
          for (std::size_t const t : pairs[i].tensors) {
            std::size_t const bytes = std::size_t(tensors[t].end - tensors[t].begin);
            file.read(tensors[t].begin, room.first(bytes));
            room = room.subspan(bytes);
          }
        }
        return bytes_of;
      },
      agree);
}
/// A file, for messages.
inline weights_source source_of(std::string const& file) {
  return {"in '" + file + "'", "the file"};
}

}  // namespace detail

/// Loads parameters from a file, converting to their type. `names` maps parameter names to names in
/// the file, or to those of several tensors, which are joined along their first extent there.
///
/// law: all or nothing: if it throws, nothing was written
/// throws: data_error with the first eight mismatches and the number of the others: with either
///         policy a tensor of another shape, of no real type, or with a number too large for T;
///         with `strict` also missing and unused names; with `partial` if there is no common name.
///         file_error if a tensor cannot be read, or memory is exhausted
template <class T, class Agree = detail::agreed>
load_report load_weights(std::vector<detail::named_parameter<T>> const& parameters,
                         safetensors_reader const& file, load_policy policy = load_policy::strict,
                         name_map const& names = {}, Agree const& agree = {}) {
  return detail::load_tensors(parameters, file.tensors(), file, detail::source_of(file.name()),
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
  return load_weights(parameters, safetensors_reader(path), policy, names);
}

namespace detail {

/// A trainer with averages of its parameters: averaged() lists them in the order of parameters().
template <class Trainer>
concept keeps_averages = requires { requires Trainer::keeps_averages; };

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
                  safetensors_metadata const& metadata) {
  auto const parameters = named_parameters(trainer);
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

}  // namespace detail

/// Saves all parameters of a trainer. If its ranks are in several processes, all of them call it.
///
/// throws: in all processes, if it does in one
template <detail::has_named_parameters Trainer>
void save_weights(Trainer& trainer, std::string const& path) {
  using element = typename decltype(trainer.parameters().front().values)::value_type;
  detail::save_trainer(trainer, path, detail::stored_type_of<element>(), {{"format", "pt"}});
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
/// throws: in all processes, and nothing was written, if it does in one
template <detail::has_named_parameters Trainer>
load_report load_weights(Trainer& trainer, std::string const& path,
                         load_policy policy = load_policy::strict, name_map const& names = {}) {
  auto const parameters = detail::named_parameters(trainer);
  auto const averages = detail::averages_of(trainer);
  load_report const report = detail::load_together(
      path,
      [&](bool here) {
        if constexpr (detail::has_processes<Trainer>) return trainer.processes().agree(here);
        return here;
      },
      [&](auto const& agree) {
        return load_weights(parameters, safetensors_reader(path), policy, names, agree);
      });
  for (std::size_t i = 0, next = 0; i < averages.size() && next < report.loaded.size(); ++i)
    if (parameters[i].name == report.loaded[next]) {
      std::copy(parameters[i].values.begin(), parameters[i].values.end(), averages[i].begin());
      ++next;
    }
  trainer.parameters_changed();
  return report;
}

}  // namespace pp
