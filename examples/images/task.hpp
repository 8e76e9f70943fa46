// SPDX-License-Identifier: BSL-1.0
//
// Tasks: pictures of 32 x 32 cells and their classes.
#pragma once

#include <string>
#include <vector>

#include <pipe/data/image_set.hpp>

inline constexpr int side = 32;

/// Pictures to learn from and pictures to be judged by.
struct image_task {
  std::string words;                      ///< what it is, for a reader
  std::vector<std::string> class_names;   ///< by label
  std::vector<std::string> test_sources;  ///< where a picture of the test is from; may be empty
  pp::image_set training, test;
};

/// Letters and digits of all fonts below the folders that have them all, bright on dark: capitals
/// are 18 cells high, the baseline is row 24.
///
/// Every eighth family is for the test, with all its styles. Families that look alike, as metric
/// copies and versions of one font do, count as one, as do those whose name continues another's.
/// Fonts of which every letter is the same are taken once.
///
/// law:    training and test share no family; the split depends on the fonts' names and looks alone
/// throws: pp::error if there are fewer than 16 families
image_task glyphs_of(std::vector<std::string> const& folders);

/// The folders in which a desktop's fonts are.
std::vector<std::string> font_folders();

/// Files of MNIST and its relatives: images and labels to learn from, images and labels of the
/// test.
///
/// throws: pp::data_error, also for images that are larger than 32 x 32
image_task mnist_of(std::vector<std::string> const& files);

/// Binary files of CIFAR-10, of which the last is the test.
///
/// throws: pp::data_error
image_task cifar_of(std::vector<std::string> const& files);
