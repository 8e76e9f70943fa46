// SPDX-License-Identifier: BSL-1.0
//
// Definitions of weights/checked_load.hpp.

namespace pp::detail {

PIPE_DEFINED joined_bytes::joined_bytes(safetensors_file const& of,
                                        row_list<weight_sources> const& pairs)
    : file(&of), joined(pairs.size()) {
  for (std::size_t i = 0; i < pairs.size(); ++i)
    if (pairs[i].tensors.size() > 1)
      for (std::size_t const t : pairs[i].tensors)
        joined[i].append(of.tensors()[t].bytes.data(), of.tensors()[t].bytes.size());
}
PIPE_DEFINED weights_source source_of(std::string const& file) {
  return {joined_text({"in '", file, "'"}), "the file"};
}

}  // namespace pp::detail
