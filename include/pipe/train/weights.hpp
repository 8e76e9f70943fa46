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
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <pipe/base/error.hpp>
#include <pipe/base/libm.hpp>
#include <pipe/io/atomic_file.hpp>
#include <pipe/train/name_map.hpp>
#include <pipe/train/safetensors.hpp>
#include <pipe/train/safetensors_reader.hpp>

namespace pp {

namespace detail {

/// A view of a parameter, with its name and shape in files.
///
/// shape: values[rows, columns], row-major; in the file [columns, rows] if transposed, as PyTorch
///        stores [outputs, inputs]
/// law:   the product of `shape` is rows * columns == values.size()
template <class T>
struct named_parameter {
  std::string name;
  std::vector<long> shape;  ///< in the file
  bool transposed = false;
  int rows = 0, columns = 0;
  std::span<T> values;
};

}  // namespace detail

/// Treatment of names that only one side has.
enum class load_policy : unsigned char {
  strict,  ///< the file has every parameter and nothing else
  partial  ///< the common names are loaded, at least one
};

/// Result of loading, by name: `loaded` and `missing` parameters in model order, and tensors that
/// were `unused`, in file order. When copying from a model, its parameters are the tensors.
struct load_report {
  std::vector<std::string> loaded, missing, unused;
};

namespace detail {

/// A Pipeline, or any other type with named parameters and file shapes.
template <class Trainer>
concept has_named_parameters = requires(Trainer& trainer) {
  std::string(trainer.parameters().front().name);
  std::vector<long>(trainer.parameters().front().file_shape);
  bool(trainer.parameters().front().stored_transposed);
  trainer.parameters().front().values;
  trainer.parameters_changed();
};

/// Views of a trainer's parameters in the order of parameters(), with their names and shapes in
/// files.
template <has_named_parameters Trainer>
auto named_parameters(Trainer& trainer) {
  using element = typename decltype(trainer.parameters().front().values)::element_type;
  std::vector<named_parameter<element>> all;
  for (auto const& p : trainer.parameters())
    all.push_back({std::string(p.name), std::vector<long>(p.file_shape), bool(p.stored_transposed),
                   p.rows, p.columns, p.values});
  return all;
}

/// Throws error for a parameter that violates the law of named_parameter and could not be copied
/// safely.
template <class T>
void require_law(named_parameter<T> const& p) {
  std::uint64_t bytes = 0;
  bool const counted =
      count_bytes(stored_type_of<T>(), p.shape, bytes) && bytes == p.values.size_bytes();
  if (!counted || p.rows < 0 || p.columns < 0 ||
      std::size_t(p.rows) * std::size_t(p.columns) != p.values.size())
    throw error("parameter " + in_quotes(p.name) + ": " + std::to_string(p.rows) + " x " +
                std::to_string(p.columns) + " and shape " + text_of_shape(p.shape) +
                " must both be its " + std::to_string(p.values.size()) + " numbers");
}

/// Calls one(run, first, stride) for each run of `length` numbers that are consecutive in a file,
/// in the file's order: in memory they are numbers first, first + stride, ...
template <class T, class One>
void for_each_run(named_parameter<T> const& p, One one) {
  std::size_t const rows = std::size_t(p.rows), columns = std::size_t(p.columns);
  if (p.transposed)
    for (std::size_t c = 0; c < columns; ++c) one(c * rows, c, columns, rows);
  else
    for (std::size_t r = 0; r < rows; ++r) one(r * columns, r * columns, std::size_t(1), columns);
}

/// Copies a tensor of a real type and of the parameter's shape to the parameter's memory.
template <class T>
void copy_in(stored_type type, std::byte const* from, named_parameter<T> const& to) noexcept {
  with_reader_of(type, [&, size = std::size_t(size_of(type))](auto number_at) {
    for_each_run(to,
                 [&](std::size_t at, std::size_t first, std::size_t stride, std::size_t length) {
                   for (std::size_t i = 0; i < length; ++i)
                     to.values[first + i * stride] = T(number_at(from + (at + i) * size));
                 });
  });
}

/// Converts a parameter to its bytes in a file. Throws data_error for a number that the type cannot
/// represent.
template <class T>
void copy_out(named_parameter<T> const& from, stored_type type, std::vector<std::byte>& bytes) {
  std::size_t const size = std::size_t(size_of(type));
  bytes.resize(from.values.size() * size);
  std::vector<T> run, stored;
  for_each_run(from,
               [&](std::size_t at, std::size_t first, std::size_t stride, std::size_t length) {
                 run.resize(length), stored.resize(length);
                 for (std::size_t i = 0; i < length; ++i) run[i] = from.values[first + i * stride];
                 encode(type, std::span<T const>(run), bytes.data() + at * size);
                 // Read back, because a number that is too large becomes infinite only by rounding
                 // to the type.
                 decode(type, bytes.data() + at * size, std::span<T>(stored));
                 for (std::size_t i = 0; i < length; ++i)
                   if (libm::isfinite(run[i]) && !libm::isfinite(stored[i]))
                     throw data_error("parameter " + in_quotes(from.name) + ": number " +
                                      std::to_string(at + i) + ", " + std::to_string(run[i]) +
                                      ", is too large for " + name_of(type));
               });
}

}  // namespace detail

/// Saves parameters as `type`, in the given order. `metadata`: by default that of PyTorch's files.
///
/// law: equal parameters give equal bytes; saved in the element's own type, they load bit for bit
/// throws: file_error, and the previous file is unchanged; data_error for names that are not unique
///         or a number too large for `type`
template <class T>
void save_weights(std::vector<detail::named_parameter<T>> const& parameters,
                  std::string const& path, stored_type type = detail::stored_type_of<T>(),
                  detail::safetensors_metadata const& metadata = {{"format", "pt"}}) {
  if (!is_real(type))
    throw data_error(std::string("save_weights: type: expected F64, F32, F16 or BF16, got ") +
                     name_of(type));
  std::vector<detail::safetensors_place> places;
  for (detail::named_parameter<T> const& p : parameters) {
    detail::require_law(p);
    places.push_back({p.name, type, p.shape});
  }
  detail::place_tensors(places);
  atomic_file file(path);
  file.write(detail::safetensors_preamble(places, metadata));
  std::vector<std::byte> bytes;
  for (detail::named_parameter<T> const& p :
       parameters) {  // of one type, so in the order of their places
    detail::copy_out(p, type, bytes);
    file.write(bytes);
  }
  file.commit();
}

namespace detail {

/// The source of weights, for messages: "in 'a.safetensors'" and "the file".
struct weights_source {
  std::string where;
  char const* what;
};

/// Throws data_error if there are problems, with the first eight and the number of the others.
inline void require_fit(weights_source const& from, std::vector<std::string> const& problems) {
  if (problems.empty()) return;
  constexpr std::size_t shown = 8;
  std::string text = "the weights " + from.where + " do not fit the model: ";
  for (std::size_t i = 0; i < problems.size() && i < shown; ++i)
    text += (i > 0 ? "; " : "") + problems[i];
  if (problems.size() > shown) text += "; and " + std::to_string(problems.size() - shown) + " more";
  throw data_error(text);
}

/// Names as text: "'a', 'b', 'c' and 9 more", or "none".
inline std::string text_of_names(std::vector<std::string> const& names) {
  constexpr std::size_t shown = 3;
  std::string text;
  for (std::size_t i = 0; i < names.size() && i < shown; ++i)
    text += (i > 0 ? ", " : "") + in_quotes(names[i]);
  if (names.size() > shown) text += " and " + std::to_string(names.size() - shown) + " more";
  return text.empty() ? "none" : text;
}

/// Matching of parameters and tensors by index, and the report of it.
struct weight_pairs {
  std::vector<std::pair<std::size_t, std::size_t>> pairs;  // (parameter, tensor)
  load_report report;
};

/// Matches parameters and tensors by name. misfit(tensor, parameter) describes why a pair does not
/// match, or is empty.
///
/// throws: data_error with all mismatches, see load_weights
template <class T, class Tensor, class Misfit>
weight_pairs pair_weights(std::vector<named_parameter<T>> const& parameters,
                          std::vector<Tensor> const& tensors, load_policy policy,
                          name_map const& map, weights_source const& from, Misfit misfit) {
  std::map<std::string_view, std::size_t> by_name;
  for (std::size_t i = 0; i < tensors.size(); ++i) by_name.emplace(tensors[i].name, i);
  std::vector<std::string> names;
  for (named_parameter<T> const& p : parameters) {
    require_law(p);
    names.push_back(p.name);
  }
  std::vector<std::string> const there = names_there(names, map);
  weight_pairs found;
  std::vector<std::string> problems;
  std::vector<bool> is_used(tensors.size());
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    std::string const alias = there[i] == names[i] ? "" : " (" + in_quotes(there[i]) + " there)";
    auto const at = by_name.find(there[i]);
    if (at == by_name.end()) {
      found.report.missing.push_back(names[i]);
      if (policy == load_policy::strict)
        problems.push_back("parameter " + in_quotes(names[i]) + alias + ": not in " + from.what);
      continue;
    }
    is_used[at->second] = true;
    if (std::string const why = misfit(tensors[at->second], parameters[i]); !why.empty())
      problems.push_back("tensor " + in_quotes(there[i]) + ": " + why);
    found.pairs.emplace_back(i, at->second);
    found.report.loaded.push_back(names[i]);
  }
  for (std::size_t i = 0; i < tensors.size(); ++i)
    if (!is_used[i]) {
      found.report.unused.push_back(tensors[i].name);
      if (policy == load_policy::strict)
        problems.push_back("tensor " + in_quotes(tensors[i].name) + ": not in the model");
    }
  if (policy == load_policy::partial && found.pairs.empty() && !parameters.empty())
    problems.push_back("no name in common: " + std::string(from.what) + " has " +
                       text_of_names(found.report.unused) + "; the model wants " +
                       text_of_names(there));
  require_fit(from, problems);
  return found;
}

/// Type of a tensor, or of its entry in a header, as text.
template <class Tensor>
std::string text_of_type(Tensor const& tensor) {
  return tensor.type == stored_type::other ? in_quotes(tensor.other_type) : name_of(tensor.type);
}
/// Description of a mismatch of shapes; empty if they are equal.
inline std::string misfit_of_shape(std::vector<long> const& expected,
                                   std::vector<long> const& found) {
  return expected == found
             ? ""
             : "expected shape " + text_of_shape(expected) + ", found " + text_of_shape(found);
}

/// Loads matched parameters. `fetch`: given the pairs, reads their bytes and returns
/// bytes_of(tensor index) -> span.
template <class T, class Tensor, class Fetch>
load_report load_pairs(std::vector<named_parameter<T>> const& parameters,
                       std::vector<Tensor> const& tensors, std::string const& file,
                       load_policy policy, name_map const& map, Fetch fetch) {
  weights_source const from{"in '" + file + "'", "the file"};
  weight_pairs found = pair_weights(
      parameters, tensors, policy, map, from, [](Tensor const& t, named_parameter<T> const& p) {
        if (std::string why = misfit_of_shape(p.shape, t.shape); !why.empty()) return why;
        return is_real(t.type) ? "" : "expected F64, F32, F16 or BF16, found " + text_of_type(t);
      });
  auto const bytes_of = fetch(found.pairs);  // all data is in memory from here on
  std::vector<std::string> problems;
  for (std::size_t i = 0; i < found.pairs.size(); ++i) {
    Tensor const& t = tensors[found.pairs[i].second];
    if (long const at = first_too_large<T>(t.type, bytes_of(i)); at >= 0)
      problems.push_back("tensor " + in_quotes(t.name) + ": number " + std::to_string(at) +
                         " is too large for " + name_of(stored_type_of<T>()));
  }
  require_fit(from, problems);
  for (std::size_t i = 0; i < found.pairs.size(); ++i)  // nothing from here on can fail
    copy_in(tensors[found.pairs[i].second].type, bytes_of(i).data(),
            parameters[found.pairs[i].first]);
  return std::move(found.report);
}

}  // namespace detail

