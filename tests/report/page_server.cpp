// SPDX-License-Identifier: BSL-1.0
//
// The server under clients that are slow, rude, many, or gone.
#include <chrono>
#include <list>
#include <stdexcept>
#include <string>

#include "catch.hpp"

#include <pipe/report/page_server.hpp>

#include "web_client.hpp"

namespace {

pp::detail::page_answer echo(std::string_view target) {
  if (target == "/throws") throw std::runtime_error("no answer today");
  if (target == "/large") return {std::string(4'000'000, 'x'), "text/plain"};
  return {std::string(target), "text/plain"};
}

}  // namespace

TEST_CASE("a page is served at the address that url() tells, as nothing else than it is") {
  pp::detail::page_server const server({}, echo);
  CHECK(server.url().starts_with("http://127.0.0.1:"));
  std::string const answer = get(server.url(), "/a?b=c");
  CHECK(answer.starts_with("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 6\r\n"));
  CHECK(answer.find("\r\nX-Content-Type-Options: nosniff\r\n") != answer.npos);
  CHECK(answer.find("Access-Control") == answer.npos);
  CHECK(body(answer) == "/a?b=c");
  CHECK(body(get(server.url(), "/large")).size() == 4'000'000);
  CHECK(get(server.url(), "/", "evil.example").starts_with("HTTP/1.1 403 "));
  CHECK(get(server.url(), "/throws").starts_with("HTTP/1.1 500 "));
  CHECK(body(get(server.url(), "/throws")) == "no answer today");
}

TEST_CASE("a body is neither read nor in the way of the answer") {
  pp::detail::page_server const server({}, echo);
  web_client const client(server.url());
  client.send("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n");
  client.send(std::string(100'000, 'b'));
  std::string const answer = client.receive();
  CHECK(answer.starts_with("HTTP/1.1 405 "));
  CHECK(answer.find("\r\nAllow: GET\r\n") != answer.npos);
  CHECK(answer.ends_with("405 Method Not Allowed\n"));
}

TEST_CASE("clients that say nothing, stop reading or leave keep no other from its answer") {
  pp::detail::page_server const server({}, echo);
  web_client const silent(server.url()), lazy(server.url()), half(server.url());
  lazy.send("GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n");
  half.send("GET / HT");
  for (int n = 0; n < 3; ++n) {
    web_client const gone(server.url());
    gone.send("GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n");
  }
  CHECK(body(get(server.url(), "/a")) == "/a");
  half.send("TP/1.1\r\nHost: localhost\r\n\r\n");
  CHECK(body(half.receive()) == "/");
}

TEST_CASE("more clients than it takes wait until the first have lost its patience") {
  pp::detail::page_server const server({}, echo, std::chrono::milliseconds(500));
  std::list<web_client> silent;
  for (std::size_t n = 0; n < pp::detail::page_server::most_clients; ++n)
    silent.emplace_back(server.url());
  CHECK(body(get(server.url(), "/a")) == "/a");
  CHECK(silent.front().receive() == "");
}

TEST_CASE("a server ends at once, whatever its clients do, and frees its port") {
  pp::page_address where;
  {
    pp::detail::page_server const server({}, echo);
    web_client const silent(server.url()), lazy(server.url());
    lazy.send("GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n");
    where.port = std::stoi(server.url().substr(server.url().rfind(':') + 1));
  }
  pp::detail::page_server const again(where, echo);
  CHECK(body(get(again.url(), "/a")) == "/a");
  try {
    pp::detail::page_server const second(where, echo);
    FAIL("two servers at a port");
  } catch (pp::error const& e) {
    CHECK(std::string(e.what()) == "cannot serve a page at 127.0.0.1:" +
                                       std::to_string(where.port) + ": Address already in use");
  }
}
