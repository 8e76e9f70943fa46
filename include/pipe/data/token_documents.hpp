// SPDX-License-Identifier: BSL-1.0
//
// Documents of token ids as training data: each token's label is the next one of its document. The
// documents have several lengths, for pipelines with Lengths.
//
//     token_documents const documents(ids, lengths, {.context = 1024, .cut = true});
//     for (auto const& batch : batches<Trainer>(documents, {.shuffle = true, .packed = true}))
//       trainer.step(batch);
#pragma once
#ifndef PIPE_SHOWS_WARNINGS
#pragma GCC system_header
#endif

#include <cstddef>
#include <span>
#include <vector>

#include <pipe/base/error.hpp>
#include <pipe/base/sentence.hpp>

namespace pp {

namespace detail {

/// The data of token_documents.
struct token_documents_settings {
  int context = 0;   ///< tokens of the longest sample, at least 1
  bool cut = false;  ///< cuts longer documents into samples of the context, instead of refusing
};

/// A batch with lengths.
template <class Batch>
concept takes_lengths =
    requires(Batch& b, std::vector<int> const& lengths) { b.set_lengths(lengths); };

}  // namespace detail

/// Samples of a whole document or, of a cut one, of `context` consecutive tokens; the last sample
/// of a document may have fewer. A sample without a label, which is one token at the end of its
/// document, is left out.
///
/// law:  a document of n tokens has n - 1 labels, also if it is cut, and none of another document
/// cost: 8 bytes for each token and 4 for each sample; what the constructor is given is not kept
class token_documents {
 public:
  using settings = detail::token_documents_settings;

  std::vector<int> ids, labels;  ///< of all samples, one behind the other
  std::vector<int> lengths;      ///< by sample

  /// Reads documents that lie one behind the other.
  ///
  /// shape:  tokens[sum of lengths_of_documents]
  /// throws: data_error for a setting or a length out of range, for lengths that do not add up, and
  ///         for a document above the context that is not to be cut
  token_documents(std::span<int const> tokens, std::span<int const> lengths_of_documents,
                  settings const& s) {
    if (s.context < 1)
      detail::throw_error<data_error>(
          {"token_documents: context: expected 1 or more, got ", s.context});
    check(tokens.size(), lengths_of_documents, s);
    ids.reserve(tokens.size());
    labels.reserve(tokens.size());
    std::size_t at = 0;
    for (int const length : lengths_of_documents) {
      for (long first = 0; first + 1 < length; first += s.context) {
        int const left = int(length - first);
        add(tokens.data() + at + first, left < s.context ? left : s.context, left > s.context);
      }
      at += std::size_t(length);
    }
  }

  /// The samples as a data set, for `batches` and `evaluate_all`: a view of these lists.
  template <detail::takes_lengths Batch>
  operator Batch() const {
    Batch b{ids, labels};
    b.set_lengths(lengths);
    return b;
  }

 private:
  static void check(std::size_t tokens, std::span<int const> lengths, settings const& s) {
    std::size_t sum = 0;
    for (std::size_t d = 0; d < lengths.size(); ++d) {
      if (lengths[d] < 0 || (lengths[d] > s.context && !s.cut))
        detail::throw_error<data_error>(
            {"token_documents: document ", d, " has ", lengths[d], " tokens, which is not in [0, ",
             s.context, "]",
             lengths[d] < 0 ? "" : ": with .cut = true it becomes several samples"});
      sum += std::size_t(lengths[d]);
    }
    if (sum != tokens)
      detail::throw_error<data_error>({"token_documents: the sum of the lengths is ", sum,
                                       ", but there are ", tokens, " tokens"});
  }
  /// Adds a sample, behind which its document goes on or not.
  void add(int const* from, int count, bool goes_on) {
    ids.insert(ids.end(), from, from + count);
    labels.insert(labels.end(), from + 1, from + count);
    labels.push_back(goes_on ? from[count] : -1);
    lengths.push_back(count);
  }
};

}  // namespace pp
