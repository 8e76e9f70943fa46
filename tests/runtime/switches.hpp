// SPDX-License-Identifier: BSL-1.0
//
// What the system says of this process's threads, for tests of idle ones.
#pragma once

#include <filesystem>
#include <fstream>
#include <map>
#include <string>

/// How often each thread of this process has given up its core, by itself or not.
inline std::map<std::string, long> switches() {
  std::map<std::string, long> all;
  for (auto const& entry : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream status(entry.path() / "status");
    std::string word;
    long number = 0, sum = 0;
    while (status >> word)
      if (word.find("ctxt_switches:") != std::string::npos && status >> number) sum += number;
    all[entry.path().filename()] = sum;
  }
  return all;
}
