// SPDX-License-Identifier: BSL-1.0
//
// A client of HTTP that may be slow or rude.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

/// A connection to a server at http://127.0.0.1:PORT/.
class web_client {
 public:
  explicit web_client(std::string const& url) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    to.sin_port = htons(std::uint16_t(std::stoi(url.substr(url.rfind(':') + 1))));
    if (::connect(socket_, reinterpret_cast<sockaddr*>(&to), sizeof to) != 0)
      throw std::runtime_error("no server at " + url);
  }
  web_client(web_client const&) = delete;
  web_client& operator=(web_client const&) = delete;
  ~web_client() { ::close(socket_); }

  /// False if the server has gone.
  bool send(std::string_view bytes) const {
    return ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL) == long(bytes.size());
  }
  /// All that comes until the server closes.
  std::string receive() const {
    std::string all;
    char some[4096];
    for (long n; (n = ::recv(socket_, some, sizeof some, 0)) > 0;) all.append(some, std::size_t(n));
    return all;
  }

 private:
  int socket_;
};

inline std::string get(std::string const& url, std::string const& target,
                       std::string const& host = "localhost") {
  web_client const client(url);
  client.send("GET " + target + " HTTP/1.1\r\nHost: " + host + "\r\n\r\n");
  return client.receive();
}
/// What follows the headers.
inline std::string body(std::string const& answer) {
  return answer.substr(answer.find("\r\n\r\n") + 4);
}
