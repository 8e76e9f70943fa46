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
#include <pipe/base/kept_text.hpp>
#include <pipe/base/owner.hpp>
#include <pipe/base/row_list.hpp>
#include <pipe/base/together.hpp>
#include <pipe/io/atomic_file.hpp>
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

/// Saves parameters whose values come one parameter at a time, in their order.
template <class T>
[[gnu::cold]] void write_weights(std::span<named_parameter<T> const> parameters,
                                 std::string const& path, stored_type type,
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
      copy_out<T>(part, type, [&](std::span<std::byte const> bytes) { file.write(bytes); });
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
      parameters, path, type, metadata,
      [&](std::size_t i, detail::use_of_parameter<T> use) { use(parameters[i]); });
}

namespace detail {

/// Reads the tensors of a pair: calls use(bytes) for blocks that follow each other and consist of
/// whole lines (see block_of).
using read_blocks = function_ref<void(use_of_bytes use)>;

/// Writes a tensor of a file, which comes in blocks, to a parameter that is in memory.
template <class T>
[[gnu::cold]] void copied_in(std::size_t, stored_type type, named_parameter<T> const& to,
                             read_blocks blocks) {
  long at = 0;
  blocks([&](std::span<std::byte const> bytes) {
    copy_block_in(type, bytes, at, to);
    at += long(bytes.size()) / size_of(type);
  });
}

/// A load of parameters that has been checked, and has written nothing. Blocks: blocks(i, pair,
/// use) reads the blocks of a pair's tensors.
template <class T, class Blocks>
struct checked_load {
  weight_pairs found;               ///< of the parameters of this process
  row_list<named_parameter<T>> to;  ///< by pair: the parameter, as it is in the file
  row_list<stored_type> types;      ///< by pair: of its tensors
  Blocks blocks;

  /// Writes the parameters: write(number, type, parameter, blocks(use)). Nothing is allocated here,
  /// and nothing but a reading of blocks can fail.
  template <class Write>
  [[gnu::cold]] load_report write(Write const& write_one) {
    for (std::size_t i = 0; i < to.size(); ++i)
      write_one(found.pairs[i].parameter, types[i], to[i],
                read_blocks([&](use_of_bytes use) { blocks(i, found.pairs[i], use); }));
    return std::move(found.report);
  }
  /// Writes parameters that are in memory.
  load_report write() { return write(copied_in<T>); }
};

/// Checks a load of matched parameters. `fetch`: given the pairs, and the parameters as they are in
/// the file, returns the Blocks of checked_load. reads_first: all blocks are read here, and again
/// by write().
template <class T, class Tensors, class Fetch>
[[gnu::cold]] auto check_pairs(std::span<named_parameter<T> const> parameters,
                               Tensors const& tensors, weights_source const& from,
                               load_policy policy, name_map const& map, Fetch fetch,
                               bool reads_first = false) {
  weight_pairs found = pair_weights<T>(
      parameters, tensors, policy, map, from,
      [&](weight_sources const& pair, named_parameter<T> const& p) -> std::string {
        row_list<std::size_t> const& which = pair.tensors;
        if (!misfit_of_shape(p.shape, joined_shape(tensors, which)).empty())
          return joined_text({"expected shape ", text_of_shape(p.shape), ", found ",
                              text_of_shapes(tensors, which)});
        auto const& t = tensors[which[0]];
        for (std::size_t const other : which)
          if (tensors[other].type != t.type)
            return joined_text({"expected one type, found ", text_of_type(t), " and ",
                                text_of_type(tensors[other])});
        if (is_real(t.type)) return "";
        return joined_text({"expected F64, F32, F16 or BF16, found ", text_of_type(t)});
      });
  checked_load<T, decltype(fetch(found.pairs, row_list<named_parameter<T>>()))> checked;
  for (weight_sources& pair : found.pairs) {
    named_parameter<T> const& p = parameters[pair.parameter];
    if (p.elsewhere) continue;
    checked.to.push_back(as_there(p, pair.transposed));
    checked.types.push_back(tensors[pair.tensors[0]].type);
    checked.found.pairs.push_back(std::move(pair));
  }
  checked.found.report = std::move(found.report);
  checked.blocks = fetch(checked.found.pairs, checked.to);
  row_list<kept_text> problems;
  for (std::size_t i = 0; i < checked.to.size(); ++i) {
    weight_sources const& pair = checked.found.pairs[i];
    auto const& t = tensors[pair.tensors[0]];
    bool const may_be_too_large = t.type == stored_type::f64;  // the only type with larger numbers
    if (!may_be_too_large && !reads_first) continue;
    long before = 0, first = -1;
    checked.blocks(i, pair, [&](std::span<std::byte const> bytes) {
      long const at = may_be_too_large && first < 0 ? first_too_large<T>(t.type, bytes) : -1;
      if (at >= 0) first = before + at;
      before += long(bytes.size()) / size_of(t.type);
    });
    if (first >= 0)
      problems.push_back(joined_text({"tensor ", quotation(t.name), ": number ", first,
                                      " is too large for ", name_of(stored_type_of<T>())}));
  }
  require_fit(from, problems);
  return checked;
}

/// When the tensors of a file are read.
enum class reading : unsigned char {
  before,    ///< all of them before the first parameter is written
  in_place,  ///< each when its parameter is written, block by block
  twice      ///< in place, after all could be read before the first is written
};

/// The blocks of some tensors of an open file, or of several, with memory for them.
template <class Tensors, class File>
class file_reading {
 public:
  file_reading() = default;
  template <class T>
  [[gnu::cold]] file_reading(Tensors const& tensors, File const& file, reading when,
                             row_list<weight_sources> const& pairs,
                             row_list<named_parameter<T>> const& to)
      : tensors_(&tensors), file_(&file), when_(when) {
    std::uint64_t all = 0;
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      std::uint64_t size = 0;
      for (std::size_t const t : pairs[i].tensors) size += tensors[t].end - tensors[t].begin;
      std::uint64_t const number = std::uint64_t(size_of(tensors[pairs[i].tensors[0]].type));
      if (when == reading::before) {
        rooms_.push_back({all, size});
        all += size;
      } else {
        rooms_.push_back({0, std::min(size, std::uint64_t(block_of(to[i])) * number)});
        all = std::max(all, rooms_.back().size);
      }
    }
    data_ = memory_for(all, "the tensors that are loaded", file.name());
    if (when == reading::before)
      for (std::size_t i = 0; i < pairs.size(); ++i)
        read(i, pairs[i], [](std::span<std::byte const>) {});
  }
  void operator()(std::size_t i, weight_sources const& pair, use_of_bytes use) const {
    if (when_ != reading::before) return read(i, pair, use);
    use(room_of(i));
  }

