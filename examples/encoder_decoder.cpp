// SPDX-License-Identifier: BSL-1.0
//
// An encoder and a decoder learn to write out numbers: 4071 becomes "four thousand seventy one".
// The encoder reads digits, the decoder writes words, and every word depends on all digits and the
// words before it.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <random>
#include <set>
#include <span>
#include <string>
#include <vector>

#include <pipe/pipe.hpp>
using namespace pp;

// [words]
/// The words by their ids: 1 to 19 are the numbers themselves. The full stop stands before the
/// first word and after the last.
constexpr char const* words[] = {
    ".",       "one",       "two",      "three",    "four",    "five",     "six",      "seven",
    "eight",   "nine",      "ten",      "eleven",   "twelve",  "thirteen", "fourteen", "fifteen",
    "sixteen", "seventeen", "eighteen", "nineteen", "twenty",  "thirty",   "forty",    "fifty",
    "sixty",   "seventy",   "eighty",   "ninety",   "hundred", "thousand"};
constexpr int full_stop = 0, twenty = 20, hundred = 28, thousand = 29, no_token = -1;
constexpr int most_digits = 6,
              most_words = 9 + 1;  // "nine hundred ninety nine thousand nine hundred ninety nine ."
// [/words]

// [model]
using Think = Residual<LayerNorm, Linear<192>, GELUTanh, Linear<64>>;

struct Speller : Model<Tokens<10, most_digits>, Embedding<64>,
                       Positions,  // the encoder: all digits see each other
                       Repeat<2, Residual<LayerNorm, Attention<4, NotCausal>>, Think>, LayerNorm,
                       Stash<"digits">,
                       Named<"words", Tokens<std::size(words), most_words>>,  // the decoder begins
                       Named<"meaning", Embedding<64>>, Positions,
                       Repeat<2, Residual<LayerNorm, Attention<4>>,
                              Residual<LayerNorm, CrossAttention<4, "digits">>, Think>,
                       LayerNorm, Tied<"meaning">, CrossEntropy> {};

using Trainer = Pipeline<Speller, Stages<4>, MicroBatches<8>, MicroBatchSize<16>, AdamW>;
// [/model]

/// The words of a number from 1 to 999,999.
std::vector<int> say(int number) {
  std::vector<int> said;
  auto const below_thousand = [&](int n) {
    if (n >= 100) said.push_back(n / 100), said.push_back(hundred);
    n %= 100;
    if (n >= 20) said.push_back(twenty + n / 10 - 2);
    if (n >= 20) n %= 10;
    if (n > 0) said.push_back(n);
  };
  if (number >= 1000) below_thousand(number / 1000), said.push_back(thousand);
  below_thousand(number % 1000);
  return said;
}

/// Short numbers as often as long ones; one in sixteen is kept back for the end.
int draw(std::mt19937& random, bool kept_back) {
  constexpr unsigned long below[] = {10, 100, 1000, 10'000, 100'000, 1'000'000};
  for (;;) {
    unsigned long const end = below[random() % std::size(below)];
    std::uint32_t const number = std::uint32_t(random() % end);
    bool const is_kept_back =
        number * 2654435761u >> 28 == 0;  // Knuth's multiplicative hash: no pattern in the digits
    if (number > 0 && is_kept_back == kept_back) return int(number);
  }
}

// [lesson]
/// Numbers as the model reads them. All begin at the left; what is short ends in -1, which is no
/// token and no label.
struct lesson {
  std::vector<int> digits, heard,
      next;  // the decoder hears the words so far and learns what comes next

  explicit lesson(std::vector<int> const& numbers) {
    for (int const number : numbers) {
      std::string const text = std::to_string(number);
      std::vector<int> const said = say(number);
      for (std::size_t i = 0; i < most_digits; ++i)
        digits.push_back(i < text.size() ? text[i] - '0' : no_token);
      for (std::size_t i = 0; i < most_words; ++i) {
        heard.push_back(i == 0 ? full_stop : i <= said.size() ? said[i - 1] : no_token);
        next.push_back(i < said.size() ? said[i] : i == said.size() ? full_stop : no_token);
      }
    }
  }
};
// [/lesson]

// [decode]
/// What the model finds most likely, word by word, for all samples at once.
std::vector<int> decode(Trainer& trainer, std::vector<int> const& digits) {
  std::vector<int> heard(digits.size() / most_digits * most_words, no_token), said(heard);
  std::vector<float> scores(heard.size() * std::size(words));
  for (std::size_t at = 0; at < heard.size(); at += most_words) heard[at] = full_stop;
  for (std::size_t i = 0; i < most_words; ++i) {
    trainer.forward(Trainer::batch{digits, {}}.set<"words">(heard), scores);
    for (std::size_t at = i; at < heard.size(); at += most_words) {
      if (heard[at] == no_token) continue;  // it has said its full stop
      said[at] = argmax(std::span(scores).subspan(at * std::size(words), std::size(words)));
      if (said[at] != full_stop && i + 1 < most_words) heard[at + 1] = said[at];
    }
  }
  return said;
}
// [/decode]

/// Prints some of the answers and all wrong ones.
void examine(Trainer& trainer, std::vector<int> const& numbers) {
  lesson const examination(numbers);
  std::vector<int> const said = decode(trainer, examination.digits);
  std::size_t right = 0;
  for (std::size_t n = 0; n < numbers.size(); ++n) {
    auto const sentence = [n](std::vector<int> const& all) {
      return std::span(all).subspan(n * most_words, most_words);
    };
    bool const is_right = std::ranges::equal(sentence(said), sentence(examination.next));
    right += is_right;
    if (n % 16 != 0 && is_right) continue;
    std::printf("%6d", numbers[n]);
    for (int const word : sentence(said))
      if (word > full_stop) std::printf(" %s", words[word]);
    std::printf("%s\n", is_right ? "" : "  (wrong)");
  }
  std::printf("%zu of %zu unseen numbers are right\n", right, numbers.size());
}

int main() {
  // [train]
  constexpr long steps = 300;
  std::mt19937 random(1);
  Trainer trainer({.seed = 1,
                   .optimizer = {.learning_rate = 3e-3},
                   .learning_rate_factor = learning_rate_schedule{.warm_up = 100, .steps = steps},
                   .clip_norm = 1});
  std::vector<int> numbers(Trainer::samples);
  for (long step = 1; step <= steps; ++step) {
    for (int& number : numbers) number = draw(random, false);
    lesson const now(numbers);
    double const loss =
        trainer.step(Trainer::batch{now.digits, now.next}.set<"words">(now.heard)).loss;
    if (step == 1 || step % 100 == 0) std::printf("step %4ld: loss %.4f\n", step, loss);
  }
  // [/train]

  std::set<int> unseen;
  while (unseen.size() < Trainer::samples) unseen.insert(draw(random, true));
  examine(trainer, {unseen.begin(), unseen.end()});
}
