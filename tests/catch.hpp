// SPDX-License-Identifier: BSL-1.0
//
// Catch2 3 or 2, whichever is installed, under the names that Catch2 2 has for its matchers and
// Approx. A program with a main of its own defines CATCH_CONFIG_RUNNER first.
#pragma once

#if __has_include(<catch2/catch_test_macros.hpp>)

#include <string>

#include <catch2/catch_approx.hpp>
#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_predicate.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

using Catch::Approx;

namespace Catch {
namespace Matchers {
inline StringContainsMatcher Contains(std::string const& text) { return ContainsSubstring(text); }
}  // namespace Matchers
using Matchers::Contains, Matchers::EndsWith, Matchers::Equals, Matchers::StartsWith;
}  // namespace Catch

#ifdef CATCH_CONFIG_RUNNER
#include <catch2/catch_session.hpp>
#include <catch2/catch_test_case_info.hpp>
#include <catch2/reporters/catch_reporter_event_listener.hpp>
#include <catch2/reporters/catch_reporter_registrars.hpp>

namespace Catch {
struct TestEventListenerBase : EventListenerBase {
  using EventListenerBase::EventListenerBase;
};
}  // namespace Catch
#endif

#else
#include <catch2/catch.hpp>
#endif
