// SPDX-License-Identifier: BSL-1.0
//
// One model translates between languages in which programs on this machine have their messages.
//
//     translate                       learns English and the four with the most messages
//     translate --languages de,fr     two others, and English
//     translate --languages all       all of them, which takes more steps
//     translate --deep                32 layers in the encoder and 32 in the decoder
//     translate --deep --plain-init   the same with the initial values of few layers, to compare
//     translate --plan                shows what the compiler decided
//     translate                       goes on where Ctrl-C, or a crash, has ended it
//
// The last line of its output is a row: translate_bleu and BLEU of messages that were kept back.
//
// Exit codes: 0 done; 1 an error; 2 wrong options; 130, 143 stopped by SIGINT, SIGTERM.
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <string>

#include <CLI/CLI.hpp>

#include "../options.hpp"
#include "translate.hpp"

namespace {

/// throws: CLI::ValidationError for what is no number of languages and no name of one
void take_languages(options& o, std::string const& given) {
  CLI::ValidationError const wrong(
      "--languages", "needs names, a number from 1 to 999, or all, got '" + given + "'");
  bool const is_number = given.find_first_not_of("0123456789") == given.npos;
  if (given.empty() || (is_number && (given.size() > 3 || std::stoi(given) == 0))) throw wrong;
  o.most_languages = is_number ? std::stoi(given) : 0;
  if (is_number || given == "all") return;
  for (std::size_t at = 0, end = 0; end != given.npos; at = end + 1) {
    end = given.find(',', at);
    o.languages.push_back(given.substr(at, end - at));
    if (!std::isalpha(static_cast<unsigned char>(o.languages.back()[0]))) throw wrong;
  }
}

}  // namespace

int main(int count, char** arguments) {
  options o;
  CLI::App app("Learns to translate the messages of the programs on this machine", "translate");
  app.add_option("--catalogues", o.catalogues, "the .mo files, as a pattern")
      ->capture_default_str();
  std::string languages = "4";
  app.add_option("--languages", languages,
                 "as de,fr: these and English; a number: those with the most messages; all")
      ->capture_default_str();
  auto* const deep = app.add_flag("--deep", o.deep,
                                  "32 layers in the encoder and 32 in the decoder, instead of 3");
  app.add_flag("--plain-init", o.plain, "with --deep: the initial values of the 3, to compare")
      ->needs(deep);
  app.add_option("--steps", o.steps, "training steps")->check(whole<long>)->capture_default_str();
  app.add_option("--lr", o.learning_rate, "the highest learning rate")
      ->check(above_0)
      ->capture_default_str();
  app.add_option("--seed", o.seed, "of all random numbers")
      ->check(whole<std::uint64_t>)
      ->capture_default_str();
  app.add_option("--show", o.shown, "translations to print")
      ->check(whole<long>)
      ->capture_default_str();
  app.add_option("--judge", o.judged, "translations of which BLEU is computed")
      ->check(whole<long, 1>)
      ->capture_default_str();
  app.add_option("--checkpoints", o.checkpoints,
                 "the folder for checkpoints and words, from which an interrupted run goes on")
      ->capture_default_str();
  app.add_flag("--plan", o.plan, "print the plan and stop");
  try {
    app.parse(count, arguments);
    take_languages(o, languages);
    return o.plain ? run_plain(o) : o.deep ? run_deep(o) : run_shallow(o);
  } catch (CLI::Success const& e) {
    return app.exit(e);
  } catch (CLI::ParseError const& e) {
    std::fprintf(stderr, "translate: %s (translate --help lists the options)\n", e.what());
    return 2;
  } catch (std::exception const& e) {
    std::fflush(stdout);
    std::fprintf(stderr, "translate: %s\n", e.what());
    return 1;
  }
}
