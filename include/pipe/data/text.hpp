// SPDX-License-Identifier: BSL-1.0
//
// Text as training data: the tokens are the bytes of a file, or of all files below a directory. The
// text is read once; a mini-batch is copied from the text into the caller's buffers.
#pragma once
#ifndef PIPE_SHOWS_WARNINGS
#pragma GCC system_header
#endif

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <new>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include <fcntl.h>

#include <pipe/base/config.hpp>
#include <pipe/base/error.hpp>
#include <pipe/base/philox.hpp>
#include <pipe/io/file_descriptor.hpp>
#include <pipe/io/folder_reader.hpp>

namespace pp {

/// Windows of `context` bytes; the label of each byte is the byte after it. The last twentieth of
/// the text is held out: training windows never overlap it.
///
/// Files of a directory are read in the order of their paths, separated by a zero byte. Hidden
/// files (.git, .DS_Store) and files that archives and file managers add (__MACOSX, Thumbs.db) are
/// left out.
class text_data {
 public:
  static constexpr int vocabulary = 256;
  static constexpr long held_out_share = 20;  ///< 1 / held_out_share of the bytes are held out

  /// Reads the text.
  ///
  /// throws: data_error for context < 1, a path that cannot be read, or a text too short for one
  ///         training window and one held-out window
  text_data(std::filesystem::path const& path, int context) : context_(context) {
    if (context < 1)
      throw data_error("text_data: context: expected 1 byte or more, got " +
                       std::to_string(context));
    for (std::filesystem::path const& file : files_of(path)) append(file);
    long const needed = held_out_share * (long(context) + 1);
    if (bytes_.empty())
      throw data_error("the text in '" + path.string() + "' is empty: expected at least " +
                       std::to_string(needed) + " bytes");
    if (bytes() < needed)
      throw data_error("the text in '" + path.string() + "' is too short: windows of " +
                       std::to_string(context) + " bytes need at least " + std::to_string(needed) +
                       " bytes, found " + std::to_string(bytes()));
  }

  long bytes() const { return long(bytes_.size()); }
  long training_bytes() const { return bytes() - bytes() / held_out_share; }
  int files() const { return files_; }
  /// The bytes from which training windows are drawn.
  std::span<unsigned char const> training_text() const {
    return std::span(bytes_).first(std::size_t(training_bytes()));
  }
  /// The begin of training window `window` of a step, below `places` = training_bytes() - context.
  PIPE_HD static constexpr std::uint64_t place(std::uint64_t seed, std::uint64_t step,
                                               std::uint64_t window, std::uint64_t places) {
    detail::philox_block const bits = math::random_block(seed, stream | step, window);
    return (std::uint64_t(bits.word[1]) << 32 | bits.word[0]) % places;
  }

  /// Fills a training mini-batch: tokens.size() / context windows at random positions. Allocates
  /// nothing.
  ///
  /// law: window i is a function of (seed, step, i) only
  void draw(std::uint64_t seed, std::uint64_t step, std::span<int> tokens,
            std::span<int> labels) const {
    check_size(tokens, labels);
    // A window reads context_ + 1 bytes: the label of its last byte is the byte behind the window.
    std::uint64_t const places = std::uint64_t(training_bytes() - context_);
    for (long i = 0; i < long(tokens.size()) / context_; ++i) {
      copy_window(long(place(seed, step, std::uint64_t(i), places)), context_, tokens, labels, i);
    }
  }

  /// Number of held-out windows; the last window may be shorter.
  long held_out_windows() const {
    return (bytes() - training_bytes() - 1 + context_ - 1) / context_;
  }

  /// Fills a mini-batch with held-out windows first, first + 1, ... . Positions beyond the end have
  /// token 0 and label -1, which no loss counts. Returns the number of labels that count. Allocates
  /// nothing. Throws data_error for first < 0.
  long held_out(long first, std::span<int> tokens, std::span<int> labels) const {
    check_size(tokens, labels);
    if (first < 0)
      throw data_error("held_out: first window: expected 0 or more, got " + std::to_string(first));
    first = std::min(first, held_out_windows());  // windows from there on are empty
    long counted = 0;
    for (long i = 0; i < long(tokens.size()) / context_; ++i) {
      long const start = training_bytes() + (first + i) * context_;
      long const length = std::clamp(bytes() - 1 - start, 0L, long(context_));
      copy_window(start, length, tokens, labels, i);
      counted += length;
    }
    return counted;
  }

