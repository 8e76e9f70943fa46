// SPDX-License-Identifier: BSL-1.0
//
// The runner of tests on a GPU. It names each test before it starts, line by line, so that the
// output of one that hangs ends with its name; and ends without destructors of statics, which may
// own memory of a context that is gone (managed_memory.cpp).
#define CATCH_CONFIG_RUNNER
#include "catch.hpp"

#include <cstdio>
#include <cstdlib>

namespace {

struct names : Catch::TestEventListenerBase {
  using TestEventListenerBase::TestEventListenerBase;
  void testCaseStarting(Catch::TestCaseInfo const& test) override {
    std::printf("%s\n", test.name.c_str());
  }
};
CATCH_REGISTER_LISTENER(names)

}  // namespace

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);
  int const failures = Catch::Session().run(argc, argv);
  std::fflush(nullptr);
  std::_Exit(failures);
}
