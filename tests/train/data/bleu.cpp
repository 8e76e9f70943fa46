// SPDX-License-Identifier: BSL-1.0
//
// BLEU: the numbers of sacrebleu 2 with tokenize="none".
#include "catch.hpp"

#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <pipe/metrics/bleu.hpp>

namespace {

std::vector<std::string> words(std::string const& text) {
  std::vector<std::string> all;
  std::istringstream from(text);
  for (std::string word; from >> word;) all.push_back(word);
  return all;
}

double bleu(std::vector<std::pair<std::string, std::string>> const& sentences) {
  // [bleu]
  pp::bleu_score score;
  for (auto const& [translation, reference] : sentences)
    score.add(words(translation), words(reference));
  return score.value();
  // [/bleu]
}

}  // namespace

TEST_CASE("BLEU is that of sacrebleu") {
  std::pair<std::string, std::string> const cat{"the cat sat on the mat", "the cat is on the mat"};
  CHECK(bleu({cat,
              {"there is a dog in the big garden", "there is a dog in the garden"},
              {"yes", "yes it is"},
              {"the the the the", "the cat and the dog"}}) == Approx(44.262482063872795));
  CHECK(bleu({cat}) == Approx(37.99178428257963));
  CHECK(bleu({{"a b c x y z", "a b c d e f g h"}}) == Approx(21.64910073203448));
  CHECK(bleu({{"a b x c d y", "a b c d e f g h"}}) == Approx(16.44975929846582));
  CHECK(bleu({{"a b c d e", "a b c d e"}}) == Approx(100));
  CHECK(bleu({{"x", "a"}}) == 0);
  CHECK(bleu({}) == 0);
}
