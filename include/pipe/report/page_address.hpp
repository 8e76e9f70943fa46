// SPDX-License-Identifier: BSL-1.0
//
// The address of a page that a program serves: by default a free port of this machine's loopback
// device, which no other machine reaches.
#pragma once

#include <string>
#include <vector>

namespace pp {

/// The address of a page. At an address that is no loopback address, every machine that reaches
/// this machine can read the page: there is no password.
struct page_address {
  int port = 0;                    ///< 0: a free port
  std::string host = "127.0.0.1";  ///< address in numbers or name of this machine
  /// Further names under which browsers may ask for the page; addresses in numbers and `localhost`
  /// always may.
  std::vector<std::string> names = {};
};

}  // namespace pp
