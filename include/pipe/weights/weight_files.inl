// SPDX-License-Identifier: BSL-1.0
//
// Definitions of weights/weight_files.hpp.

#include <utility>

#include <sys/stat.h>

#include <pipe/base/joined_text.hpp>
#include <pipe/io/file_bytes.hpp>
#include <pipe/io/json_reader.hpp>

namespace pp {

PIPE_DEFINED weight_files::weight_files(std::string path) : name_(std::move(path)) {
  std::string at = name_;
  struct stat there{};  // opening the file reports what cannot be read
  if (::stat(at.c_str(), &there) == 0 && S_ISDIR(there.st_mode)) at = file_in(at);
  if (at.ends_with(".json") && !at.ends_with("/.json") && at != ".json")
    open_index(at);
  else
    open({at});
}
PIPE_DEFINED void weight_files::read(detail::placed_tensor const& tensor, std::span<std::byte> to,
                                     std::uint64_t from) const {
  files_[tensor.file]->read(tensor.begin + from, to);
}
PIPE_DEFINED std::string weight_files::in(std::string const& folder, std::string const& file) {
  return folder.empty() || folder.back() == '/' ? folder + file
                                                : detail::joined_text({folder, "/", file});
}
PIPE_DEFINED std::string weight_files::file_in(std::string const& folder) const {
  constexpr char one[] = "model.safetensors", index[] = "model.safetensors.index.json";
  struct stat there{};
  for (char const* const name : {one, index})
    if (std::string path = in(folder, name); ::stat(path.c_str(), &there) == 0) return path;
  detail::throw_error<file_error>({"'", name_, "' has neither ", one, " nor ", index});
}
PIPE_DEFINED void weight_files::open_index(std::string const& index) {
  std::string const about = detail::joined_text({"'", index, "'"});
  std::string const text = detail::file_bytes(index);
  detail::row_list<detail::text_map::entry> entries;
  detail::json_reader r(text, about);
  r.object("an object", [&](std::string const& part) {
    if (part != "weight_map") return r.skip();
    r.object("an object of tensors and files", [&](std::string const& tensor) {
      std::string const file = r.string("the name of a file");
      if (file.find('/') != file.npos)
        detail::throw_error<data_error>(
            {about, ": ", detail::quotation(file), " is not a file beside it"});
      entries.push_back({tensor, file});
    });
  });
  r.end();
  if (entries.empty()) detail::throw_error<data_error>({about, " names no file"});
  std::string const folder = index.substr(0, index.rfind('/') + 1);
  for (auto& [tensor, file] : entries) file = in(folder, file);
  // Of a tensor that is named twice, the last file counts, as where others read JSON.
  for (std::size_t i = 0, k = entries.size(); i < k / 2; ++i)
    std::swap(entries[i], entries[k - 1 - i]);
  detail::text_map files;  // by tensor
  files.take(entries);
  detail::name_index paths;
  for (auto const& [tensor, file] : files) paths.add(file);
  paths.sort();
  detail::row_list<detail::kept_text> once;
  for (std::size_t const i : paths.order())
    if (!paths.repeats(i)) once.push_back(paths[i]);
  open(once, files);
  for (auto const& [tensor, file] : files)
    if (!has(tensor))
      detail::throw_error<data_error>(
          {about, ": tensor ", detail::quotation(tensor), " is not in '", file, "'"});
}
PIPE_DEFINED void weight_files::open(detail::row_list<detail::kept_text> const& paths,
                                     detail::text_map const& index) {
  for (std::string const path : paths) {
    files_.push_back(detail::owner<safetensors_reader>(new safetensors_reader(path)));
    for (detail::safetensors_place const& place : files_.back()->tensors()) {
      auto const named = index.find(place.name);
      if (named != index.end() && !(named->second == path)) continue;
      tensors_.push_back({place, files_.size() - 1});
    }
  }
  for (detail::placed_tensor const& t : tensors_) names_.add(t.name);
  names_.sort();
  for (std::size_t i = 0; i < tensors_.size(); ++i)
    if (names_.repeats(i)) {
      auto const file_of = [&](std::size_t tensor) -> std::string const& {
        return files_[tensors_[tensor].file]->name();
      };
      detail::throw_error<data_error>({"tensor ", detail::quotation(names_[i]), " is in '",
                                       file_of(std::size_t(names_.find(names_[i]))), "' and in '",
                                       file_of(i), "'"});
    }
}

}  // namespace pp
