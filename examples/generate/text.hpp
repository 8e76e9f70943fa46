// SPDX-License-Identifier: BSL-1.0
//
// Texts as the tokens of a model, by the files of its tokenizer.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <pipe/base/error.hpp>
#include <pipe/data/byte_pairs.hpp>
#include <pipe/data/tokenizer_file.hpp>

/// The tokenizer of a folder, of a file in it, or of a tokenizer.json.
///
/// throws: pp::file_error, pp::data_error if there is none, or one that is not known here
inline pp::byte_pair_tokenizer tokenizer_at(std::filesystem::path path) {
  if (path.extension() == ".json" && path.filename() != "model.safetensors.index.json")
    return pp::read_tokenizer(path.string());
  if (!std::filesystem::is_directory(path)) path = path.parent_path();
  if (auto const one = path / "tokenizer.json"; std::filesystem::exists(one))
    return pp::read_tokenizer(one.string());
  auto const vocabulary = path / "vocab.json", merges = path / "merges.txt";
  if (std::filesystem::exists(vocabulary) && std::filesystem::exists(merges))
    return pp::read_tokenizer(vocabulary.string(), merges.string());
  throw pp::file_error("'" + path.string() +
                       "' has neither tokenizer.json nor vocab.json and merges.txt: --tokenizer "
                       "says where they are, --ids gives a prompt without them");
}

/// The first of some texts that is a token; -1 if none is.
inline int token_of(pp::byte_pair_tokenizer const& t, std::vector<std::string> const& texts) {
  for (std::string const& text : texts)
    if (int const id = t.id_of(text); id >= 0) return id;
  return -1;
}