 private:
  /// The bytes of a pair, or of a block.
  struct room {
    std::uint64_t begin, size;
  };
  std::span<std::byte> room_of(std::size_t i) const {
    return {data_.get() + rooms_[i].begin, std::size_t(rooms_[i].size)};
  }
  [[gnu::cold]] void read(std::size_t i, weight_sources const& pair, use_of_bytes use) const {
    std::span<std::byte> const block = room_of(i);
    std::size_t filled = 0;
    for (std::size_t const t : pair.tensors) {
      auto const& tensor = (*tensors_)[t];
      for (std::uint64_t next = tensor.begin, left; (left = tensor.end - next) > 0;) {
        std::size_t const bytes = std::size_t(std::min<std::uint64_t>(left, block.size() - filled));
        file_->read(tensor, block.subspan(filled, bytes), next - tensor.begin);
        filled += bytes, next += bytes;
        if (filled < block.size()) continue;
        use(std::span<std::byte const>(block));
        filled = 0;
      }
    }
    if (filled > 0) use(std::span<std::byte const>(block.first(filled)));
  }

  Tensors const* tensors_ = nullptr;
  File const* file_ = nullptr;
  reading when_ = reading::before;
  row_list<room> rooms_;  // by pair
  owner<std::byte, delete_memory> data_;
};

/// Checks a load of parameters from some tensors of an open file, or of several, which outlive the
/// result.
template <class T, class Tensors, class File>
[[gnu::cold]] auto check_tensors(std::span<named_parameter<T> const> parameters,
                                 Tensors const& tensors, File const& file,
                                 weights_source const& from, load_policy policy,
                                 name_map const& map, reading when = reading::before) {
  return check_pairs<T>(
      parameters, tensors, from, policy, map,
      [&](row_list<weight_sources> const& pairs, row_list<named_parameter<T>> const& to) {
        return file_reading<Tensors, File>(tensors, file, when, pairs, to);
      },
      when == reading::twice);
}
/// The bytes of tensors of a file in memory.
struct joined_bytes {
  safetensors_file const* file = nullptr;
  row_list<row_list<std::byte>> joined{};  ///< by pair; empty for one tensor

