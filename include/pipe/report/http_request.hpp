// SPDX-License-Identifier: BSL-1.0
//
// The part of HTTP/1.1 that a page for one reader needs: GET requests without a body. A request is
// taken or refused whole; it is never repaired.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <arpa/inet.h>

namespace pp::detail {

/// A request as far as it has been received.
///
/// status: 0 while it is incomplete, 200 for one to be answered, else the error to answer with
struct http_request {
  static constexpr std::size_t longest = 8192;  ///< bytes with all headers

  int status = 0;
  std::string target;  ///< path and query, as they were sent
};

/// Whether two texts are equal but for the case of ASCII letters.
inline bool same_without_case(std::string_view a, std::string_view b) {
  auto const lower = [](char c) { return c >= 'A' && c <= 'Z' ? char(c + 32) : c; };
  bool same = a.size() == b.size();
  for (std::size_t i = 0; same && i < a.size(); ++i) same = lower(a[i]) == lower(b[i]);
  return same;
}

/// Whether a Host header, with or without a port, is one that no web site can bring about: an
/// address in numbers, `localhost`, or one of `names`. A site's own name may be made to lead to
/// this machine (DNS rebinding), and its scripts would read the answers.
inline bool is_own_host(std::string_view host, std::vector<std::string> const& names) {
  std::size_t const end = host.starts_with('[') ? host.find(']') : host.rfind(':');
  if (host.starts_with('[')) {
    if (end == host.npos) return false;
    std::string const six(host.substr(1, end - 1));
    host.remove_prefix(end + 1);
    in6_addr number{};
    return (host.empty() || host.starts_with(':')) &&
           inet_pton(AF_INET6, six.c_str(), &number) == 1;
  }
  std::string const name(host.substr(0, end));
  in_addr number{};
  if (inet_pton(AF_INET, name.c_str(), &number) == 1 || same_without_case(name, "localhost"))
    return true;
  for (std::string const& own : names)
    if (same_without_case(name, own)) return true;
  return false;
}

/// Reads a request of which `bytes` have been received. A path in full and a host that is_own_host
/// are demanded; other headers must be well-formed and are otherwise ignored.
///
/// 400: no request of HTTP/1, or not exactly one host; 403: another host; 405: not GET; 431: longer
///      than http_request::longest
/// law: a request that was refused or complete stays so, whatever bytes follow
inline http_request read_http_request(std::string_view bytes,
                                      std::vector<std::string> const& names) {
  std::size_t const end = bytes.substr(0, http_request::longest).find("\r\n\r\n");
  if (end == bytes.npos) return {bytes.size() >= http_request::longest ? 431 : 0, {}};
  std::string_view head = bytes.substr(0, end + 2);
  auto const line = [&] {
    std::size_t const size = head.find("\r\n");
    std::string_view const first = head.substr(0, size);
    head.remove_prefix(size + 2);
    return first;
  };
  std::string_view const first = line();
  std::size_t const space = first.find(' '), last = first.rfind(' ');
  if (space == first.npos || last == space || !first.substr(last + 1).starts_with("HTTP/1."))
    return {400, {}};
  if (first.substr(0, space) != "GET") return {405, {}};
  std::string_view const target = first.substr(space + 1, last - space - 1);
  for (char const c : target)
    if (c <= ' ' || c > '~') return {400, {}};
  if (!target.starts_with('/')) return {400, {}};
  int hosts = 0;
  bool is_own = false;
  while (!head.empty()) {
    std::string_view const header = line();
    std::size_t const colon = header.find(':');
    if (colon == header.npos || colon == 0) return {400, {}};
    if (!same_without_case(header.substr(0, colon), "host")) continue;
    std::string_view value = header.substr(colon + 1);
    while (!value.empty() && (value.front() == ' ' || value.front() == '\t'))
      value.remove_prefix(1);
    while (!value.empty() && (value.back() == ' ' || value.back() == '\t')) value.remove_suffix(1);
    ++hosts;
    is_own = is_own_host(value, names);
  }
  if (hosts != 1) return {400, {}};
  return {is_own ? 200 : 403, is_own ? std::string(target) : ""};
}

/// The words of a status.
constexpr char const* http_status_text(int status) {
  return status == 200   ? "200 OK"
         : status == 403 ? "403 Forbidden"
         : status == 404 ? "404 Not Found"
         : status == 405 ? "405 Method Not Allowed"
         : status == 431 ? "431 Request Header Fields Too Large"
         : status == 500 ? "500 Internal Server Error"
                         : "400 Bad Request";
}

/// A whole answer, after which the connection is closed. The browser neither stores it, nor shows
/// it in a frame or to scripts of another site, nor takes it for another type.
inline std::string http_answer(int status, std::string_view type, std::string_view body) {
  std::string text = std::string("HTTP/1.1 ") + http_status_text(status) + "\r\n";
  text.append("Content-Type: ").append(type).append("\r\nContent-Length: ");
  text += std::to_string(body.size());
  if (status == 405) text += "\r\nAllow: GET";
  text +=
      "\r\nConnection: close\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n"
      "X-Frame-Options: DENY\r\nReferrer-Policy: no-referrer\r\n"
      "Cross-Origin-Resource-Policy: same-origin\r\n\r\n";
  return text.append(body);
}

}  // namespace pp::detail