 private:
  // Disjoint from the streams of initial parameters.
  static constexpr std::uint64_t stream = std::uint64_t(1) << 63;

  /// The file itself, or all files below a directory in the order of their paths, whatever the
  /// order in which the system lists them. Hidden files are left out.
  ///
  /// throws: data_error if the path does not exist, is neither file nor directory, or cannot be
  ///         listed
  static std::vector<std::filesystem::path> files_of(std::filesystem::path const& path) {
    namespace fs = std::filesystem;
    std::error_code error;
    fs::file_status const status = fs::status(path, error);
    if (!fs::exists(status))
      throw data_error(
          "cannot read the text at '" + path.string() + "': " +
          (error ? error : std::make_error_code(std::errc::no_such_file_or_directory)).message());
    if (fs::is_regular_file(status)) return {path};
    if (!fs::is_directory(status))
      throw data_error("cannot read the text at '" + path.string() +
                       "': expected a file or a directory");
    std::vector<fs::path> files;
    int const failure = detail::see_files_below(path.string(), detail::files_seen::not_hidden,
                                                [&](std::string const& file) {
                                                  if (fs::is_regular_file(file, error))
                                                    files.emplace_back(file);
                                                  return false;
                                                });
    if (failure != 0)
      throw data_error("cannot list the directory '" + path.string() +
                       "': " + std::strerror(failure));
    std::sort(files.begin(), files.end());
    return files;
  }

  /// Appends a file to the buffer, behind a zero byte unless it is the first file.
  ///
  /// throws: data_error if the file cannot be read in full, file_error if there is no memory for it
  void append(std::filesystem::path const& file) {
    std::error_code error;
    std::uintmax_t const size = std::filesystem::file_size(file, error);
    detail::file_descriptor const in(file.string(), O_RDONLY);
    if (error || !in.is_open())
      throw data_error("cannot read '" + file.string() + "': " +
                       (error ? error : std::error_code(errno, std::generic_category())).message());
    if (files_++ > 0) bytes_.push_back(0);
    std::size_t const before = bytes_.size();
    if (!make_room(size))
      throw file_error("cannot read '" + file.string() + "': no memory for its " +
                       std::to_string(size) + " bytes" +
                       (before > 0 ? " after " + std::to_string(before) + " of other files" : ""));
    std::int64_t const read =
        in.read(0, std::as_writable_bytes(std::span(bytes_.data() + before, std::size_t(size))));
    if (read != std::int64_t(size))
      throw data_error("cannot read '" + file.string() + "': expected " + std::to_string(size) +
                       " bytes, got " + (read < 0 ? std::strerror(errno) : std::to_string(read)));
  }

  /// Grows the buffer by a number of bytes. Returns false if memory is exhausted.
  bool make_room(std::uintmax_t more) try {
    if (more > std::uintmax_t(PTRDIFF_MAX) - bytes_.size()) return false;
    bytes_.resize(bytes_.size() + std::size_t(more));
    return true;
  } catch (std::bad_alloc const&) {
    return false;
  }

  /// throws: data_error unless both lists have one size, a whole number of windows
  void check_size(std::span<int> tokens, std::span<int> labels) const {
    if (tokens.size() != labels.size() || tokens.size() % std::size_t(context_) != 0)
      throw data_error("a batch of text: expected as many labels as tokens, in whole windows of " +
                       std::to_string(context_) + ", got " + std::to_string(tokens.size()) +
                       " tokens and " + std::to_string(labels.size()) + " labels");
  }

  /// Fills window i of a batch: `length` bytes from `start`, then padding.
  void copy_window(long start, long length, std::span<int> tokens, std::span<int> labels,
                   long i) const {
    for (long t = 0; t < context_; ++t) {
      std::size_t const to = std::size_t(i * context_ + t), from = std::size_t(start + t);
      tokens[to] = t < length ? bytes_[from] : 0;
      labels[to] = t < length ? bytes_[from + 1] : -1;
    }
  }

  int context_;
  int files_ = 0;
  // The training bytes, then the held-out bytes.
  std::vector<unsigned char> bytes_;
};

}  // namespace pp
