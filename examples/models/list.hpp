// SPDX-License-Identifier: BSL-1.0
//
// The models of this folder as a list. Each family is added in a file of its own, which plans it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <pipe/report/text_table.hpp>
#include <pipe/weights/weights.hpp>

/// A model as a program sees it.
struct model {
  std::string name;
  std::function<std::vector<std::string>()> row;  ///< of the table of all
  std::function<std::string()> explain;
  std::function<pp::load_report(std::string const& path)> compare;  ///< with a file of weights
};

/// All models, by family.
std::vector<model>& all_models();
