// SPDX-License-Identifier: BSL-1.0
//
// Any bytes as files of tokens: refused with a data_error, or a stream of ids of the vocabulary, in
// which every window comes once in an epoch, in whatever order, and every label is the token after.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <pipe/data/token_shards.hpp>

#include "fuzz.hpp"

namespace {

/// The windows of two epochs from a position on, each with its last label.
std::vector<std::vector<int>> windows_of(pp::token_shards const& data, std::size_t context,
                                         long position, std::size_t at_once) {
  std::vector<std::vector<int>> all;
  std::size_t const end = 2 * std::size_t(data.windows());
  while (all.size() < end) {
    std::size_t const count = std::min(at_once, end - all.size());
    std::vector<int> tokens(count * context), labels(tokens.size());
    data.read(position + long(all.size()), tokens, labels);
    for (std::size_t w = 0; w < count; ++w) {
      auto const first = tokens.begin() + std::ptrdiff_t(w * context);
      all.emplace_back(first, first + std::ptrdiff_t(context));
      all.back().push_back(labels[(w + 1) * context - 1]);
      for (std::size_t t = 0; t + 1 < context; ++t)
        law(labels[w * context + t] == all.back()[t + 1]);
    }
  }
  return all;
}

void read(decisions input) {
  std::size_t const context = 1 + input.below(40), at_once = 1 + input.below(7);
  pp::token_shards::settings s{.context = int(context),
                               .vocabulary = 1 + int(input.below(65536)) * 30'000,
                               .id_bytes = input.byte() % 2 == 0 ? 2 : 4};
  std::vector<std::string> paths;
  for (char name = 'a'; name < 'd' && (paths.empty() || !input.is_empty()); ++name) {
    paths.push_back({name});
    put(paths.back(), name == 'c' ? input.rest() : input.text(input.below(3000)));
  }
  pp::token_shards const in_order(paths, s);
  auto all = windows_of(in_order, context, 0, at_once);
  std::size_t const epoch = std::size_t(in_order.windows());
  law(std::equal(all.begin(), all.begin() + std::ptrdiff_t(epoch),
                 all.begin() + std::ptrdiff_t(epoch)));
  for (std::size_t w = 0; w < all.size(); ++w) {
    for (int const id : all[w]) law(id >= 0 && id < s.vocabulary);
    law(w + 1 == epoch || w + 1 == all.size() || all[w].back() == all[w + 1].front());
  }

  s.shuffle = true, s.seed = epoch;
  pp::token_shards const shuffled(paths, s);
  std::size_t const skipped = at_once % epoch;
  auto again = windows_of(shuffled, context, 0, at_once);
  auto const later = windows_of(shuffled, context, long(skipped), 1);
  law(std::equal(again.begin() + std::ptrdiff_t(skipped), again.end(), later.begin()));
  std::sort(all.begin(), all.end());
  std::sort(again.begin(), again.end());
  law(all == again);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size);
extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  try {
    read(decisions({data, size}));
  } catch (pp::data_error const&) {
  }
  return 0;
}
