// SPDX-License-Identifier: BSL-1.0
//
// The page of an experiment: one file without scripts, in which nothing is loaded from elsewhere.
#pragma once

#include <string>
#include <vector>

#include "summary.hpp"

/// What the page says beside its numbers.
struct page_words {
  std::string text;           ///< what was learned
  std::string command;        ///< that made the page
  long steps, runs, planned;  ///< of a run; that have ended; that were asked for
  long seeds;
};

/// For each optimizer two charts, training loss by tokens at the best rates and final loss by rate;
/// a table of the best rates and one of all. The page is well-formed as XML, too.
std::string page_of(page_words const&, std::vector<summary> const&);
