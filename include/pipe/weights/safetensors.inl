// SPDX-License-Identifier: BSL-1.0
//
// Definitions of weights/safetensors.hpp.

#include <utility>

namespace pp {

PIPE_DEFINED safetensors_entry const* safetensors_file::find(std::string_view tensor) const {
  long const at = by_name_.find(tensor);
  return at < 0 ? nullptr : &tensors_[std::size_t(at)];
}
PIPE_DEFINED safetensors_file::safetensors_file(safetensors_reader from)
    : name_(from.name()), data_(detail::memory_for(from.data_bytes(), "its tensors", name_)) {
  from.read(0, {data_.get(), std::size_t(from.data_bytes())});
  detail::safetensors_header header = from.take_header();
  metadata_ = std::move(header.metadata);
  tensors_.reserve(header.tensors.size());
  for (detail::safetensors_place const& p : header.tensors)
    tensors_.push_back({p.name,
                        p.type,
                        {p.shape.begin(), p.shape.end()},
                        {data_.get() + p.begin, std::size_t(p.end - p.begin)},
                        p.other_type});
  for (safetensors_entry const& t : tensors_) by_name_.add(t.name);
  by_name_.sort();
}

}  // namespace pp
