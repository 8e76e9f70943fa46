// SPDX-License-Identifier: BSL-1.0
//
// Text generation on the GPU that trains: a loop of forward passes and draws whose logits stay
// there. Not part of <pipe/pipe.hpp>, so that only programs that include it compile its kernel.
#pragma once
#ifndef PIPE_SHOWS_WARNINGS
#pragma GCC system_header
#endif

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <pipe/backend/backend.hpp>
#include <pipe/base/checked_index.hpp>
#include <pipe/infer/generate.hpp>
#include <pipe/infer/sampling_on_device.cuh>
#include <pipe/plan/options/devices.hpp>
#include <pipe/runtime/cuda/resources.cuh>

namespace pp {

/// Texts in the memory of the GPU that trains, which continue together. Each draw is a forward pass
/// over the context of all of them, since there are no keys and values kept: a micro-batch of texts
/// takes the time of one. The trainer must outlive the generator, and be on the current device.
///
/// law: a draw moves texts() tokens to the host, and no logits
/// law: a text does not depend on the others
template <class Trainer>
class device_generator {
  using Given = typename Trainer::model;
  static_assert(decltype(detail::diagnosed(detail::diagnose_decoding(detail::word<Given>{})))::ok);
  static_assert(
      detail::accepted<
          decltype(detail::diagnose_use_of_device_data<
                   typename Trainer::compiled::backend,
                   typename Trainer::compiled::template option<option_family::devices>>())>::value);
  /// See decoder.
  using M = std::conditional_t<detail::is_decodable<Given>(), Given, detail::smallest_decodable>;

 public:
  static constexpr int context = int(M::graph.inputs[0].form.elements()),
                       vocabulary = M::graph.inputs[0].vocabulary;

  /// Allocates memory for the ids and the logits of `texts` texts, which are empty.
  ///
  /// throws: data_error if texts is not in [1, Trainer::samples]; pp::error if there is no memory
  explicit device_generator(Trainer& trainer, int texts = 1)
      : trainer_(&trainer), lengths_(std::size_t(checked_texts(texts)), 0),
        ids_(ints(long(texts) * context)), of_texts_(ints(2L * texts)),
        logits_(long(sizeof(float)) * texts * context * vocabulary),
        to_send_(ints(long(texts) * (context + 1))), drawn_(ints(texts)) {
    detail::prepare_sampling();
    // Waits until memory has been cleared, before another stream writes to it.
    cuda::check(cudaMemcpy(drawn_.data(), of_texts_.data(), std::size_t(ints(texts)),
                           cudaMemcpyDeviceToHost),
                "clearing of memory");
    for (int text = 0; text < texts; ++text) write(text, {});
  }
  device_generator(device_generator const&) = delete;
  device_generator& operator=(device_generator const&) = delete;

  int texts() const { return int(lengths_.size()); }
  /// The number of tokens of a text. Throws data_error for a text out of range.
  int position(int text) const { return lengths_[std::size_t(checked(text))]; }
  /// Bytes allocated on the device.
  long bytes() const { return ids_.bytes() + of_texts_.bytes() + logits_.bytes(); }

  /// Replaces a text. One without tokens has no draws.
  ///
  /// throws: data_error for a text or a token out of range, or more tokens than the context; the
  ///         text is as before then
  void write(int text, std::span<int const> tokens) {
    checked(text);
    if (tokens.size() > std::size_t(context))
      detail::throw_error<data_error>(
          {"device_generator: expected at most ", context, " tokens, got ", tokens.size()});
    detail::check_tokens(tokens, vocabulary);
    // Draws wait for the stream, so that what is sent is overwritten only by what replaces it.
    int* const row = to_send_.template as<int>() + text * (context + 1L);
    std::fill(std::copy(tokens.begin(), tokens.end(), row), row + context, -1);
    row[context] = lengths_[std::size_t(text)] = int(tokens.size());
    send(ids() + long(text) * context, row, context);
    send(device_lengths() + text, row + context, 1);
  }

  /// Draws the next token of every text, and appends it where the context has room. Returns the
  /// tokens, valid until the next call; -1 for a text without tokens.
  ///
  /// law:    text k has the tokens of sample() with seed s.seed + k, on the logits of forward()
  /// throws: data_error if a setting is out of range; not_finite as sample() does, for the first
  ///         such text, when the others have been drawn
  std::span<int const> draw(detail::sampling_settings const& s, std::uint64_t place) {
    std::size_t const all = lengths_.size();
    device_span<float> const logits(logits_.template as<float>(),
                                    all * std::size_t(context) * std::size_t(vocabulary));
    auto a = detail::sampling_arguments(logits.first(all * std::size_t(vocabulary)), s, place,
                                        {of_texts_.template as<int>(), all});
    a.context = context;
    a.lengths = device_lengths();
    a.ids = ids();
    typename Trainer::device_batch batch{device_span<int const>(ids(), all * std::size_t(context)),
                                         {}};
    trainer_->forward(batch.ready_on(stream_), logits);
    cuda::launch_body<cuda::sample_rows_kernel>(a, stream_);
    cuda::check(cudaMemcpyAsync(drawn_.data(), of_texts_.data(), sizeof(int) * all,
                                cudaMemcpyDeviceToHost, stream_),
                "download of tokens");
    cuda::check(cudaStreamSynchronize(stream_), "a draw of tokens");
    std::span<int const> const tokens(drawn_.template as<int>(), all);
    for (std::size_t text = 0; text < all; ++text)
      if (tokens[text] >= 0 && lengths_[text] < context) ++lengths_[text];
    for (std::size_t text = 0; text < all; ++text)
      if (tokens[text] < -1) reject(long(text), -2 - tokens[text]);
    return tokens;
  }

