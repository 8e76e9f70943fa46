// SPDX-License-Identifier: BSL-1.0
//
// Requests: which are answered, which are refused, and that nothing a client sends is anything
// else.
#include <random>
#include <string>
#include <vector>

#include "catch.hpp"

#include <pipe/report/http_request.hpp>

namespace {

using pp::detail::is_own_host;

std::vector<std::string> const names = {"trainer.lan"};

pp::detail::http_request read(std::string const& bytes) {
  return pp::detail::read_http_request(bytes, names);
}
std::string const good = "GET /data?points=3 HTTP/1.1\r\nAccept: */*\r\nhOsT: 127.0.0.1:80\r\n\r\n";

}  // namespace

TEST_CASE("a request is complete with its empty line, and no byte sooner") {
  for (std::size_t n = 0; n < good.size(); ++n) CHECK(read(good.substr(0, n)).status == 0);
  CHECK(read(good).status == 200);
  CHECK(read(good).target == "/data?points=3");
  CHECK(read(good + "more").target == "/data?points=3");
}

TEST_CASE("hosts that no web site can bring about") {
  for (char const* host : {"127.0.0.1", "127.0.0.1:8080", "10.1.2.3", "localhost", "LocalHost:1",
                           "[::1]", "[::1]:8080", "trainer.lan", "TRAINER.lan:80"}) {
    CAPTURE(host);
    CHECK(is_own_host(host, names));
  }
  for (char const* host :
       {"", ":80", "evil.example", "127.0.0.1.evil.example", "localhost.evil.example", "[::1",
        "[::1]evil", "[evil]", "127.0.0.1evil", "trainer.lan.evil", "::1", "0x7f.1"}) {
    CAPTURE(host);
    CHECK_FALSE(is_own_host(host, names));
  }
}

TEST_CASE("what is not a GET of a path is refused with the status that says why") {
  auto const status = [](std::string const& first, std::string const& headers) {
    return read(first + "\r\n" + headers + "\r\n").status;
  };
  std::string const host = "Host: localhost\r\n";
  CHECK(status("GET / HTTP/1.1", host) == 200);
  CHECK(status("GET / HTTP/1.0", host) == 200);
  CHECK(status("POST / HTTP/1.1", host) == 405);
  CHECK(status("get / HTTP/1.1", host) == 405);
  CHECK(status("GET / HTTP/2", host) == 400);
  CHECK(status("GET /", host) == 400);
  CHECK(status("", host) == 400);
  CHECK(status("GET http://localhost/ HTTP/1.1", host) == 400);
  CHECK(status("GET /a b HTTP/1.1", host) == 400);
  CHECK(status("GET /\x7f HTTP/1.1", host) == 400);
  CHECK(status("GET / HTTP/1.1", "") == 400);
  CHECK(status("GET / HTTP/1.1", host + host) == 400);
  CHECK(status("GET / HTTP/1.1", host + "no colon\r\n") == 400);
  CHECK(status("GET / HTTP/1.1", "Host: evil.example\r\n") == 403);
  CHECK(read(std::string(8191, 'a')).status == 0);
  CHECK(read(std::string(8192, 'a')).status == 431);
  CHECK(read(std::string(9000, 'a') + good).status == 431);
}

TEST_CASE("a damaged request has a status, and its target is printable") {
  std::mt19937 random(1);
  for (int n = 0; n < 20000; ++n) {
    std::string bytes = good;
    for (int k = int(random() % 4); k >= 0; --k) {
      std::size_t const at = random() % bytes.size();
      if (random() % 3 == 0)
        bytes.erase(at, random() % 9);
      else
        bytes[at] = char(random());
      if (bytes.empty()) bytes = "x";
    }
    auto const r = read(bytes);
    bool const is_known = r.status == 0 || r.status == 200 || r.status == 400 || r.status == 403 ||
                          r.status == 405 || r.status == 431;
    REQUIRE(is_known);
    REQUIRE((r.status == 200) == r.target.starts_with('/'));
    for (char const c : r.target) REQUIRE((c > ' ' && c <= '~'));
  }
}
