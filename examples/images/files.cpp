// SPDX-License-Identifier: BSL-1.0
#include <algorithm>
#include <cstddef>
#include <utility>

#include <pipe/base/error.hpp>
#include <pipe/data/cifar.hpp>
#include <pipe/data/idx.hpp>

#include "task.hpp"

namespace {

/// The images in the middle of 32 x 32 dark cells.
pp::image_set framed(pp::image_set const& small, std::string const& path) {
  if (small.height > side || small.width > side)
    throw pp::data_error(path + ": images of " + std::to_string(small.height) + " x " +
                         std::to_string(small.width) + " cells, at most 32 x 32 are taken");
  if (small.channels != 1)
    throw pp::data_error(path + ": expected one number for each cell, found " +
                         std::to_string(small.channels));
  pp::image_set large = small;
  large.height = large.width = side;
  large.pixels.assign(large.size() * large.image_size(), 0);
  std::size_t const row = std::size_t(small.width) * std::size_t(small.channels);
  int const top = (side - small.height) / 2, left = (side - small.width) / 2;
  for (std::size_t i = 0; i < small.size(); ++i)
    for (int y = 0; y < small.height; ++y)
      std::copy_n(small.pixels.data() + i * small.image_size() + std::size_t(y) * row, row,
                  large.pixels.data() + i * large.image_size() +
                      std::size_t(((top + y) * side + left) * small.channels));
  return large;
}

/// The names of the classes, their numbers where the files have none.
std::vector<std::string> names_of(pp::image_set const& set, int most,
                                  std::vector<std::string> const& paths) {
  for (int const label : set.labels)
    if (label < 0 || label >= most)
      throw pp::data_error(paths.front() + " and others: label " + std::to_string(label) +
                           ", classes are numbered from 0 to " + std::to_string(most - 1));
  std::vector<std::string> names = set.classes;
  for (int i = int(names.size()); i < most; ++i) names.push_back(std::to_string(i));
  return names;
}

}  // namespace

image_task mnist_of(std::vector<std::string> const& files) {
  image_task task;
  task.training = framed(pp::read_mnist(files.at(0), files.at(1)), files[0]);
  task.test = framed(pp::read_mnist(files.at(2), files.at(3)), files[2]);
  task.class_names = names_of(task.training, 10, files);
  names_of(task.test, 10, files);
  task.words = std::to_string(task.training.size()) + " pictures of " + files[0] + ", " +
               std::to_string(task.test.size()) + " of " + files[2] + " are kept back";
  return task;
}

image_task cifar_of(std::vector<std::string> const& files) {
  image_task task;
  task.training = pp::read_cifar10({files.begin(), files.end() - 1});
  task.test = pp::read_cifar10({files.back()});
  task.class_names = names_of(task.training, 10, files);
  task.words = std::to_string(task.training.size()) + " pictures of CIFAR-10, " +
               std::to_string(task.test.size()) + " of " + files.back() + " are kept back";
  return task;
}
