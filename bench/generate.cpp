// SPDX-License-Identifier: BSL-1.0
//
// A token by the decoder, which keeps keys and values, against a token by a forward pass over the
// whole context: what a program without one does. Then a decoder of 85 million parameters: a prompt
// of 512 tokens, and the tokens after it, by one thread and by several, with weights in fp32, bf16
// and int8, and of sixteen texts that share the prompt, in turns.
//
// Arguments: rounds (default 9), threads (default: the cores).
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <span>
#include <vector>

#include <pipe/infer/decoder.hpp>
#include <pipe/infer/model_weights.hpp>
#include <pipe/pipe.hpp>

#include "peer/machine.hpp"
#include "peer/turns.hpp"

using namespace pp;

namespace {

template <int Heads, int Width>
using Block = Seq<Residual<LayerNorm, Attention<Heads>>,
                  Residual<LayerNorm, Linear<4 * Width>, GELUTanh, Linear<Width>>>;

/// examples/gpt
struct Small : Model<Tokens<256, 128>, Embedding<96>, Positions, Repeat<8, Block<3, 96>>, LayerNorm,
                     Linear<256>, CrossEntropy> {};
/// Blocks as wide as GPT-2's, with its context: weights that no cache holds.
struct Wide : Model<Tokens<256, 1024>, Embedding<768>, Positions, Repeat<4, Block<12, 768>>,
                    LayerNorm, Linear<256>, CrossEntropy> {};
/// All twelve blocks of GPT-2.
struct Whole : Model<Tokens<256, 1024>, Embedding<768>, Positions, Repeat<12, Block<12, 768>>,
                     LayerNorm, Linear<256>, CrossEntropy> {};

std::vector<int> some_tokens(long count) {
  std::vector<int> tokens(std::size_t(count), 0);
  for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = int(i * i % 251);
  return tokens;
}

/// How many times as fast a token is. Read one by one are up to `most` tokens in the middle of the
/// context, whose attention costs the mean.
template <class M>
double compare(char const* name, int rounds, std::size_t most) {
  using Trainer = Pipeline<M>;
  Trainer trainer({.seed = 1});
  decoder read(trainer);
  std::vector<int> const tokens = some_tokens(Trainer::inputs_per_sample);
  std::vector<float> logits(Trainer::outputs_per_sample);
  std::size_t const count = std::min(most, tokens.size()), first = (tokens.size() - count) / 2;
  if (first > 0) read.read(std::span(tokens).first(first));
  bench::turns const t({[&] {
                          read.rewind(int(first));
                          for (std::size_t i = first; i < first + count; ++i) read.read(tokens[i]);
                        },
                        [&] { trainer.forward(tokens, logits); }},
                       rounds);
  std::printf("%-6s decoder %7.1f tokens/s, by forward passes %7.1f tokens/s\n", name,
              double(count) / t.median(0), 1 / t.median(1));
  std::fflush(stdout);
  return t.ratio(1, 0) * double(count);
}

/// A prompt and the tokens after it, by decoders of one thread and of several, whose weights have
/// several widths.
void by_threads(int rounds, int threads) {
  constexpr int prompt = 512, more = 16;
  model_weights<Whole> weights;
  unsigned state = 1;
  for (auto const& p : weights.parameters())
    for (float& x : p.values)
      x = (float((state = state * 1664525u + 1013904223u) >> 8) / 16777216.0f - 0.5f) * 0.08f;
  std::vector<int> const tokens = some_tokens(prompt + more);
  struct reader {
    char const* numbers;
    decoder<model_weights<Whole>> read;
  };
  std::vector<reader> readers;
  readers.push_back({"fp32", decoder(weights, {.threads = 1})});
  readers.push_back({"fp32", decoder(weights, {.threads = threads})});
  readers.push_back(
      {"bf16", decoder(weights, {.threads = threads, .weights = decoder_weights::bf16})});
  readers.push_back(
      {"int8", decoder(weights, {.threads = threads, .weights = decoder_weights::int8})});
  std::vector<std::function<void()>> ways;
  for (auto& r : readers) {
    ways.push_back([&] {
      r.read.rewind(0);
      r.read.read(std::span(tokens).first(prompt));
    });
  }
  for (auto& r : readers) {
    ways.push_back([&] {
      r.read.rewind(prompt);
      for (int const token : std::span(tokens).last(more)) r.read.read(token);
    });
  }
  std::size_t const count = readers.size();
  constexpr int texts = 16;
  decoder together(weights, {.threads = threads, .weights = decoder_weights::int8, .texts = texts});
  together.read(std::span(tokens).first(prompt));
  for (int k = 1; k < texts; ++k) together.copy_text(0, k);
  std::vector<int> const each(texts, 1);
  ways.push_back([&] {
    for (int k = 0; k < texts; ++k) together.rewind(k, prompt);
    for (int i = 0; i < more; ++i) together.read_each(each);
  });
  bench::turns const t(ways, rounds);
  for (std::size_t k = 0; k < count; ++k)
    std::printf(
        "85M    %s, %d thread%s: a prompt of %d %7.1f ms = %6.0f tokens/s, a token %6.2f ms = "
        "%5.1f tokens/s, %4.0f MB\n",
        readers[k].numbers, readers[k].read.threads(), readers[k].read.threads() == 1 ? "" : "s",
        prompt, t.median(k) * 1e3, prompt / t.median(k), t.median(count + k) / more * 1e3,
        more / t.median(count + k),
        double(readers[k].read.bytes() + (k < 2 ? weights.bytes() : 0)) * 1e-6);
  std::printf("figure generate_85m_prompt_tokens_per_s %.0f\n", prompt / t.median(1));
  for (std::size_t k = 1; k < count; ++k)
    std::printf("figure generate_85m_%s%stokens_per_s %.1f\n", k == 1 ? "" : readers[k].numbers,
                k == 1 ? "" : "_", more / t.median(count + k));
  std::printf("85M    int8, %d texts that share the prompt: %.1f tokens/s, %.0f MB\n", texts,
              texts * more / t.median(2 * count), double(together.bytes()) * 1e-6);
  std::printf("figure generate_85m_texts_over_one %.2f\n",
              texts * t.ratio(2 * count - 1, 2 * count));
  std::printf("figure generate_85m_prompt_by_threads %.2f\n", t.ratio(0, 1));
  std::printf("figure generate_85m_token_by_threads %.2f\n", t.ratio(count, count + 1));
  std::fflush(stdout);
}

}  // namespace

int main(int count, char** arguments) {
  int const rounds = count > 1 ? std::max(1, std::atoi(arguments[1])) : 9,
            threads =
                count > 2 ? std::max(1, std::atoi(arguments[2])) : int(detail::allowed_cores());
  std::printf("%s, one thread, %d rounds\n", bench::instruction_set(), rounds);
  std::fflush(stdout);
  double const small = compare<Small>("small", rounds, 128),
               wide = compare<Wide>("wide", rounds, 64);
  std::printf("figure generate_small_over_forward %.1f\n", small);
  std::printf("figure generate_wide_over_forward %.1f\n", wide);
  std::fflush(stdout);
  by_threads(rounds, threads);
}
