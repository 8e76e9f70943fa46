// SPDX-License-Identifier: BSL-1.0
//
// Receivers of reports that a program may take as they are: callbacks of a trainer's settings.
#pragma once

#include <cstdlib>
#include <string_view>

#include <sys/uio.h>
#include <unistd.h>

namespace pp {

/// Writes a report to the standard error, as one piece, with the end of a line.
[[gnu::cold]] inline void print_report(std::string_view report) {
  char end[] = "\n";
  iovec const parts[] = {{const_cast<char*>(report.data()), report.size()}, {end, 1}};
  [[maybe_unused]] auto const written = writev(STDERR_FILENO, parts, 2);
}

/// Writes a report as print_report does, and ends the process by std::abort(): with a core file, if
/// the system keeps them.
[[noreturn, gnu::cold]] inline void abort_with_report(std::string_view report) {
  print_report(report);
  std::abort();
}

}  // namespace pp
