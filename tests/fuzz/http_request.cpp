// SPDX-License-Identifier: BSL-1.0
//
// Any bytes as a request for the page of a run, as they come: once it is refused or complete it
// stays so, and only one with the right host, and a path of printable characters, is answered.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <pipe/report/http_request.hpp>

#include "fuzz.hpp"

namespace {

using pp::detail::http_request;

std::vector<std::string> const names{"here", "node7.cluster"};

void answer(http_request const& r, std::string_view bytes) {
  std::string const text = pp::detail::http_answer(r.status, "text/plain", "body");
  law(text.starts_with(std::string("HTTP/1.1 ") + std::to_string(r.status) + ' '));
  law(text.ends_with("\r\n\r\nbody"));
  if (r.status != 200) return law(r.target.empty());
  law(r.target[0] == '/' && bytes.starts_with("GET " + r.target + " HTTP/1."));
  law(std::all_of(r.target.begin(), r.target.end(), [](char c) { return c > ' ' && c <= '~'; }));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size);
extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  std::string_view const bytes(reinterpret_cast<char const*>(data), size);
  http_request const whole = pp::detail::read_http_request(bytes, names);
  bool is_decided = false;
  for (std::size_t end = 0; end <= size; end += 1 + size / 16) {
    http_request const part = pp::detail::read_http_request(bytes.substr(0, end), names);
    law(!is_decided || part.status != 0);
    is_decided = part.status != 0;
    law(!is_decided || (part.status == whole.status && part.target == whole.target));
  }
  if (whole.status != 0) answer(whole, bytes);
  std::string const more = std::string(bytes) + std::string(http_request::longest, 'x');
  law(pp::detail::read_http_request(more, names).status ==
      (whole.status != 0 ? whole.status : 431));
  return 0;
}
