// SPDX-License-Identifier: BSL-1.0
//
// The file of metrics: complete after each row, and a clear word when it cannot be written.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include <unistd.h>

#include <catch2/catch.hpp>

#include <pipe/train/metrics.hpp>

namespace {

std::string content(std::string const& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

std::string message(std::string const& path) {
  try {
    pp::metrics_file metrics(path);
    for (int i = 0; i < 10; ++i) metrics.write({});
  } catch (pp::error const& e) {
    return e.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("a row per step, readable at once") {
  std::string const path =
      (std::filesystem::temp_directory_path() / ("pipe-metrics-" + std::to_string(getpid()))).string();
  {
    pp::metrics_file metrics(path);
    std::string const heading = "step,loss,bits_per_byte,learning_rate,gradient_norm,tokens_per_second,bubble\n";
    CHECK(content(path) == heading);
    metrics.write({1, 1.5, 2.25, 3e-4, 0.5, 20000, 0.25});
    CHECK(content(path) == heading + "1,1.5,2.25,0.0003,0.5,20000,0.25\n");
    metrics.write({2, 1.25, 2, 3e-4, 0.5, 20000, 0.25});
    CHECK(content(path) == heading + "1,1.5,2.25,0.0003,0.5,20000,0.25\n2,1.25,2,0.0003,0.5,20000,0.25\n");
  }
  std::filesystem::remove(path);
}

TEST_CASE("a file that cannot be written is named with the reason") {
  std::string const folder = std::filesystem::temp_directory_path().string();
  CHECK(message(folder + "/pipe-no-such-folder/m.csv") ==
        "cannot write metrics to '" + folder + "/pipe-no-such-folder/m.csv': No such file or directory");
  CHECK(message(folder) == "cannot write metrics to '" + folder + "': Is a directory");
  if (std::filesystem::exists("/dev/full"))
    CHECK(message("/dev/full") == "cannot write metrics to '/dev/full': No space left on device");
}
