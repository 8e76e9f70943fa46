// SPDX-License-Identifier: BSL-1.0
//
// A server of a few pages to the browser of the person who runs the program: HTTP on a thread of
// its own, which sleeps until a request comes and yields to all other work. Whatever a client
// sends, or does not send, its memory and time are bounded:
//
//     connections at a time               8; the system keeps as many more waiting
//     a request with its headers          8 KiB, then 431
//     time for a request to come          5 s, then the connection is closed
//     time for its answer to be taken     5 s, likewise
//     between two connections             20 ms
//     methods                             GET, else 405
//     hosts that the browser asked for    addresses in numbers, localhost, given names, else 403
//
// An answer is made by a function of the program, is held in memory until it is sent, and ends the
// connection.
#pragma once
#ifndef PIPE_SHOWS_WARNINGS
#pragma GCC system_header
#endif

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <pipe/base/error.hpp>
#include <pipe/base/thread.hpp>
#include <pipe/report/background_thread.hpp>
#include <pipe/report/http_request.hpp>
#include <pipe/report/page_address.hpp>
#include <pipe/transport/tcp/tcp_socket.hpp>

namespace pp {

namespace detail {

/// An answer to a request.
struct page_answer {
  std::string text;
  char const* type = "text/html; charset=utf-8";
  int status = 200;
};

/// The server. It runs until it is destroyed, and calls answer(target) on its own thread for each
/// request. It lets `pause` pass between two answers, so that no client keeps the server busy.
class page_server {
 public:
  using answer = std::function<page_answer(std::string_view target)>;

  static constexpr std::size_t most_clients = 8;  ///< the system keeps others waiting
  static constexpr std::chrono::milliseconds pause{20};

  /// patience: for a request to come, and for its answer to be taken
  /// throws: pp::error if the server cannot listen at the address, or if there is no thread
  page_server(page_address const& where, answer ask,
              std::chrono::milliseconds patience = std::chrono::seconds(5))
      : names_(where.names), ask_(std::move(ask)), patience_(patience) {
    std::string reason;
    heap_array<tcp_address> const found = tcp_address::of(
        where.host.c_str(), where.port, time_limit(std::chrono::minutes(1)), reason);
    if (found.size() > 0) {
      listener_ = tcp_socket::listen_at(found[0], int(most_clients));
      if (!listener_.is_open()) reason = std::strerror(errno);
    }
    wake_ = tcp_socket(listener_.is_open() ? ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC) : -1);
    if (listener_.is_open() && !wake_.is_open()) reason = std::strerror(errno);
    if (!wake_.is_open())
      throw error("cannot serve a page at " + where.host + ":" + std::to_string(where.port) + ": " +
                  reason);
    url_ = "http://" + listener_.own_address().text() + "/";
    thread_.emplace([](void* self) { static_cast<page_server*>(self)->serve(); }, this);
  }
  page_server(page_server const&) = delete;
  page_server& operator=(page_server const&) = delete;
  /// Ends the thread; answers that are on their way are cut off.
  ~page_server() {
    std::uint64_t const one = 1;
    uninterrupted([&] { return ::write(wake_.descriptor(), &one, sizeof one); });
    thread_.reset();
  }

  /// "http://127.0.0.1:8080/"
  std::string const& url() const { return url_; }

 private:
  using clock = std::chrono::steady_clock;

  /// A connection: receives a request, then sends the answer, then waits for the client to close.
  /// If this side closed first with bytes left to read, the system would discard the part of the
  /// answer that the client has not read yet.
  struct client {
    // In this order; and to `done` when the time is over or the client has gone.
    enum class doing { receives, sends, closes, done };

    tcp_socket socket;
    clock::time_point deadline{};
    doing now = doing::receives;
    std::string bytes;  // of the request, then of the answer
    long sent = 0;
  };

