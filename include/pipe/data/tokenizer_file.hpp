// SPDX-License-Identifier: BSL-1.0
//
// Files of byte-level tokenizers, as hubs have them: tokenizer.json, or vocab.json and merges.txt.
// Unknown settings that change ids are refused, not passed over.
#pragma once
#ifndef PIPE_SHOWS_WARNINGS
#pragma GCC system_header
#endif

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include <pipe/base/config.hpp>
#include <pipe/base/error.hpp>
#include <pipe/base/utf8.hpp>
#include <pipe/data/byte_alphabet.hpp>
#include <pipe/data/byte_pairs.hpp>
#include <pipe/io/atomic_file.hpp>
#include <pipe/io/file_bytes.hpp>
#include <pipe/io/json_reader.hpp>
#include <pipe/io/json_string.hpp>

namespace pp {

namespace detail {

/// The contents of tokenizer files, put together part by part.
class tokenizer_parts {
 public:
  /// path: of the vocabulary's file; merges_path: of the merges' file
  tokenizer_parts(std::string const& path, std::string const& merges_path)
      : path_(path), merges_path_(merges_path) {}

  /// A tokenizer.json.
  void read_json(std::string_view text) {
    json_reader r = reader(text);
    bool has_model = false;
    r.object("an object", [&](std::string const& name) {
      if (name == "model")
        has_model = true, read_model(r);
      else if (name == "added_tokens")
        r.array("a list", [&] { read_added(r); });
      else if (name == "normalizer")
        must_be_null(r, "a normalizer");
      else if (name == "pre_tokenizer")
        read_splitter(r);
      else
        r.skip();  // limits, the tokens around a text, and the decoder, always that of bytes
    });
    r.end();
    if (!has_model) refuse("there is no model");
    if (!splits_)
      refuse("expected a pre_tokenizer of type 'ByteLevel', or that of SmolLM or LLaMA-3");
  }
  /// A vocab.json.
  void read_vocabulary(std::string_view text) {
    json_reader r = reader(text);
    read_vocabulary(r);
    r.end();
  }
  /// A merges.txt: a pair in each line, after a line with a version.
  void read_merges(std::string_view text) {
    if (text.starts_with(byte_order_mark)) text.remove_prefix(byte_order_mark.size());
    for (long line = 1; !text.empty(); ++line) {
      std::string_view pair = text.substr(0, text.find('\n'));
      text.remove_prefix(pair.size() + (pair.size() < text.size() ? 1 : 0));
      if (pair.ends_with('\r')) pair.remove_suffix(1);
      if ((line == 1 && pair.starts_with("#version")) || pair.empty()) continue;
      add_merge(pair);
    }
  }

  /// The tokenizer of all parts that were read.
  ///
  /// throws: data_error if ids, merges or special tokens do not fit each other
  byte_pair_tokenizer tokenizer() const {
    auto all = tokens_;
    for (auto const& [token, id] : added_) {
      // A vocabulary has added tokens in plain, not as characters that stand for bytes.
      all.erase(detail::bytes_of_characters(token));
      add(all, token, id);
    }
    byte_pair_vocabulary v = vocabulary_;
    v.tokens.resize(all.size());
    std::vector<bool> has(all.size());
    for (auto const& [token, id] : all) {
      // As many tokens as ids, and no id twice: so every id has a token.
      if (id >= all.size() || has[id])
        refuse("expected " + std::to_string(all.size()) + " tokens with an id each, from 0 on, " +
               "but " + in_quotes(token) + " has " + std::to_string(id));
      has[id] = true;
      v.tokens[id] = token;
    }
    for (auto const& [a, b] : merges_) {
      auto const first = all.find(a), second = all.find(b);
      if (first == all.end() || second == all.end())
        refuse_merge("the merge of " + in_quotes(a) + " and " + in_quotes(b) +
                     " is not of two tokens of the vocabulary");
      if (!all.contains(a + b))
        refuse_merge("the merge of " + in_quotes(a) + " and " + in_quotes(b) +
                     " makes no token of the vocabulary");
      v.merges.emplace_back(int(first->second), int(second->second));
    }
    for (auto const& [token, id] : added_) v.special.push_back(int(id));
    try {
      return byte_pair_tokenizer(std::move(v));
    } catch (data_error const& e) {
      refuse(e.what());
    }
  }

