// SPDX-License-Identifier: BSL-1.0
//
// Definitions of checkpoint/open_checkpoint.hpp.

#include <limits>
#include <utility>

#include <pipe/checkpoint/checkpoint_parts.hpp>
#include <pipe/io/temporary_file.hpp>

namespace pp::detail {

PIPE_DEFINED open_checkpoint::open_checkpoint(std::string const& path) {
  add_file(path);
  checkpoint_reader const& first = *files_[0];
  if (kept_text const* const part = first.metadata(part_key))
    first.refuse({"it is part ", part->view(), " of a checkpoint, whose first file is '",
                  whole_of_part(path), "'"});
  for (std::size_t i = 0; i < first.size(); ++i)
    if (first[i].name == parts_name)
      open_parts(i);
    else
      add(first[i].name, {0, i, 0}, false);
  for (std::size_t f = 1; f < files_.size(); ++f)
    for (std::size_t i = 0; i < files_[f]->size(); ++i) add_of_part(f, i);
  names_.sort();
  for (std::size_t i = 0; i < listed_.size(); ++i) enter(i);
  for (tensor& t : tensors_)
    if (t.is_divided) join(t);
}
PIPE_DEFINED long open_checkpoint::find(std::string_view name) const {
  long const listed = names_.find(name);
  return listed < 0 ? -1 : listed_[std::size_t(listed)].tensor;
}
PIPE_DEFINED open_checkpoint::~open_checkpoint() {}
PIPE_DEFINED owner<std::byte, delete_memory> open_checkpoint::bytes_of(std::size_t i) const {
  tensor const& t = tensors_[i];
  auto bytes = memory_for(t.bytes, "one of its tensors", name());
  std::size_t done = 0;
  for (tensor_piece const& p : t.pieces) {
    std::size_t const count = bytes_in(p);
    files_[p.file]->read(p.tensor, {bytes.get() + done, count});
    done += count;
  }
  return bytes;
}
PIPE_DEFINED void open_checkpoint::read(std::size_t i, std::span<std::byte> room,
                                        function_ref<void(std::span<std::byte const>)> use) const {
  for (tensor_piece const& p : tensors_[i].pieces) files_[p.file]->read(p.tensor, room, use);
}
PIPE_DEFINED void open_checkpoint::add_file(std::string const& path) {
  files_.push_back(owner<checkpoint_reader>(new checkpoint_reader(path)));
}
PIPE_DEFINED std::size_t open_checkpoint::bytes_in(tensor_piece const& p) const {
  safetensors_place const& place = (*files_[p.file])[p.tensor];
  return std::size_t(place.end - place.begin);
}
PIPE_DEFINED void open_checkpoint::open_parts(std::size_t i) {
  checkpoint_reader const& first = *files_[0];
  row_list<std::byte> list(bytes_in({0, i, 0}));
  first.read(i, {list.data(), list.size()});
  std::size_t const count = list.size() / 16;
  for (std::size_t part = 1; part <= count; ++part) {
    std::string const which = joined_text({"its part ", part, " of ", count});
    kept_text const* const file = first.metadata(joined_text({"part-", part}));
    if (file == nullptr) refuse({which, " has no name"});
    try {
      add_file(joined_text({folder_of(name()), name_in_folder(*file)}));
    } catch (no_memory_for_file const&) {
      throw;
    } catch (file_error const& e) {
      throw_error<file_error>({"cannot load ", quotation(name()), ": ", which, ": ", e.what()});
    } catch (data_error const& e) {
      refuse({which, ": ", e.what()});
    }
    auto const number = [&](std::size_t n) {
      return little_endian<std::uint64_t>(list.data() + 16 * (part - 1) + 8 * n);
    };
    if (files_.back()->bytes() != number(0) || files_.back()->checksum() != number(1))
      refuse({which, ", ", quotation(files_.back()->name()),
              ", is not the file that was saved with it"});
  }
}
PIPE_DEFINED void open_checkpoint::add_of_part(std::size_t file, std::size_t i) {
  std::string_view const full = (*files_[file])[i].name;
  std::string_view name = full;
  tensor_piece p{file, i, 0};
  bool const is_piece = name.starts_with(piece_prefix);
  if (is_piece) {
    name.remove_prefix(sizeof piece_prefix - 1);
    constexpr long most = std::numeric_limits<long>::max();
    std::size_t digits = 0;
    bool is_number = false;
    for (; digits < name.size() && name[digits] >= '0' && name[digits] <= '9'; ++digits) {
      long const next = name[digits] - '0';
      is_number = (digits == 0 || is_number) && p.begin <= (most - next) / 10;
      p.begin = is_number ? 10 * p.begin + next : 0;
    }
    if (!is_number || digits >= name.size() || name[digits] != '/')
      files_[file]->refuse({"tensor ", quotation(full), ": no piece has such a name"});
    name.remove_prefix(digits + 1);
  }
  add(name, p, is_piece);
}
PIPE_DEFINED void open_checkpoint::add(std::string_view name, tensor_piece const& p,
                                       bool is_piece) {
  names_.add(name);
  listed_.push_back({p, is_piece, -1});
}
PIPE_DEFINED void open_checkpoint::enter(std::size_t i) {
  auto& [p, is_piece, number] = listed_[i];
  number = listed_[std::size_t(names_.find(names_[i]))].tensor;
  bool const is_new = number < 0;
  if (is_new) {
    number = long(tensors_.size());
    safetensors_place const& place = (*files_[p.file])[p.tensor];
    tensors_.push_back({{names_[i], place.type, place.shape}, {}, is_piece});
  }
  tensor& t = tensors_[std::size_t(number)];
  if (!is_new && !(is_piece && t.is_divided))
    refuse({"tensor ", quotation(names_[i]), " is in two of its files"});
  t.pieces.push_back(p);
  t.bytes += bytes_in(p);
}
PIPE_DEFINED void open_checkpoint::join(tensor& t) const {
  row_list<tensor_piece> in_order;
  for (std::size_t const i : sorted(t.pieces.size(), [&](std::size_t a, std::size_t b) {
         return t.pieces[a].begin < t.pieces[b].begin;
       }))
    in_order.push_back(t.pieces[i]);
  t.pieces = std::move(in_order);
  long end = 0;
  for (tensor_piece const& p : t.pieces) {
    safetensors_place const& place = (*files_[p.file])[p.tensor];
    if (p.begin != end || place.type != t.place.type || place.shape.size() != 1)
      refuse({"the pieces of tensor ", quotation(t.place.name), " do not follow each other"});
    end += place.shape[0];
  }
  t.place.shape = {end};
}

}  // namespace pp::detail