  /// The thread's work. After an exception, such as a lack of memory, the present clients are
  /// dropped, and the server goes on.
  void serve() noexcept {
    while (true) {
      try {
        if (!serve_once()) return;
      } catch (...) {
        clients_.clear();
        sleep_for(std::chrono::nanoseconds(pause).count());
      }
    }
  }

  /// Waits until there is something to do and does it. False if the server is to end.
  bool serve_once() {
    clock::time_point now = clock::now();
    bool const accepts = clients_.size() < most_clients && now >= next_accept_;
    std::vector<pollfd> of{{wake_.descriptor(), POLLIN, 0}};
    of.push_back({accepts ? listener_.descriptor() : -1, POLLIN, 0});
    auto until = clock::time_point::max();
    if (!accepts && clients_.size() < most_clients) until = next_accept_;
    for (client const& c : clients_) {
      of.push_back(
          {c.socket.descriptor(), short(c.now == client::doing::sends ? POLLOUT : POLLIN), 0});
      if (c.deadline < until) until = c.deadline;
    }
    int wait = -1;
    if (until != clock::time_point::max()) {
      auto const left = std::chrono::ceil<std::chrono::milliseconds>(until - now).count();
      wait = left > 0 ? int(left) : 0;
    }
    if (::poll(of.data(), nfds_t(of.size()), wait) < 0 && errno != EINTR)
      sleep_for(std::chrono::nanoseconds(pause).count());
    if (of[0].revents != 0) return false;
    now = clock::now();
    for (std::size_t i = 0; i < clients_.size(); ++i) {
      if (of[i + 2].revents != 0) go_on(clients_[i], now);
      if (now >= clients_[i].deadline) clients_[i].now = client::doing::done;
    }
    std::erase_if(clients_, [](client const& c) { return c.now == client::doing::done; });
    if (of[1].revents != 0) accept(now);
    return true;
  }

  /// Takes one client, which has `patience` to send its request.
  void accept(clock::time_point now) {
    next_accept_ = now + pause;  // also after a failure, for which poll() would not wait
    tcp_address from;
    client c;
    c.socket = listener_.accept(from);
    c.deadline = now + patience_;
    if (c.socket.is_open()) clients_.push_back(std::move(c));
  }

  /// Moves the bytes that can be moved without waiting.
  void go_on(client& c, clock::time_point now) {
    using enum client::doing;
    char received[2048];
    long count = 0;
    moved const what = c.now == sends ? c.socket.write(c.bytes.data() + c.sent,
                                                       long(c.bytes.size()) - c.sent, c.sent)
                                      : c.socket.read(received, long(sizeof received), count);
    if (what == moved::closed || what == moved::failed) c.now = done;
    if (what != moved::some) return;
    if (c.now == receives) {
      c.bytes.append(received, std::size_t(count));
      http_request const r = read_http_request(c.bytes, names_);
      if (r.status == 0) return;
      c.bytes = answer_to(r);
      c.now = sends;
      c.deadline = now + patience_;
    } else if (c.now == sends && c.sent == long(c.bytes.size())) {
      ::shutdown(c.socket.descriptor(), SHUT_WR);
      c.bytes = std::string();
      c.now = closes;
    }
  }

  /// The bytes to send. An exception from the function that answers is the text of the answer.
  std::string answer_to(http_request const& r) const {
    page_answer a{"", "text/plain; charset=utf-8", r.status};
    if (r.status == 200) try {
        a = ask_(r.target);
      } catch (std::exception const& e) {
        a = {e.what(), a.type, 500};
      }
    if (a.text.empty()) a.text = std::string(http_status_text(a.status)) + "\n";
    return http_answer(a.status, a.type, a.text);
  }

  std::vector<std::string> names_;
  answer ask_;
  std::chrono::milliseconds patience_;
  std::string url_;
  tcp_socket listener_, wake_;
  std::vector<client> clients_;  // of the thread
  clock::time_point next_accept_{};
  std::optional<background_thread> thread_;
};

}  // namespace detail

}  // namespace pp
