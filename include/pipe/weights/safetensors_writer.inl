// SPDX-License-Identifier: BSL-1.0
//
// Definitions of weights/safetensors_writer.hpp.

#include <cstdint>
#include <utility>

namespace pp::detail {

PIPE_DEFINED std::string json_quoted(std::string_view text) {
  constexpr char digits[] = "0123456789abcdef";
  std::string json;
  json += '"';
  for (char const c : text) {
    if (c == '"' || c == '\\')
      (json += '\\') += c;
    else if (static_cast<unsigned char>(c) < 0x20)
      ((json += "\\u00") += digits[c >> 4]) += digits[c & 15];
    else
      json += c;
  }
  json += '"';
  return json;
}
PIPE_DEFINED void place_tensors(row_list<safetensors_place>& tensors) {
  row_list<safetensors_place> ordered;
  for (int const size : {8, 4, 2, 1})
    for (safetensors_place& p : tensors)
      if (size_of(p.type) == size) ordered.push_back(std::move(p));
  tensors = std::move(ordered);
  name_index names;
  names.add("__metadata__");
  for (safetensors_place const& p : tensors) names.add(p.name);
  names.sort();
  std::uint64_t end = 0;
  std::size_t number = 0;
  for (safetensors_place& p : tensors) {
    auto const refuse = [&](text_parts why) {
      throw_joined<data_error>({"tensor ", quotation(p.name), ": "}, why);
    };
    if (valid_utf8_bytes(p.name) != p.name.size()) refuse({"the name is not UTF-8"});
    if (names.repeats(++number))
      refuse({p.name == "__metadata__" ? "the format reserves this name"
                                       : "two tensors have this name"});
    if (p.type == stored_type::other) refuse({"expected a type of stored_type, got `other`"});
    if (p.shape.size() > safetensors_header::most_extents)
      refuse({"expected a shape of at most ", safetensors_header::most_extents, " extents, got ",
              p.shape.size()});
    for (long const extent : p.shape)
      if (extent < 0) refuse({"shape ", text_of_shape(p.shape), ": expected extents of 0 or more"});
    std::uint64_t bytes = 0;
    if (!count_bytes(p.type, p.shape, bytes) || bytes > std::uint64_t(INT64_MAX) - end)
      refuse({"shape ", text_of_shape(p.shape), " of ", name_of(p.type),
              ": more bytes in all than 63 bits can count"});
    p.begin = end;
    p.end = end += bytes;
  }
}
PIPE_DEFINED std::string safetensors_preamble(row_list<safetensors_place> const& tensors,
                                              safetensors_metadata const& metadata) {
  std::string json;
  append_text(json, {"        {"});  // the length comes first
  auto const member = [&](std::string_view name) {
    if (json.back() != '{') json += ',';
    append_text(json, {json_quoted(name), ":"});
  };
  if (!metadata.empty()) {
    append_text(json, {"\"__metadata__\":{"});
    for (auto const& [name, text] : metadata) {
      if (valid_utf8_bytes(name) != name.size() || valid_utf8_bytes(text) != text.size())
        throw_error<data_error>(
            {"metadata ", quotation(name), ": expected UTF-8, got ", quotation(text)});
      member(name);
      append_text(json, {json_quoted(text)});
    }
    json += '}';
  }
  for (safetensors_place const& p : tensors) {
    member(p.name);
    append_text(json, {"{\"dtype\":\"", name_of(p.type), "\",\"shape\":["});
    for (std::size_t i = 0; i < p.shape.size(); ++i) {
      append_text(json, {i > 0 ? "," : "", p.shape[i]});
    }
    append_text(json, {"],\"data_offsets\":[", p.begin, ",", p.end, "]}"});
  }
  json += '}';
  while (json.size() % 8 != 0) json += ' ';
  std::uint64_t const size = json.size() - 8;
  if (size > safetensors_header::most_bytes)
    throw_error<data_error>(
        {"the header: expected at most ", safetensors_header::most_bytes, " bytes, got ", size});
  put_little_endian(size, reinterpret_cast<std::byte*>(json.data()));
  return json;
}
}  // namespace pp::detail
namespace pp {

PIPE_DEFINED void write_safetensors(std::string const& path,
                                    std::vector<safetensors_entry> const& tensors,
                                    detail::safetensors_metadata const& metadata) {
  detail::row_list<detail::safetensors_place> places;
  detail::name_index names;  // since place_tensors changes the order, and refuses equal names
  for (safetensors_entry const& t : tensors) {
    places.push_back({t.name, t.type, t.shape});
    names.add(t.name);
  }
  names.sort();
  detail::place_tensors(places);
  auto const bytes_of = [&](detail::safetensors_place const& p) {
    return tensors[std::size_t(names.find(p.name))].bytes;
  };
  for (detail::safetensors_place const& p : places)
    if (bytes_of(p).size() != p.end - p.begin)
      detail::throw_error<data_error>(
          {"tensor ", detail::quotation(p.name), ": shape ", detail::text_of_shape(p.shape), " of ",
           name_of(p.type), " needs ", p.end - p.begin, " bytes, got ", bytes_of(p).size()});
  files::atomic_file file(path);
  file.write(detail::safetensors_preamble(places, metadata));
  for (detail::safetensors_place const& p : places) file.write(bytes_of(p));
  file.commit();
}

}  // namespace pp
