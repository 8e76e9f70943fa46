// SPDX-License-Identifier: BSL-1.0
//
// Files of token ids as training data, of any size: a mini-batch is read from the files when the
// program asks for it. Two forms are known, both little-endian:
//
//     ids of 16 or 32 bits, and nothing else                   as nanoGPT writes them
//     256 words of 32 bits, then the ids                       as llm.c does. The first words:
//                                                              20240520, 1, ids of 16 bits
//                                                              20240801, 7, ids of 32 bits
//
//     token_shards const data(files::files_like("train_*.bin"),
//                             {.context = 1024, .vocabulary = 50257});
//     data.read(position, tokens, labels);
#pragma once
#ifndef PIPE_SHOWS_WARNINGS
#pragma GCC system_header
#endif

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>

#include <pipe/base/error.hpp>
#include <pipe/base/philox.hpp>
#include <pipe/io/file_descriptor.hpp>
#include <pipe/weights/stored_type.hpp>

namespace pp {

namespace detail {

/// The data of token_shards.
struct token_shards_settings {
  int context = 0;         ///< tokens of a window, at least 1
  int vocabulary = 0;      ///< ids are below it
  int id_bytes = 2;        ///< of an id in files without a header: 2 or 4
  bool shuffle = false;    ///< windows in a random order, different in each epoch
  std::uint64_t seed = 0;  ///< of the random orders
};

/// Element i of a random order of 0 ... n - 1, computed without memory: a Feistel network on the
/// next power of 4, applied until the number is in the range again.
///
/// needs: i < n <= 2^62
/// law:   for each (n, seed, epoch) every number occurs once
/// source: Black and Rogaway, "Ciphers with arbitrary finite domains", CT-RSA 2002
constexpr std::uint64_t element_of_order(std::uint64_t i, std::uint64_t n, std::uint64_t seed,
                                         std::uint64_t epoch) {
  constexpr std::uint64_t stream = std::uint64_t(3) << 61, one = 1;  // stream: of nothing else
  int half = 0;
  while (one << 2 * half < n) ++half;
  std::uint64_t const mask = (one << half) - 1;
  do
    for (std::uint64_t round = 0; round < 6; ++round) {
      std::uint64_t const right = i & mask,
                          bits =
                              math::random_block(seed, stream | epoch, round << 32 | right).word[0];
      i = right << half | ((i >> half ^ bits) & mask);
    }
  while (i >= n);
  return i;
}

}  // namespace detail

/// A stream of tokens in files, one after another, cut into windows of `context` tokens. The label
/// of a token is the token after it, which may be in the next window or file. Tokens behind the
/// last whole window are not read.
///
/// law: every window is read once in an epoch, in a given order or a random one
class token_shards {
 public:
  using settings = detail::token_shards_settings;

  /// Opens the files, in the order given, and keeps them open. Reads no tokens.
  ///
  /// throws: file_error if a file cannot be opened; data_error for a setting out of range, a file
  ///         in neither form, or fewer tokens than a window and its last label take
  token_shards(std::vector<std::string> const& paths, settings const& s) : settings_(s) {
    constexpr char expected[] = ": expected 1 or more, got ";
    if (s.context < 1)
      throw data_error("token_shards: context" + (expected + std::to_string(s.context)));
    if (s.vocabulary < 1)
      throw data_error("token_shards: vocabulary" + (expected + std::to_string(s.vocabulary)));
    if (s.id_bytes != 2 && s.id_bytes != 4)
      throw data_error("token_shards: id_bytes: expected 2 or 4, got " +
                       std::to_string(s.id_bytes));
    for (std::string const& path : paths) add(path);
    if (tokens_ <= s.context)
      throw data_error("token_shards: windows of " + std::to_string(s.context) +
                       " tokens need at least " + std::to_string(long(s.context) + 1) +
                       ", the files have " + std::to_string(tokens_));
  }

  /// Number of tokens in all files.
  long tokens() const { return tokens_; }
  /// Number of windows in an epoch.
  long windows() const { return (tokens_ - 1) / settings_.context; }

  /// Fills a mini-batch with windows position, position + 1, ... of all epochs: `position` is the
  /// number of samples before the mini-batch, whatever the sizes of mini-batches. Allocates
  /// nothing; several threads may call this function.
  ///
  /// shape:  tokens[samples * context], labels[samples * context]
  /// law:    window i is a function of the settings and position + i only
  /// throws: data_error for an id outside of the vocabulary, with its file and place, for lists of
  ///         other sizes and for a position below 0; file_error if a file cannot be read
  void read(long position, std::span<int> tokens, std::span<int> labels) const {
    long const context = settings_.context, count = long(tokens.size()) / context;
    if (tokens.size() != labels.size() || long(tokens.size()) % context != 0)
      throw data_error("token_shards: expected as many labels as tokens, in whole windows of " +
                       std::to_string(context) + ", got " + std::to_string(tokens.size()) +
                       " tokens and " + std::to_string(labels.size()) + " labels");
    if (position < 0 || position > std::numeric_limits<long>::max() - count)
      throw data_error("token_shards: position: expected 0 or more, got " +
                       std::to_string(position));
    for (long i = 0; i < count; ++i) {
      int* const token = tokens.data() + i * context;
      int* const label = labels.data() + i * context;
      for_each_token(window(position + i) * context, context + 1, [&](long t, int id) {
        if (t < context) token[t] = id;
        if (t > 0) label[t - 1] = id;
      });
    }
  }

