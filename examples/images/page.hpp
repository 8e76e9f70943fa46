// SPDX-License-Identifier: BSL-1.0
//
// The wrong answers of a network: a page of pictures.
#pragma once

#include <string>
#include <vector>

#include "train.hpp"

/// Two classes that a network takes for each other.
struct confused_pair {
  int is = 0, says = 0, count = 0;
};

/// The share of wrong answers, from 0 to 1.
double error_of(image_task const& task, trained const& t);

/// Classes that are taken for others, the most frequent pairs first.
std::vector<confused_pair> confused_pairs(image_task const& task, trained const& t);

/// An HTML page without scripts and other files: the error by class, the pairs, and the pictures
/// that got a wrong answer, the most certain answers first.
std::string page_of(image_task const& task, trained const& t, std::string const& command);