  joined_bytes() = default;
  [[gnu::cold]] joined_bytes(safetensors_file const& of, row_list<weight_sources> const& pairs)
      : file(&of), joined(pairs.size()) {
    for (std::size_t i = 0; i < pairs.size(); ++i)
      if (pairs[i].tensors.size() > 1)
        for (std::size_t const t : pairs[i].tensors)
          joined[i].append(of.tensors()[t].bytes.data(), of.tensors()[t].bytes.size());
  }
  void operator()(std::size_t i, weight_sources const& pair, use_of_bytes use) const {
    use(joined[i].empty() ? file->tensors()[pair.tensors[0]].bytes
                          : std::span<std::byte const>(joined[i].data(), joined[i].size()));
  }
};
/// A file, for messages.
[[gnu::cold]] inline weights_source source_of(std::string const& file) {
  return {joined_text({"in '", file, "'"}), "the file"};
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
template <class T>
[[gnu::cold]] load_report load_weights(std::vector<detail::named_parameter<T>> const& parameters,
                                       weight_files const& files,
                                       load_policy policy = load_policy::strict,
                                       name_map const& names = {}) {
  return detail::check_tensors<T>(parameters, files.tensors(), files,
                                  detail::source_of(files.name()), policy, names)
      .write();
}
template <class T>
[[gnu::cold]] load_report load_weights(std::vector<detail::named_parameter<T>> const& parameters,
                                       safetensors_file const& file,
                                       load_policy policy = load_policy::strict,
                                       name_map const& names = {}) {
  return detail::check_pairs<T>(
             parameters, file.tensors(), detail::source_of(file.name()), policy, names,
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
                                 std::string const& path, stored_type type,
                                 safetensors_metadata const& metadata, read_parameter<T> read) {
  std::size_t next = 0;
  auto const write = [&] {
    if (processes.writes_files())
      write_weights<T>(parameters, path, type, metadata,
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
/// Saves a trainer's parameters.
template <has_named_parameters Trainer>
[[gnu::cold]] void save_trainer(Trainer& trainer, std::string const& path, stored_type type,
                                safetensors_metadata const& metadata, name_map const& names = {}) {
  auto const parameters = all_there(named_parameters(trainer), names);
  auto const views = list_of(trainer);
  auto const processes = processes_of(trainer);
  using T = typename std::remove_cvref_t<decltype(parameters)>::value_type::value_type;
  std::vector<T> room;
  save_together<T>(processes, parameters, path, type, metadata,
                   [&](std::size_t i, use_of_parameter<T> use) {
                     named_parameter<T> p = parameters[i];
                     p.values = processes.values_of(views[i], room);
                     use(p);
                   });
}

/// Loads a trainer's parameters from open() -> weight_files. `path`: for messages.
template <has_named_parameters Trainer, class Open>
[[gnu::cold]] load_report load_trainer(Trainer& trainer, std::string const& path,
                                       load_policy policy, name_map const& names,
                                       Open const& open) {
  auto const parameters = named_parameters(trainer);
  auto const views = list_of(trainer);
  auto const averages = averages_of(trainer);
  using T = typename std::remove_cvref_t<decltype(parameters)>::value_type::value_type;
  constexpr reading when = is_read_in_place<Trainer>   ? reading::in_place
                           : lists_parameters<Trainer> ? reading::twice
                                                       : reading::before;
  load_report report;
  load_together(
      agreement_of(trainer), path,
      [&] {
        weight_files const& files = open();
        return check_tensors<T>(parameters, files.tensors(), files, source_of(files.name()), policy,
                                names, when);
      },
      [&](auto& checked) {
        report = checked.write(
            [&](std::size_t i, stored_type type, named_parameter<T>& to, read_blocks blocks) {
              set_values(trainer, views[i], [&](auto const& values) {
                to.values = values;
                copied_in<T>(i, type, to, blocks);
              });
            });
      },
      [&] {
        if constexpr (lists_parameters<Trainer>)
          trainer.processes().parameters.engine->spoil(trainer.steps());
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
[[gnu::cold]] void save_weights(Trainer& trainer, std::string const& path,
                                name_map const& names = {}) {
  using element = typename decltype(trainer.parameters().front().values)::value_type;
  detail::save_trainer(trainer, path, detail::stored_type_of<element>(),
                       detail::metadata_of({{"format", "pt"}}), names);
}
template <detail::has_named_parameters Trainer>
[[gnu::cold]] void save_weights(
    Trainer& trainer, std::string const& path, files::stored_type type,
    detail::safetensors_metadata const& metadata = detail::metadata_of({{"format", "pt"}})) {
  detail::save_trainer(trainer, path, type, metadata);
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
                                       load_policy policy = load_policy::strict,
                                       name_map const& names = {}) {
  detail::owner<weight_files> files;
  return detail::load_trainer(trainer, path, policy, names, [&]() -> weight_files const& {
    files = detail::owner<weight_files>(new weight_files(path));
    return *files;
  });
}
template <detail::has_named_parameters Trainer>
[[gnu::cold]] load_report load_weights(Trainer& trainer, weight_files const& files,
                                       load_policy policy = load_policy::strict,
                                       name_map const& names = {}) {
  return detail::load_trainer(trainer, files.name(), policy, names,
                              [&]() -> weight_files const& { return files; });
}

}  // namespace pp
