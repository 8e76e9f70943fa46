// SPDX-License-Identifier: BSL-1.0
//
// A load of parameters in two steps: a check that finds every mismatch and writes nothing, and the
// writing, which only a failure of the disk can end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include <pipe/base/config.hpp>
#include <pipe/base/error.hpp>
#include <pipe/base/function_ref.hpp>
#include <pipe/base/joined_text.hpp>
#include <pipe/base/owner.hpp>
#include <pipe/io/kept_text.hpp>
#include <pipe/io/row_list.hpp>
#include <pipe/weights/file_blocks.hpp>
#include <pipe/weights/name_map.hpp>
#include <pipe/weights/named_parameter.hpp>
#include <pipe/weights/safetensors.hpp>
#include <pipe/weights/weight_pairs.hpp>

namespace pp::detail {

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
                               load_policy policy, source_names const& map, Fetch fetch,
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
                             row_list<named_parameter<T>> const& to);
  void operator()(std::size_t i, weight_sources const& pair, use_of_bytes use) const;

 private:
  /// The bytes of a pair, or of a block.
  struct room {
    std::uint64_t begin, size;
  };
  std::span<std::byte> room_of(std::size_t i) const {
    return {data_.get() + rooms_[i].begin, std::size_t(rooms_[i].size)};
  }
  [[gnu::cold]] void read(std::size_t i, weight_sources const& pair, use_of_bytes use) const;

  Tensors const* tensors_ = nullptr;
  File const* file_ = nullptr;
  reading when_ = reading::before;
  row_list<room> rooms_;  // by pair
  owner<std::byte, delete_memory> data_;
};

// Not inline, so that programs with pipe::compiled do not instantiate what these functions call.
template <class Tensors, class File>
template <class T>
file_reading<Tensors, File>::file_reading(Tensors const& tensors, File const& file, reading when,
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
template <class Tensors, class File>
void file_reading<Tensors, File>::operator()(std::size_t i, weight_sources const& pair,
                                             use_of_bytes use) const {
  if (when_ != reading::before) return read(i, pair, use);
  use(room_of(i));
}
template <class Tensors, class File>
void file_reading<Tensors, File>::read(std::size_t i, weight_sources const& pair,
                                       use_of_bytes use) const {
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

/// Checks a load of parameters from some tensors of an open file, or of several, which outlive the
/// result.
template <class T, class Tensors, class File>
[[gnu::cold]] checked_load<T, file_reading<Tensors, File>> check_tensors(
    std::span<named_parameter<T> const> parameters, Tensors const& tensors, File const& file,
    weights_source const& from, load_policy policy, source_names const& map,
    reading when = reading::before) {
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
  [[gnu::cold]] joined_bytes(safetensors_file const& of, row_list<weight_sources> const& pairs);
  void operator()(std::size_t i, weight_sources const& pair, use_of_bytes use) const {
    use(joined[i].empty() ? file->tensors()[pair.tensors[0]].bytes
                          : std::span<std::byte const>(joined[i].data(), joined[i].size()));
  }
};
/// A file, for messages.
[[gnu::cold]] weights_source source_of(std::string const& file);

}  // namespace pp::detail
#ifdef PIPE_DEFINED
#include <pipe/weights/checked_load.inl>
#endif
