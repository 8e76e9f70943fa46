// SPDX-License-Identifier: BSL-1.0
//
// Definitions of checkpoint/checkpoint_file.hpp.

#include <pipe/weights/safetensors_writer.hpp>

namespace pp::detail {

PIPE_DEFINED checkpoint_writer::checkpoint_writer(std::string const& path,
                                                  row_list<safetensors_place> places,
                                                  safetensors_metadata metadata,
                                                  std::string const& like)
    : file_(path, like) {
  metadata.set(checkpoint_key, joined_text({checkpoint_format}));
  places.push_back({checksums_name, stored_type::u8, {long(places.size()) + 1, 4}});
  place_tensors(places);
  std::string const preamble = safetensors_preamble(places, metadata);
  write_tensor(std::as_bytes(std::span(preamble)));
}
PIPE_DEFINED void checkpoint_writer::write(std::span<std::byte const> bytes) {
  sum_ = crc32c(bytes, sum_);
  file_.write(bytes);
}
PIPE_DEFINED void checkpoint_writer::end_tensor() {
  sums_.resize(sums_.size() + 4);
  put_little_endian(sum_, sums_.data() + sums_.size() - 4);
  sum_ = 0;
}
PIPE_DEFINED void checkpoint_writer::write_tensor(std::span<std::byte const> bytes) {
  write(bytes);
  end_tensor();
}
PIPE_DEFINED void checkpoint_writer::commit() {
  file_.write({sums_.data(), sums_.size()});
  file_.commit();
}
PIPE_DEFINED checkpoint_reader::checkpoint_reader(std::string const& path) : file_(path) {
  kept_text const* const format = metadata(checkpoint_key);
  if (format == nullptr)
    refuse({"it is no checkpoint, as its metadata has no \"", checkpoint_key, "\""});
  row_list<safetensors_place> const& all = file_.tensors();
  std::string const known = joined_text({checkpoint_format});
  if (format->view() != known)
    refuse({"it is a checkpoint of format ", quotation(*format),
            "; this version of the library reads format ", known});
  extents const shape{long(all.size()), 4};
  if (all.empty() || !(all.back().name == checksums_name) || all.back().type != stored_type::u8 ||
      !(all.back().shape == shape))
    refuse({"it is damaged: it does not end with its checksums"});
  sums_.resize(4 * all.size());
  file_.read(all.back().begin, {sums_.data(), sums_.size()});
  row_list<std::byte> const preamble = file_.preamble();
  if (crc32c({preamble.data(), preamble.size()}) != checksum(0))
    refuse({"it is damaged: its header is not the one that was written"});
}
PIPE_DEFINED kept_text const* checkpoint_reader::metadata(std::string_view name) const {
  auto const at = file_.metadata().find(name);
  return at == file_.metadata().end() ? nullptr : &at->second;
}
PIPE_DEFINED void checkpoint_reader::read(std::size_t i, std::span<std::byte> to) const {
  file_.read((*this)[i].begin, to);
  require_sum(i, crc32c(to));
}
PIPE_DEFINED void checkpoint_reader::read(
    std::size_t i, std::span<std::byte> room,
    function_ref<void(std::span<std::byte const>)> use) const {
  safetensors_place const& place = (*this)[i];
  std::uint32_t sum = 0;
  for (std::uint64_t at = place.begin, left; (left = place.end - at) > 0;) {
    std::span<std::byte> const block =
        room.first(std::size_t(std::min<std::uint64_t>(left, room.size())));
    file_.read(at, block);
    sum = crc32c(block, sum);
    at += block.size();
    use(block);
  }
  require_sum(i, sum);
}
PIPE_DEFINED void checkpoint_reader::refuse(text_parts why) const {
  throw_joined<data_error>({"cannot load ", quotation(name()), ": "}, why);
}
PIPE_DEFINED void checkpoint_reader::require_sum(std::size_t i, std::uint32_t found) const {
  if (found != checksum(i + 1))
    refuse({"it is damaged: the bytes of tensor ", quotation((*this)[i].name),
            " are not those that were written"});
}

}  // namespace pp::detail