 private:
  [[noreturn]] void refuse(std::string const& why) const {
    throw data_error("'" + path_ + "': " + why);
  }
  [[noreturn]] void refuse_merge(std::string const& why) const {
    throw data_error("'" + merges_path_ + "': " + why);
  }
  json_reader reader(std::string_view text) const { return json_reader(text, "'" + path_ + "'"); }

  void must_be_null(json_reader& r, char const* what) const {
    if (!r.word("null")) refuse(what + std::string(" is not known here, expected null"));
  }
  void must_be_false(json_reader& r, std::string const& name) const {
    if (!r.word("false") && !r.word("null")) refuse("expected " + name + " to be false");
  }

  /// A step of a pre_tokenizer.
  struct splitter {
    std::string type, pattern, behavior;
    bool has_pattern = true, takes_digits_apart = false;  // use_regex, individual_digits
  };
  /// Reads the pre_tokenizer. Those of GPT-2, SmolLM and LLaMA-3 are known.
  void read_splitter(json_reader& r) {
    splits_ = false;
    if (r.next() != '{') return r.skip();
    std::vector<splitter> splitters;
    read_splitters(r, splitters);
    auto const is = [&](std::size_t i, char const* type) {
      return i < splitters.size() && splitters[i].type == type;
    };
    bool const first_is_last = splitters.size() == 1, ends = first_is_last || is(1, "ByteLevel");
    if (!ends || splitters.size() > 2) return;
    splitter const &first = splitters.front(), &last = splitters.back();
    if (first_is_last && is(0, "ByteLevel") && first.has_pattern) {
      vocabulary_.split = text_split::gpt2;
      splits_ = true;
    } else if (is(0, "Digits") && first.takes_digits_apart && !first_is_last && last.has_pattern) {
      vocabulary_.split = text_split::digits;
      splits_ = true;
    } else if (is(0, "Split") && first.pattern == llama3_pattern && first.behavior == "Isolated" &&
               !first_is_last && !last.has_pattern) {
      vocabulary_.split = text_split::llama3;
      splits_ = true;
    }
  }
  /// Appends a splitter, or those of a Sequence.
  void read_splitters(json_reader& r, std::vector<splitter>& splitters,
                      bool is_inner = false) const {
    splitter one;
    auto const is_true = [&] { return r.word("true") || (r.skip(), false); };
    r.object("an object", [&](std::string const& name) {
      if (name == "type")
        one.type = r.string("a type");
      else if (name == "pretokenizers" && !is_inner)
        r.array("a list", [&] { read_splitters(r, splitters, true); });
      else if (name == "add_prefix_space" || name == "invert")
        must_be_false(r, name);
      else if (name == "use_regex")
        one.has_pattern = is_true();
      else if (name == "individual_digits")
        one.takes_digits_apart = is_true();
      else if (name == "behavior")
        one.behavior = r.string("a behavior");
      else if (name == "pattern")
        r.object("an object", [&](std::string const& kind) {
          kind == "Regex" ? void(one.pattern = r.string("a pattern")) : r.skip();
        });
      else
        r.skip();
    });
    if (is_inner || one.type != "Sequence") splitters.push_back(std::move(one));
  }

