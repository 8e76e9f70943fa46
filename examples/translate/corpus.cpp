// SPDX-License-Identifier: BSL-1.0
#include "corpus.hpp"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <string_view>
#include <unordered_map>

#include <pipe/data.hpp>

namespace {

constexpr std::size_t longest = 60;  // bytes of an original: others seldom fit the context
constexpr std::uint64_t stream = std::uint64_t(6) << 60;  // of no other random numbers

/// FNV-1a.
std::uint64_t hash(std::string_view text) {
  std::uint64_t h = 0xcbf29ce484222325;
  for (char const c : text) h = (h ^ std::uint8_t(c)) * 0x100000001b3;
  return h;
}

/// .../de/LC_MESSAGES/make.mo -> de
std::string language_of(std::filesystem::path const& path) {
  return path.parent_path().parent_path().filename().string();
}

template <class Names>
std::string listed(Names const& names) {
  std::string text;
  for (std::string const& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

bool is_usable(std::string const& text) {
  return !text.empty() && text.size() <= 2 * longest && text.find('\n') == text.npos;
}

pp::detail::philox_block bits(std::uint64_t seed, std::uint64_t step, std::uint64_t number) {
  return pp::math::random_block(seed, stream | step, number);
}

}  // namespace

corpus::corpus(std::string const& pattern, std::vector<std::string> const& languages, int most)
    : languages_{"en"} {
  std::unordered_map<std::string, std::size_t> places;  // of messages, by context and original
  std::vector<message> all;
  std::map<std::string, int> numbers;
  std::set<std::string> installed;
  for (std::string const& path : pp::files::files_like(pattern)) {
    std::string const language = language_of(path);
    if (language.starts_with("en")) continue;
    installed.insert(language);
    if (!languages.empty() && std::ranges::find(languages, language) == languages.end()) continue;
    try {
      pp::message_catalogue const catalogue(path);
      ++files_;
      int const number = numbers.emplace(language, int(languages_.size())).first->second;
      if (number == int(languages_.size())) languages_.push_back(language);
      auto const add = [&](std::string const& context, std::string const& from,
                           std::string const& to) {
        if (from.size() > longest || !is_usable(from) || !is_usable(to)) return;
        auto const [at, is_new] = places.emplace(context + '\4' + from, all.size());
        if (is_new) all.push_back(message{{{0, from}}});
        auto& texts = all[at->second].texts;
        if (texts.back().first != number &&
            std::ranges::none_of(texts, [&](auto const& t) { return t.first == number; }))
          texts.emplace_back(number, to);
      };
      for (pp::catalogue_message const& m : catalogue.messages()) {
        if (m.plural_id.empty()) {
          add(m.context, m.id, m.forms[0]);
          continue;
        }
        for (unsigned long const n : {1, 5}) {
          unsigned long const form = catalogue.form_of(n);
          if (form < m.forms.size()) add(m.context, n == 1 ? m.id : m.plural_id, m.forms[form]);
        }
      }
    } catch (pp::data_error const&) {
      ++left_out_;
    }
  }
  std::vector<std::string> absent;
  for (std::string const& language : languages)
    if (language != "en" && !numbers.contains(language)) {
      absent.push_back(language);
      installed.erase(language);  // none of its catalogues can be read
    }
  if (!absent.empty())
    throw pp::error("'" + pattern + "': found no catalogue to read for " + listed(absent) +
                    "; there are " + (installed.empty() ? "none" : listed(installed)));
  if (languages.empty() && most > 0) keep_languages(all, most);
  for (message& m : all)
    if (m.texts.size() > 1)
      (hash(m.texts[0].second) % 20 == 0 ? kept_back_ : training_).push_back(std::move(m));
  if (languages_.size() < 2 || training_.size() < 100 || kept_back_.empty())
    throw pp::error("'" + pattern + "': expected at least 100 messages and a language, found " +
                    std::to_string(training_.size()) + " and " +
                    std::to_string(languages_.size() - 1));
}

void corpus::keep_languages(std::vector<message>& all, int most) {
  std::vector<long> counts(languages_.size());
  for (message const& m : all)
    for (auto const& [language, text] : m.texts) ++counts[std::size_t(language)];
  std::vector<int> order;  // English is in all messages, and the first
  for (std::size_t i = 0; i < counts.size(); ++i) order.push_back(int(i));
  std::ranges::stable_sort(order, std::greater<>(), [&](int i) {
    return i == 0 ? all.size() + 1 : std::size_t(counts[std::size_t(i)]);
  });
  order.resize(std::min(order.size(), std::size_t(most) + 1));
  std::vector<int> number(counts.size(), -1);
  std::vector<std::string> names;
  for (int const i : order) {
    number[std::size_t(i)] = int(names.size());
    names.push_back(languages_[std::size_t(i)]);
  }
  languages_ = names;
  for (message& m : all) {
    std::erase_if(m.texts, [&](auto const& t) { return number[std::size_t(t.first)] < 0; });
    for (auto& [language, text] : m.texts) language = number[std::size_t(language)];
  }
}

sentence_pair corpus::draw(std::uint64_t seed, std::uint64_t step, std::uint64_t number) const {
  auto const b = bits(seed, step, number);
  auto const& texts = training_[b.word[0] % training_.size()].texts;
  // From English, or to it, or between two others, which are one where there is no second.
  std::size_t const others = texts.size() - 1, one = 1 + b.word[1] % others,
                    other = 1 + b.word[2] % others;
  std::size_t const from = b.word[3] % 4 < 2 ? 0 : one, to = b.word[3] % 4 < 2 ? one
                                                             : b.word[3] % 4 == 2 || one == other
                                                                 ? 0
                                                                 : other;
  return {texts[from].first, texts[to].first, &texts[from].second, &texts[to].second};
}

sentence_pair corpus::draw_kept_back(std::uint64_t seed, std::uint64_t number) const {
  auto const b = bits(seed, std::uint64_t(1) << 58, number);
  auto const& texts = kept_back_[b.word[0] % kept_back_.size()].texts;
  std::size_t const to = 1 + b.word[1] % (texts.size() - 1);
  return {0, texts[to].first, &texts[0].second, &texts[to].second};
}