 private:
  static long ints(long count) { return long(sizeof(int)) * count; }
  static int checked_texts(int texts) {
    if (texts < 1 || texts > Trainer::samples)
      detail::throw_error<data_error>(
          {"device_generator: texts: ", texts, " is not in [1, ", Trainer::samples, "]"});
    return texts;
  }
  int checked(int text) const { return detail::checked_index<data_error>("text", text, texts()); }
  int* ids() const { return ids_.template as<int>(); }
  int* device_lengths() const { return of_texts_.template as<int>() + texts(); }
  void send(int* to, int const* from, long count) {
    cuda::check(
        cudaMemcpyAsync(to, from, std::size_t(ints(count)), cudaMemcpyHostToDevice, stream_),
        "upload of a text");
  }
  /// Throws not_finite for a logit of a text, which is downloaded for the message.
  [[noreturn, gnu::cold]] void reject(long text, long logit) {
    if (logit == vocabulary) detail::reject_logits(vocabulary);
    long const row = text * context + lengths_[std::size_t(text)] - 1;
    float x = 0;
    cuda::check(cudaMemcpy(&x, logits_.template as<float>() + row * vocabulary + logit, sizeof x,
                           cudaMemcpyDeviceToHost),
                "download of a logit");
    detail::reject_logit(logit, vocabulary, double(x));
  }

  Trainer* trainer_;
  std::vector<int> lengths_;
  cuda::device_buffer ids_, of_texts_, logits_;  // of_texts_: drawn tokens, lengths
  cuda::pinned_buffer to_send_, drawn_;          // to_send_: for each text its ids and its length
  // Last, so that it is destroyed first.
  cuda::stream stream_;
};
template <class Trainer>
device_generator(Trainer&, int) -> device_generator<Trainer>;
template <class Trainer>
device_generator(Trainer&) -> device_generator<Trainer>;

/// Continues several texts, as the generate() of one text does. Calls each(text, token) for every
/// new token; if each returns a bool, false ends that text.
///
/// law:    text k is that of generate() with seed s.sampling.seed + k
/// throws: data_error also if there are no prompts, or more than on.texts()
/// cost:   a forward pass over on.texts() contexts for each token of the longest text
template <class Trainer, std::invocable<int, int> Each>
void generate(device_generator<Trainer>& on, std::span<std::vector<int> const> prompts,
              detail::generation_settings const& s, Each each) {
  constexpr int context = device_generator<Trainer>::context;
  if (prompts.empty() || prompts.size() > std::size_t(on.texts()))
    detail::throw_error<data_error>(
        {"generate: expected 1 to ", on.texts(), " prompts, got ", prompts.size()});
  detail::check_sampling(s.sampling);
  int kept = 0;
  for (auto const& prompt : prompts) {
    kept = detail::checked_generation(prompt, s, context, device_generator<Trainer>::vocabulary);
    detail::check_tokens(prompt, device_generator<Trainer>::vocabulary);
  }
  std::vector<std::vector<int>> texts(prompts.begin(), prompts.end());
  std::vector<int> lengths(texts.size());  // of what the device has of them
  auto const rewrite = [&](std::size_t k, std::size_t most) {
    std::size_t const n = std::min(texts[k].size(), most);
    on.write(int(k), std::span<int const>(texts[k]).last(n));
    lengths[k] = int(n);
  };
  for (std::size_t k = 0; k < texts.size(); ++k) rewrite(k, std::size_t(context));
  for (int k = int(texts.size()); k < on.texts(); ++k) on.write(k, {});
  std::size_t active = texts.size();
  for (long i = 0; i < s.tokens && active > 0; ++i) {
    auto const tokens = on.draw(s.sampling, std::uint64_t(i));
    for (std::size_t k = 0; k < texts.size(); ++k) {
      if (lengths[k] == 0) continue;  // it has ended
      int const token = tokens[k];
      bool goes_on = true;
      if constexpr (std::same_as<std::invoke_result_t<Each&, int, int>, bool>)
        goes_on = each(int(k), token);
      else
        each(int(k), token);
      texts[k].push_back(token);
      if (!goes_on || token == s.end) {
        on.write(int(k), {});
        lengths[k] = 0;
        --active;
      } else if (lengths[k] < context) {
        ++lengths[k];
      } else {
        rewrite(k, std::size_t(kept));
      }
    }
  }
}
/// The same; returns the new tokens of each text.
template <class Trainer>
std::vector<std::vector<int>> generate(device_generator<Trainer>& on,
                                       std::span<std::vector<int> const> prompts,
                                       detail::generation_settings const& s) {
  std::vector<std::vector<int>> tokens(prompts.size());
  generate(on, prompts, s,
           [&](int text, int token) { tokens[std::size_t(text)].push_back(token); });
  return tokens;
}
/// Continues one text on the device.
///
/// law: the tokens of generate() with a decoder, on logits of the device
template <class Trainer, std::invocable<int> Each>
void generate(device_generator<Trainer>& on, std::span<int const> prompt,
              detail::generation_settings const& s, Each each) {
  std::vector<int> const text(prompt.begin(), prompt.end());
  generate(on, std::span(&text, 1), s, [&](int, int token) { return each(token); });
}

}  // namespace pp