  /// Reads the model. Merges are pairs of texts, or, in older files, texts with a space between.
  void read_model(json_reader& r) {
    r.object("an object", [&](std::string const& name) {
      if (name == "type") {
        if (std::string const type = r.string("a type"); type != "BPE")
          refuse("expected a model of type 'BPE', found " + in_quotes(type));
      } else if (name == "vocab") {
        read_vocabulary(r);
      } else if (name == "merges") {
        r.array("a list", [&] {
          if (r.next() == '"') return add_merge(r.string("a merge"));
          std::vector<std::string> pair;
          r.array("a merge", [&] { pair.push_back(bytes_of_characters(r.string("a token"))); });
          if (pair.size() != 2) refuse("a merge is not of two tokens");
          merges_.emplace_back(pair[0], pair[1]);
        });
      } else if (name == "byte_fallback") {
        must_be_false(r, name);
      } else if (name == "ignore_merges") {
        vocabulary_.whole_pieces = r.word("true");
        if (!vocabulary_.whole_pieces) must_be_false(r, name);
      } else if (name == "continuing_subword_prefix" || name == "end_of_word_suffix") {
        if (r.next() == '"' ? !r.string("a text").empty() : !r.word("null"))
          refuse("expected " + name + " to be empty");
      } else if (name == "dropout") {
        must_be_null(r, "dropout");
      } else {
        r.skip();  // the token for unknown text is not used, since every byte is known
      }
    });
  }
  void read_vocabulary(json_reader& r) {
    r.object("an object of tokens and ids", [&](std::string const& name) {
      add(tokens_, bytes_of_characters(name), r.whole_number());
    });
  }
  /// Reads a token that stands for itself in texts. A token that would take the spaces around it is
  /// refused.
  void read_added(json_reader& r) {
    std::string content;
    std::uint64_t id = 0;
    bool has_id = false;
    r.object("an added token", [&](std::string const& name) {
      if (name == "id")
        id = r.whole_number(), has_id = true;
      else if (name == "content")
        content = r.string("a text");
      else if (name == "single_word" || name == "lstrip" || name == "rstrip")
        must_be_false(r, name);
      else
        r.skip();
    });
    if (content.empty() || !has_id) refuse("an added token is without a text or an id");
    added_.emplace_back(content, id);
  }
  void add(std::unordered_map<std::string, std::uint64_t>& all, std::string const& token,
           std::uint64_t id) const {
    if (auto const [at, is_new] = all.emplace(token, id); !is_new && at->second != id)
      refuse("the token " + in_quotes(token) + " has two ids, " + std::to_string(at->second) +
             " and " + std::to_string(id));
  }
  void add_merge(std::string_view pair) {
    std::size_t const space = pair.find(' ');
    if (space == pair.npos || pair.find(' ', space + 1) != pair.npos)
      refuse_merge("the merge " + in_quotes(pair) + " is not of two tokens with a space between");
    merges_.emplace_back(bytes_of_characters(pair.substr(0, space)),
                         bytes_of_characters(pair.substr(space + 1)));
  }