/// Loads parameters from a file, converting to their type. `names` maps parameter names to names in
/// the file.
///
/// law: all or nothing: if it throws, nothing was written
/// throws: data_error with the first eight mismatches and the number of the others: with either
///         policy a tensor of another shape, of no real type, or with a number too large for T;
///         with `strict` also missing and unused names; with `partial` if there is no common name.
///         file_error if a tensor cannot be read, or memory is exhausted
template <class T>
load_report load_weights(std::vector<detail::named_parameter<T>> const& parameters,
                         safetensors_reader const& file, load_policy policy = load_policy::strict,
                         detail::name_map const& names = {}) {
  std::vector<detail::safetensors_place> const& tensors = file.tensors();
  std::unique_ptr<std::byte[]> data;
  return detail::load_pairs(
      parameters, tensors, file.name(), policy, names, [&](auto const& pairs) {
        std::vector<std::uint64_t> begins{0};
        for (auto const& [parameter, tensor] : pairs)
          begins.push_back(begins.back() + (tensors[tensor].end - tensors[tensor].begin));
        data = detail::memory_for(begins.back(), "the tensors that are loaded", file.name());
        auto bytes_of = [at = data.get(), begins](std::size_t i) {
          return std::span(at + begins[i], std::size_t(begins[i + 1] - begins[i]));
        };
        for (std::size_t i = 0; i < pairs.size(); ++i)
          file.read(tensors[pairs[i].second].begin, bytes_of(i));
        return bytes_of;
      });
}
template <class T>
load_report load_weights(std::vector<detail::named_parameter<T>> const& parameters,
                         safetensors_file const& file, load_policy policy = load_policy::strict,
                         detail::name_map const& names = {}) {
  return detail::load_pairs(
      parameters, file.tensors(), file.name(), policy, names, [&](auto const& pairs) {
        return [&](std::size_t i) { return file.tensors()[pairs[i].second].bytes; };
      });
}
template <class T>
load_report load_weights(std::vector<detail::named_parameter<T>> const& parameters,
                         std::string const& path, load_policy policy = load_policy::strict,
                         detail::name_map const& names = {}) {
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

}  // namespace detail