 private:
  /// A form with a header.
  struct form {
    std::uint32_t magic, version;
    int id_bytes;
  };
  static constexpr std::array forms{form{20240520, 1, 2}, form{20240801, 7, 4}};
  static constexpr long header_bytes = 4 * 256;

  struct shard {
    std::string path;
    detail::file_descriptor file;
    long begin = 0, tokens = 0;  // the file's part of the stream
    long data = 0;               // bytes before the ids
    int id_bytes = 0;
  };

  void add(std::string const& path) {
    shard s{path, detail::file_descriptor(path, O_RDONLY | O_NONBLOCK)};
    struct stat there{};
    if (!s.file.is_open() || ::fstat(s.file.number(), &there) != 0)
      detail::throw_file_error("read", path);
    if (!S_ISREG(there.st_mode)) throw file_error("cannot read '" + path + "': it is not a file");
    std::array<std::byte, 12> head{};
    std::int64_t const found = s.file.read(0, head);
    if (found < 0) detail::throw_file_error("read", path);
    auto const word = [&](int i) {
      return detail::little_endian<std::uint32_t>(head.data() + 4 * i);
    };
    auto const is_swapped = [&](form const& f) {
      return found >= 4 && word(0) == __builtin_bswap32(f.magic);
    };
    if (std::any_of(forms.begin(), forms.end(), is_swapped))
      throw data_error("'" + path +
                       "' is a file of tokens in big-endian order, expected little-endian");
    auto const has_magic = [&](form const& f) { return found >= 4 && word(0) == f.magic; };
    auto const known = std::find_if(forms.begin(), forms.end(), has_magic);
    bool const has_header = known != forms.end();
    long const bytes = there.st_size;
    s.begin = tokens_;
    s.data = has_header ? header_bytes : 0;
    s.id_bytes = has_header ? known->id_bytes : settings_.id_bytes;
    s.tokens = std::max(0L, bytes - s.data) / s.id_bytes;
    if (has_header && word(1) != known->version)
      throw data_error("'" + path + "' is a file of tokens of version " + std::to_string(word(1)) +
                       ", expected " + std::to_string(known->version));
    if (has_header && (bytes < s.data || s.tokens != long(word(2))))
      throw data_error("'" + path + "': expected " + std::to_string(word(2)) +
                       " tokens after a header of 1024 bytes, found " + std::to_string(bytes) +
                       " bytes in all");
    if (s.data + s.tokens * s.id_bytes != bytes)
      throw data_error("'" + path + "': expected ids of " + std::to_string(s.id_bytes) +
                       " bytes each, found " + std::to_string(bytes) + " bytes in all");
    if (s.tokens > std::numeric_limits<long>::max() / 2 - tokens_)
      throw data_error("'" + path + "': it has more tokens than can be counted");
    tokens_ += s.tokens;
    shards_.push_back(std::move(s));
  }

  /// The window at a place of all epochs.
  long window(long position) const {
    std::uint64_t const all = std::uint64_t(windows()), place = std::uint64_t(position);
    if (!settings_.shuffle) return long(place % all);
    return long(detail::element_of_order(place % all, all, settings_.seed, place / all));
  }

  /// Calls use(i, id) for token begin + i of the stream, for each i < count.
  ///
  /// needs: begin + count <= tokens_
  template <class Use>
  void for_each_token(long begin, long count, Use const& use) const {
    auto const is_before = [](long place, shard const& s) { return place < s.begin; };
    auto of = std::upper_bound(shards_.begin(), shards_.end(), begin, is_before) - 1;
    for (long i = 0; i < count; ++of) {
      long const first = begin + i - of->begin, n = std::min(count - i, of->tokens - first);
      of->id_bytes == 2 ? read_ids<std::uint16_t>(*of, first, n, i, use)
                        : read_ids<std::uint32_t>(*of, first, n, i, use);
      i += n;
    }
  }
  /// Calls use(i, id) for `count` tokens of a file from token `first` on; i counts from the given
  /// `i`.
  template <class Id, class Use>
  void read_ids(shard const& s, long first, long count, long i, Use const& use) const {
    constexpr long most = 8192 / long(sizeof(Id));
    std::array<std::byte, 8192> block;
    for (long done = 0; done < count;) {
      long const n = std::min(count - done, most), at = first + done;
      std::span const bytes(block.data(), std::size_t(n) * sizeof(Id));
      std::int64_t const found = s.file.read(std::uint64_t(s.data + at * long(sizeof(Id))), bytes);
      if (found < 0) detail::throw_file_error("read", s.path);
      if (found != std::int64_t(bytes.size()))
        throw data_error("'" + s.path + "' has become shorter since it was opened");
      for (long k = 0; k < n; ++k) {
        std::uint32_t const id = detail::little_endian<Id>(block.data() + k * long(sizeof(Id)));
        if (id >= std::uint32_t(settings_.vocabulary))
          throw data_error("'" + s.path + "': token " + std::to_string(at + k) + " is " +
                           std::to_string(id) + ", expected an id below " +
                           std::to_string(settings_.vocabulary));
        use(i + done + k, int(id));
      }
      done += n;
    }
  }

  settings settings_;
  std::vector<shard> shards_;
  long tokens_ = 0;
};

}  // namespace pp
