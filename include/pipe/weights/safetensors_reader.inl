// SPDX-License-Identifier: BSL-1.0
//
// Definitions of weights/safetensors_reader.hpp.

namespace pp::detail {

PIPE_DEFINED owner<std::byte, delete_memory> memory_for(std::uint64_t count, char const* of,
                                                        std::string const& file) {
  bool const possible = count <= std::uint64_t(PTRDIFF_MAX);
  if (void* const at = possible ? ::operator new(std::size_t(count), std::nothrow) : nullptr)
    return owner<std::byte, delete_memory>(static_cast<std::byte*>(at));
  throw_error<no_memory_for_file>(
      {"cannot read '", file, "': no memory for the ", count, " bytes of ", of});
}
}  // namespace pp::detail
namespace pp {

PIPE_DEFINED safetensors_reader::safetensors_reader(std::string path)
    : name_(std::move(path)), file_(name_, O_RDONLY | O_NONBLOCK) {
  struct stat about{};
  if (!file_.is_open() || ::fstat(file_.number(), &about) != 0)
    detail::throw_file_error("read", name_);
  if (!S_ISREG(about.st_mode))
    detail::throw_error<file_error>({"cannot read '", name_, "': it is not a file"});
  read_header(std::uint64_t(about.st_size));
}
PIPE_DEFINED safetensors_reader::safetensors_reader(std::span<std::byte const> bytes,
                                                    std::string name)
    : name_(std::move(name)), bytes_(bytes) {
  read_header(bytes.size());
}
PIPE_DEFINED detail::row_list<std::byte> safetensors_reader::preamble() const {
  detail::row_list<std::byte> bytes(static_cast<std::size_t>(data_begin_));
  read_at(0, {bytes.data(), bytes.size()});
  return bytes;
}
PIPE_DEFINED void safetensors_reader::read(std::uint64_t begin, std::span<std::byte> to) const {
  read_at(data_begin_ + begin, to);
}
PIPE_DEFINED void safetensors_reader::read(detail::safetensors_place const& tensor,
                                           std::span<std::byte> to, std::uint64_t from) const {
  read(tensor.begin + from, to);
}
PIPE_DEFINED void safetensors_reader::refuse(detail::text_parts what) const {
  detail::throw_joined<data_error>({"'", name_, "': "}, what);
}
PIPE_DEFINED void safetensors_reader::read_at(std::uint64_t at, std::span<std::byte> to) const {
  if (!file_.is_open()) {
    std::memcpy(to.data(), bytes_.data() + at, to.size());
    return;
  }
  std::int64_t const count = file_.read(at, to);
  if (count < 0) detail::throw_file_error("read", name_);
  if (std::size_t(count) < to.size())
    refuse({"byte ", at, ": expected ", to.size(), " bytes, got ", count,
            ": the file was shortened while it was read"});
}
PIPE_DEFINED void safetensors_reader::read_header(std::uint64_t file_bytes) {
  std::byte length[8];
  if (file_bytes < sizeof length)
    refuse({"a safetensors file has at least 8 bytes, found ", file_bytes});
  read_at(0, length);
  std::uint64_t const header_bytes = detail::little_endian<std::uint64_t>(length),
                      rest = file_bytes - sizeof length;
  if (header_bytes > detail::safetensors_header::most_bytes)
    refuse({"a header has at most ", detail::safetensors_header::most_bytes,
            " bytes, this one claims ", header_bytes});
  if (header_bytes > rest)
    refuse(
        {"the header claims ", header_bytes, " bytes, but only ", rest, " are left in the file"});
  auto const text = detail::memory_for(header_bytes, "its header", name_);
  read_at(sizeof length, {text.get(), std::size_t(header_bytes)});
  data_begin_ = sizeof length + header_bytes;
  data_bytes_ = rest - header_bytes;
  try {
    header_ = detail::parse_safetensors_header(
        {reinterpret_cast<char const*>(text.get()), std::size_t(header_bytes)}, data_bytes_, name_);
  } catch (std::bad_alloc const&) {
    detail::throw_error<detail::no_memory_for_file>({"cannot read '", name_,
                                                     "': no memory for what its header of ",
                                                     header_bytes, " bytes lists"});
  }
}

}  // namespace pp