  std::string path_, merges_path_;
  // The vocabulary as bytes; merges as bytes, the best first; added tokens as in texts.
  std::unordered_map<std::string, std::uint64_t> tokens_;
  std::vector<std::pair<std::string, std::string>> merges_;
  std::vector<std::pair<std::string, std::uint64_t>> added_;
  bool splits_ = false;
  byte_pair_vocabulary vocabulary_;  // only its rules
};

}  // namespace detail

/// The tokenizer of a tokenizer.json: a model of type BPE on bytes that splits texts as GPT-2,
/// SmolLM or LLaMA-3 does.
/// Tokens that its post_processor would put around a text are the caller's to add.
///
/// throws: file_error if the file cannot be read; data_error if it is no such file, or asks for
///         something else
inline byte_pair_tokenizer read_tokenizer(std::string const& path) {
  detail::tokenizer_parts parts(path, path);
  parts.read_json(detail::file_bytes(path));
  return parts.tokenizer();
}

/// The tokenizer of a vocab.json and a merges.txt, as GPT-2 has them. It has no special tokens:
/// id_of() gives the ids of texts such as "<|endoftext|>".
///
/// throws: as read_tokenizer of a tokenizer.json
inline byte_pair_tokenizer read_tokenizer(std::string const& vocabulary_path,
                                          std::string const& merges_path) {
  detail::tokenizer_parts parts(vocabulary_path, merges_path);
  parts.read_vocabulary(detail::file_bytes(vocabulary_path));
  parts.read_merges(detail::file_bytes(merges_path));
  return parts.tokenizer();
}

/// Writes a tokenizer.json that read_tokenizer and the package `tokenizers` read, atomically.
///
/// throws: file_error as atomic_file does; data_error for a special token that is not UTF-8, or
///         that would be written as other bytes are
inline void write_tokenizer(byte_pair_tokenizer const& t, std::string const& path) {
  byte_pair_vocabulary const& v = t.of();
  std::vector<bool> is_special(v.tokens.size());
  std::string added, vocabulary, merges;
  for (int const id : v.special) {
    std::string const& token = v.tokens[std::size_t(id)];
    if (detail::valid_utf8_bytes(token) != token.size())
      throw data_error("write_tokenizer: the special token " + detail::in_quotes(token) +
                       " is not UTF-8");
    is_special[std::size_t(id)] = true;
    added += (added.empty() ? "" : ",") + std::string("\n{\"id\":") + std::to_string(id) +
             ",\"content\":" + detail::json_string(token) +
             ",\"single_word\":false,\"lstrip\":false,\"rstrip\":false,\"normalized\":false,"
             "\"special\":true}";
  }
  auto const name = [&](int id) {
    std::string const& token = v.tokens[std::size_t(id)];
    return detail::json_string(is_special[std::size_t(id)] ? token
                                                           : detail::characters_of_bytes(token));
  };
  // A special token may be written as some bytes are, such as "é".
  std::unordered_set<std::string> as_read;
  for (int id = 0; id < t.vocabulary(); ++id) {
    std::string const& token = v.tokens[std::size_t(id)];
    if (!as_read.insert(is_special[std::size_t(id)] ? detail::bytes_of_characters(token) : token)
             .second)
      throw data_error("write_tokenizer: two tokens are written as " + name(id) +
                       ", so a reader would take one for the other");
  }
  for (int id = 0; id < t.vocabulary(); ++id)
    vocabulary += (id > 0 ? "," : "") + std::string(id % 8 == 0 ? "\n" : "") + name(id) + ":" +
                  std::to_string(id);
  for (std::size_t i = 0; i < v.merges.size(); ++i)
    merges += (i > 0 ? "," : "") + std::string(i % 8 == 0 ? "\n" : "") + "[" +
              name(v.merges[i].first) + "," + name(v.merges[i].second) + "]";
  auto const bytes = [](bool has_pattern) {
    return std::string(
               "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"trim_offsets\":true,"
               "\"use_regex\":") +
           (has_pattern ? "true}" : "false}");
  };
  auto const after = [&](std::string const& first, bool has_pattern) {
    return "{\"type\":\"Sequence\",\"pretokenizers\":[" + first + "," + bytes(has_pattern) + "]}";
  };
  std::string const splitter = v.split == text_split::gpt2 ? bytes(true)
                               : v.split == text_split::digits
                                   ? after("{\"type\":\"Digits\",\"individual_digits\":true}", true)
                                   : after("{\"type\":\"Split\",\"pattern\":{\"Regex\":" +
                                               detail::json_string(detail::llama3_pattern) +
                                               "},\"behavior\":\"Isolated\",\"invert\":false}",
                                           false);
  std::string const decoder = bytes(true);
  files::atomic_file file(path);
  for (std::string_view const part :
       {std::string_view("{\"version\":\"1.0\",\"truncation\":null,\"padding\":null,"
                         "\"added_tokens\":["),
        std::string_view(added), std::string_view("],\n\"normalizer\":null,\"pre_tokenizer\":"),
        std::string_view(splitter), std::string_view(",\n\"post_processor\":null,\"decoder\":"),
        std::string_view(decoder),
        std::string_view(",\n\"model\":{\"type\":\"BPE\",\"dropout\":null,\"unk_token\":null,"
                         "\"continuing_subword_prefix\":null,\"end_of_word_suffix\":null,"
                         "\"fuse_unk\":false,\"byte_fallback\":false,\"ignore_merges\":"),
        std::string_view(v.whole_pieces ? "true" : "false"), std::string_view(",\"vocab\":{"),
        std::string_view(vocabulary), std::string_view("},\n\"merges\":["),
        std::string_view(merges), std::string_view("]}}")})
    file.write(part);
  file.commit();
}

}  // namespace pp
