// SPDX-License-Identifier: BSL-1.0
//
// The parameters of a model in safetensors files, under the names and in the layout that the file's other readers expect.
// Loading is all or nothing: what does not fit is found, and all of it is told, before the first parameter changes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <pipe/base/error.hpp>
#include <pipe/base/libm.hpp>
#include <pipe/train/atomic_file.hpp>
#include <pipe/train/safetensors.hpp>

namespace pp {

/// A parameter where it is, and as a file has it.
///
/// shape: values[rows, columns], row-major; in the file [columns, rows] if transposed, as PyTorch stores [outputs, inputs]
/// law:   the extents of `shape` multiply to rows * columns == values.size()
template <class T>
struct named_parameter {
  std::string name;
  std::vector<long> shape;  ///< in the file
  bool transposed = false;
  int rows = 0, columns = 0;
  std::span<T> values;
};

enum class load_policy : unsigned char {
  strict,  ///< the file has every parameter and nothing else
  partial  ///< what both have is loaded
};

/// What loading did, by names: of parameters, in the model's order, and of tensors that no parameter took, in the file's.
struct load_report {
  std::vector<std::string> loaded, missing, unused;
};

/// A Pipeline, or anything else whose parameters know their place in a file.
template <class Trainer>
concept has_named_parameters = requires(Trainer& trainer) {
  std::string(trainer.parameters().front().name);
  std::vector<long>(trainer.parameters().front().file_shape);
  bool(trainer.parameters().front().stored_transposed);
  trainer.parameters().front().values;
  trainer.parameters_changed();
};

template <has_named_parameters Trainer>
auto named_parameters(Trainer& trainer) {
  using element = typename decltype(trainer.parameters().front().values)::element_type;
  std::vector<named_parameter<element>> all;
  for (auto const& p : trainer.parameters())
    all.push_back(
        {std::string(p.name), std::vector<long>(p.file_shape), bool(p.stored_transposed), p.rows, p.columns, p.values});
  return all;
}

/// Throws an error for a parameter that breaks its law: it could not be copied safely.
template <class T>
void require_law(named_parameter<T> const& p) {
  std::uint64_t bytes = 0;
  bool const counted = count_bytes(stored_type_of<T>(), p.shape, bytes) && bytes == p.values.size_bytes();
  if (!counted || p.rows < 0 || p.columns < 0 || std::size_t(p.rows) * std::size_t(p.columns) != p.values.size())
    throw error("parameter " + in_quotes(p.name) + ": " + std::to_string(p.rows) + " x " + std::to_string(p.columns) +
                " and shape " + text_of_shape(p.shape) + " must both be its " + std::to_string(p.values.size()) +
                " numbers");
}

/// Numbers first, first + stride ... of a parameter are consecutive in a file: calls one(run, first, stride) for each such run
/// of `length` numbers, in the file's order.
template <class T, class One>
void for_each_run(named_parameter<T> const& p, One one) {
  std::size_t const rows = std::size_t(p.rows), columns = std::size_t(p.columns);
  if (p.transposed)
    for (std::size_t c = 0; c < columns; ++c) one(c * rows, c, columns, rows);
  else
    for (std::size_t r = 0; r < rows; ++r) one(r * columns, r * columns, std::size_t(1), columns);
}

/// Copies a tensor, which has the parameter's shape, to where the parameter is.
template <class T>
void copy_in(safetensors_entry const& from, named_parameter<T> const& to) {
  std::vector<T> run;
  for_each_run(to, [&](std::size_t at, std::size_t first, std::size_t stride, std::size_t length) {
    run.resize(length);
    decode(from.type, from.bytes.data() + at * std::size_t(size_of(from.type)), std::span<T>(run));
    for (std::size_t i = 0; i < length; ++i) to.values[first + i * stride] = run[i];
  });
}

/// Replaces `bytes` by the parameter as a file has it. Throws data_error for a number that the type cannot hold.
template <class T>
void copy_out(named_parameter<T> const& from, stored_type type, std::vector<std::byte>& bytes) {
  std::size_t const size = std::size_t(size_of(type));
  bytes.resize(from.values.size() * size);
  std::vector<T> run, stored;
  for_each_run(from, [&](std::size_t at, std::size_t first, std::size_t stride, std::size_t length) {
    run.resize(length), stored.resize(length);
    for (std::size_t i = 0; i < length; ++i) run[i] = from.values[first + i * stride];
    encode(type, std::span<T const>(run), bytes.data() + at * size);
    decode(type, bytes.data() + at * size, std::span<T>(stored));
    for (std::size_t i = 0; i < length; ++i)
      if (libm::isfinite(run[i]) && !libm::isfinite(stored[i]))
        throw data_error("parameter " + in_quotes(from.name) + ": number " + std::to_string(at + i) + ", " +
                         std::to_string(run[i]) + ", is too large for " + name_of(type));
  });
}

/// Writes parameters as `type`, in their order, with `metadata` (that of PyTorch's own files, unless another is given).
///
/// law: the same parameters give the same bytes; written in the element's own type they are loaded bit for bit
/// throws: file_error (what `path` led to is as before), data_error for a name twice or a number too large for `type`
template <class T>
void save_weights(std::vector<named_parameter<T>> const& parameters, std::string const& path,
                  stored_type type = stored_type_of<T>(), safetensors_metadata const& metadata = {{"format", "pt"}}) {
  if (!is_real(type)) throw data_error(std::string("weights cannot be stored as ") + name_of(type));
  std::vector<safetensors_place> places;
  for (named_parameter<T> const& p : parameters) {
    require_law(p);
    places.push_back({p.name, type, p.shape});
  }
  place_tensors(places);
  atomic_file file(path);
  file.write(safetensors_preamble(places, metadata));
  std::vector<std::byte> bytes;
  for (named_parameter<T> const& p : parameters) {  // of one type, so in the order of their places
    copy_out(p, type, bytes);
    file.write(bytes);
  }
  file.commit();
}

/// What keeps a tensor from being a parameter; nothing if it can be.
template <class T>
std::string misfit(safetensors_entry const& tensor, named_parameter<T> const& parameter) {
  if (tensor.shape != parameter.shape)
    return "expected shape " + text_of_shape(parameter.shape) + ", found " + text_of_shape(tensor.shape);
  if (!is_real(tensor.type)) return std::string("expected F64, F32, F16 or BF16, found ") + name_of(tensor.type);
  if (long const at = first_too_large<T>(tensor.type, tensor.bytes); at >= 0)
    return "number " + std::to_string(at) + " is too large for " + name_of(stored_type_of<T>());
  return "";
}

/// Loads parameters, converting to their type.
///
/// law: nothing is written unless everything fits
/// throws: data_error with all that does not fit (the first eight of it, and how much more): with either policy a tensor of
///         another shape, of no real type, or with a number too large for T; with `strict` also what the report could name
template <class T>
load_report load_weights(std::vector<named_parameter<T>> const& parameters, safetensors_file const& file,
                         load_policy policy = load_policy::strict) {
  load_report report;
  std::vector<std::string> problems;
  std::vector<std::pair<safetensors_entry const*, named_parameter<T> const*>> pairs;
  std::set<std::string_view> used;
  for (named_parameter<T> const& p : parameters) {
    require_law(p);
    safetensors_entry const* const tensor = file.find(p.name);
    if (tensor == nullptr) {
      report.missing.push_back(p.name);
      if (policy == load_policy::strict) problems.push_back("parameter " + in_quotes(p.name) + ": not in the file");
      continue;
    }
    used.insert(tensor->name);
    if (std::string const why = misfit(*tensor, p); !why.empty())
      problems.push_back("tensor " + in_quotes(p.name) + ": " + why);
    pairs.push_back({tensor, &p});
    report.loaded.push_back(p.name);
  }
  for (safetensors_entry const& tensor : file.tensors())
    if (!used.contains(tensor.name)) {
      report.unused.push_back(tensor.name);
      if (policy == load_policy::strict) problems.push_back("tensor " + in_quotes(tensor.name) + ": not in the model");
    }

  if (!problems.empty()) {
    constexpr std::size_t shown = 8;
    std::string text = "the weights in '" + file.name() + "' do not fit the model: ";
    for (std::size_t i = 0; i < problems.size() && i < shown; ++i) text += (i > 0 ? "; " : "") + problems[i];
    if (problems.size() > shown) text += "; and " + std::to_string(problems.size() - shown) + " more";
    throw data_error(text);
  }
  for (auto const& [tensor, parameter] : pairs) copy_in(*tensor, *parameter);
  return report;
}

template <class T>
load_report load_weights(std::vector<named_parameter<T>> const& parameters, std::string const& path,
                         load_policy policy = load_policy::strict) {
  return load_weights(parameters, safetensors_file(path), policy);
}

/// The same for all parameters of a trainer.
template <has_named_parameters Trainer>
void save_weights(Trainer& trainer, std::string const& path) {
  save_weights(named_parameters(trainer), path);
}
template <has_named_parameters Trainer>
void save_weights(Trainer& trainer, std::string const& path, stored_type type,
                  safetensors_metadata const& metadata = {{"format", "pt"}}) {
  save_weights(named_parameters(trainer), path, type, metadata);
}
template <has_named_parameters Trainer>
load_report load_weights(Trainer& trainer, std::string const& path, load_policy policy = load_policy::strict) {
  load_report report = load_weights(named_parameters(trainer), path, policy);
  trainer.parameters_changed();
  return report;
}

}  // namespace pp
