// SPDX-License-Identifier: BSL-1.0
//
// Definitions of weights/safetensors_header.hpp.

#include <utility>

#include <pipe/base/utf8.hpp>

namespace pp::detail {

PIPE_DEFINED std::string text_of_shape(std::span<long const> shape) {
  std::string text;
  for (std::size_t i = 0; i < shape.size(); ++i) append_text(text, {i > 0 ? ", " : "[", shape[i]});
  append_text(text, {shape.empty() ? "[]" : "]"});
  return text;
}
PIPE_DEFINED bool count_bytes(stored_type type, std::span<long const> shape, std::uint64_t& bytes) {
  bytes = std::uint64_t(size_of(type));
  for (long const extent : shape) {
    if (extent != 0 && bytes > std::uint64_t(INT64_MAX) / std::uint64_t(extent)) return false;
    bytes *= std::uint64_t(extent);
  }
  return true;
}
PIPE_DEFINED safetensors_header_reader::safetensors_header_reader(std::string_view text,
                                                                  std::uint64_t data_bytes,
                                                                  std::string_view file)
    : file_(joined_text({"'", file, "'"})), data_bytes_(data_bytes),
      json_(text, file_, " of the header") {
  // White space around the object is accepted and a byte-order mark is not, as in other readers.
  if (text.starts_with(byte_order_mark))
    refuse({"byte 0 of the header: expected '{', found a byte-order mark"});
  json_.object("'{'", [&](std::string const& name) {
    json_.context = name == "__metadata__" ? joined_text({file_, ": ", name})
                                           : joined_text({file_, ": tensor ", quotation(name)});
    name == "__metadata__" ? read_metadata() : read_tensor(name);
    json_.context = file_;
  });
  json_.end();
  check_names();
  sort_by_place();
  check_cover();
}
PIPE_DEFINED void safetensors_header_reader::refuse(std::string_view name, text_parts what) const {
  throw_joined<data_error>({file_, ": tensor ", quotation(name), ": "}, what);
}
PIPE_DEFINED void safetensors_header_reader::read_metadata() {
  if (std::exchange(has_metadata_, true)) refuse({"__metadata__ occurs twice"});
  if (json_.word("null")) return;
  row_list<text_map::entry> texts;
  json_.object("'{' before texts by name", [&](std::string const& name) {
    texts.push_back({name, json_.string("a text in quotes")});
  });
  if (kept_text const* const twice = header.metadata.take(texts))
    refuse({"__metadata__: the name ", quotation(*twice), " occurs twice"});
}
PIPE_DEFINED void safetensors_header_reader::read_tensor(std::string const& name) {
  safetensors_place place;
  place.name = name;
  bool has_type = false, has_shape = false, has_offsets = false;
  auto const once = [&](bool& seen, std::string const& field) {
    if (std::exchange(seen, true)) refuse(name, {field, " occurs twice"});
  };
  json_.object("'{' before dtype, shape and data_offsets", [&](std::string const& field) {
    if (field == "dtype") {
      once(has_type, field);
      std::string const type = json_.string("the name of a type in quotes");
      place.type = stored_type_named(type);
      if (place.type == stored_type::other) place.other_type = type;
    } else if (field == "shape") {
      once(has_shape, field);
      json_.array("'[' before the extents of the shape", [&] {
        place.shape.push_back(long(json_.whole_number()));
        if (place.shape.size() > safetensors_header::most_extents)
          refuse(name, {"the shape has more than ", safetensors_header::most_extents, " extents"});
      });
    } else if (field == "data_offsets") {
      once(has_offsets, field);
      read_offsets(place);
    } else {
      json_.skip();
    }
  });
  if (!has_type || !has_shape || !has_offsets)
    refuse(name, {!has_type ? "dtype" : !has_shape ? "shape" : "data_offsets", " is missing"});
  check_size(place);
  header.tensors.push_back(std::move(place));
}
PIPE_DEFINED void safetensors_header_reader::read_offsets(safetensors_place& place) {
  int count = 0;
  json_.array("'[' before two offsets", [&] {
    if (count == 2) json_.refuse({"']' after two offsets"});
    (count == 0 ? place.begin : place.end) = json_.whole_number();
    ++count;
  });
  if (count < 2) refuse(place.name, {"expected two data_offsets, found ", count});
}
PIPE_DEFINED void safetensors_header_reader::check_size(safetensors_place const& p) const {
  auto const offsets = [&] { return joined_text({"data_offsets [", p.begin, ", ", p.end, "]"}); };
  auto const shape = [&] {
    return joined_text({"shape ", text_of_shape(p.shape), " of ", name_of(p.type)});
  };
  if (p.begin > p.end) refuse(p.name, {offsets(), " end before they begin"});
  if (p.end > data_bytes_)
    refuse(p.name, {offsets(), " reach beyond the data, which has ", data_bytes_, " bytes"});
  if (p.type == stored_type::other) return;  // the size of its elements is unknown
  std::uint64_t needed = 0;
  if (!count_bytes(p.type, p.shape, needed))
    refuse(p.name, {shape(), " has more bytes than 63 bits can count"});
  if (needed != p.end - p.begin)
    refuse(p.name, {shape(), " needs ", needed, " bytes, ", offsets(), " hold ", p.end - p.begin});
}
PIPE_DEFINED void safetensors_header_reader::check_names() const {
  name_index names;
  for (safetensors_place const& p : header.tensors) names.add(p.name);
  names.sort();
  for (std::size_t i = 0; i < names.size(); ++i)
    if (names.repeats(i)) refuse(names[i], {"occurs twice"});
}
PIPE_DEFINED void safetensors_header_reader::sort_by_place() {
  row_list<safetensors_place>& all = header.tensors;
  row_list<safetensors_place> in_order;
  in_order.reserve(all.size());
  for (std::size_t const i : sorted(all.size(), [&](std::size_t a, std::size_t b) {
         return all[a].begin != all[b].begin ? all[a].begin < all[b].begin
                                             : all[a].end < all[b].end;
       }))
    in_order.push_back(std::move(all[i]));
  all = std::move(in_order);
}
PIPE_DEFINED void safetensors_header_reader::check_cover() const {
  std::uint64_t end = 0;
  safetensors_place const* before = nullptr;
  for (safetensors_place const& p : header.tensors) {
    if (p.begin != end)
      refuse(
          p.name,
          {"begins at byte ", p.begin, " and ",
           p.begin < end ? "overlaps with " : "leaves a hole after ",
           before ? joined_text({"tensor ", quotation(before->name), ", which ends at byte ", end})
                  : "the header"});
    end = p.end;
    before = &p;
  }
  if (end != data_bytes_)
    refuse({"the tensors end at byte ", end, " of the data, which has ", data_bytes_, " bytes"});
}
PIPE_DEFINED safetensors_header parse_safetensors_header(std::string_view text,
                                                         std::uint64_t data_bytes,
                                                         std::string_view file) {
  return std::move(safetensors_header_reader(text, data_bytes, file).header);
}

}  // namespace pp::detail