/// Saves all parameters of a trainer.
template <detail::has_named_parameters Trainer>
void save_weights(Trainer& trainer, std::string const& path) {
  save_weights(detail::named_parameters(trainer), path);
}
template <detail::has_named_parameters Trainer>
void save_weights(Trainer& trainer, std::string const& path, stored_type type,
                  detail::safetensors_metadata const& metadata = {{"format", "pt"}}) {
  save_weights(detail::named_parameters(trainer), path, type, metadata);
}
/// Loads a trainer's parameters. Files have no averages (see Averaging): these are set to the
/// loaded parameters. Accumulated gradients are discarded.
template <detail::has_named_parameters Trainer>
load_report load_weights(Trainer& trainer, std::string const& path,
                         load_policy policy = load_policy::strict,
                         detail::name_map const& names = {}) {
  auto const parameters = detail::named_parameters(trainer);
  auto const averages = detail::averages_of(trainer);
  load_report report = load_weights(parameters, path, policy, names);
  for (std::size_t i = 0, next = 0; i < averages.size() && next < report.loaded.size(); ++i)
    if (parameters[i].name == report.loaded[next]) {
      std::copy(parameters[i].values.begin(), parameters[i].values.end(), averages[i].begin());
      ++next;
    }
  trainer.parameters_changed();
  return report;
}

}  // namespace pp
