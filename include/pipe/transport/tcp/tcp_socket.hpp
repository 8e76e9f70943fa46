// SPDX-License-Identifier: BSL-1.0
//
// Sockets of TCP that never block: calls wait by poll(), with a deadline. The system notices within
// seconds that the machine of a peer is gone, whether or not anything is being sent to the peer.
#pragma once

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <pipe/base/heap_array.hpp>
#include <pipe/base/sentence.hpp>
#include <pipe/base/thread.hpp>
#include <pipe/base/uninterrupted.hpp>

namespace pp::detail {

/// A point in time, and the time that is left until then.
class time_limit {
 public:
  using clock = std::chrono::steady_clock;
  explicit time_limit(std::chrono::milliseconds from_now) : end_(clock::now() + from_now) {}

  /// Time passes also while the process is stopped.
  bool is_over() const { return clock::now() >= end_; }
  /// Milliseconds that are left, at most `most`, as poll() takes them.
  int left(int most) const {
    auto const left = std::chrono::ceil<std::chrono::milliseconds>(end_ - clock::now()).count();
    return left <= 0 ? 0 : left < most ? int(left) : most;
  }
  /// The limit that is over first.
  time_limit operator&(time_limit const& other) const { return end_ < other.end_ ? *this : other; }
  /// A limit that is over later by this time.
  time_limit operator+(std::chrono::milliseconds time) const {
    time_limit later = *this;
    later.end_ += time;
    return later;
  }

 private:
  clock::time_point end_;
};

/// An address of TCP, by number: a result of getaddrinfo().
struct tcp_address {
  sockaddr_storage bytes{};
  socklen_t size = 0;

  sockaddr const* get() const { return reinterpret_cast<sockaddr const*>(&bytes); }
  /// "10.0.0.7:29500", "[::1]:29500"
  [[gnu::cold]] std::string text() const {
    char host[NI_MAXHOST]{}, port[NI_MAXSERV]{};
    if (getnameinfo(get(), size, host, sizeof(host), port, sizeof(port),
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0)
      return "an unknown address";
    bool const is_six = bytes.ss_family == AF_INET6;
    return std::string(is_six ? "[" : "") + host + (is_six ? "]:" : ":") + port;
  }
  /// "10.0.0.7", "::1"
  [[gnu::cold]] std::string host() const {
    char host[NI_MAXHOST]{};
    if (getnameinfo(get(), size, host, sizeof(host), nullptr, 0, NI_NUMERICHOST) != 0) return {};
    return host;
  }
  /// Whether only this machine reaches the address: 127.x.x.x, ::1.
  [[gnu::cold]] bool is_loopback() const {
    if (bytes.ss_family == AF_INET)
      return ntohl(reinterpret_cast<sockaddr_in const&>(bytes).sin_addr.s_addr) >> 24 == 127;
    if (bytes.ss_family != AF_INET6) return false;
    in6_addr const& six = reinterpret_cast<sockaddr_in6 const&>(bytes).sin6_addr;
    return IN6_IS_ADDR_LOOPBACK(&six) || (IN6_IS_ADDR_V4MAPPED(&six) && six.s6_addr[12] == 127);
  }
  /// The address that a text spells; none if the text is a name, which is not looked up.
  [[gnu::cold]] static heap_array<tcp_address> of_number(char const* number, int port) {
    return looked_up(number, port, AI_NUMERICHOST).addresses;
  }
  /// The addresses of a name, in the system's order; none if the name has none, with the reason.
  /// The system may take any time to look a name up, so a thread asks it, and is left to itself at
  /// the limit.
  ///
  /// reason: changed only if there are no addresses
  [[gnu::cold]] static heap_array<tcp_address> of(char const* name, int port, time_limit limit,
                                                  std::string& reason) {
    if (heap_array<tcp_address> found = of_number(name, port); found.size() > 0) return found;
    struct question {
      std::string name;
      int port;
      answer found;
      std::atomic<bool> is_answered{false};
      std::atomic<int> users{2};
      void leave() {
        if (--users == 0) delete this;
      }
    };
    auto* const asked = new question{name, port, {}};
    auto const ask = [](void* self, int) {
      auto* const q = static_cast<question*>(self);
      q->found = looked_up(q->name.c_str(), q->port, 0);
      q->is_answered = true;
      q->leave();
    };
    try {
      thread(ask, asked, 0).detach();
    } catch (std::system_error const&) {
      ask(asked, 0);  // the system has no thread to give
    }
    while (!asked->is_answered && !limit.is_over()) sleep_for(200'000);
    answer found;
    if (asked->is_answered)
      found = std::move(asked->found);
    else
      found.reason = "its name is still being looked up";
    asked->leave();
    if (found.addresses.size() == 0) reason = found.reason;
    return std::move(found.addresses);
  }

 private:
  struct answer {
    heap_array<tcp_address> addresses;
    std::string reason;
  };
  [[gnu::cold]] static answer looked_up(char const* name, int port, int more_flags) {
    addrinfo hints{}, *found = nullptr;
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_NUMERICSERV | more_flags;
    int const error = getaddrinfo(name, std::to_string(port).c_str(), &hints, &found);
    if (error != 0) return {{}, error == EAI_SYSTEM ? std::strerror(errno) : gai_strerror(error)};
    long count = 0;
    for (addrinfo const* a = found; a != nullptr; a = a->ai_next) ++count;
    answer all{heap_array<tcp_address>(count), {}};
    count = 0;
    for (addrinfo const* a = found; a != nullptr; a = a->ai_next) {
      std::memcpy(&all.addresses[count].bytes, a->ai_addr, a->ai_addrlen);
      all.addresses[count++].size = a->ai_addrlen;
    }
    freeaddrinfo(found);
    return all;
  }
};

/// The result of a call that moves bytes without waiting.
///
/// some: at least one byte. none_now: the call would have to wait. closed: the peer has ended the
/// connection. failed: errno says why
enum class moved { some, none_now, closed, failed };

/// A socket, which the destructor closes. Calls do not wait, and set errno as calls of the system
/// do.
class tcp_socket {
 public:
  tcp_socket() = default;
  /// Takes over a descriptor; any kind that close() closes, -1: none.
  explicit tcp_socket(int descriptor) : descriptor_(descriptor) {}
  tcp_socket(tcp_socket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  tcp_socket& operator=(tcp_socket&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~tcp_socket() { close(); }

  bool is_open() const { return descriptor_ >= 0; }
  int descriptor() const { return descriptor_; }
  void close() {
    if (is_open()) ::close(std::exchange(descriptor_, -1));
  }

  /// Listens at this address alone, and not at all addresses of the machine.
  ///
  /// waiting: connections that the system keeps until they are accepted
  /// returns: a socket that is not open if the system refuses; errno says why.
  [[gnu::cold]] static tcp_socket listen_at(tcp_address const& a, int waiting) {
    tcp_socket s(make(a));
    int const on = 1;  // the connections of an earlier job do not keep the port from this one
    if (s.is_open() &&
        (setsockopt(s.descriptor_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) != 0 ||
         bind(s.descriptor_, a.get(), a.size) != 0 || listen(s.descriptor_, waiting) != 0))
      s.close_and_keep_error();
    return s;
  }
  /// Of this side of the socket.
  [[gnu::cold]] tcp_address own_address() const {
    tcp_address a;
    a.size = sizeof(a.bytes);
    getsockname(descriptor_, reinterpret_cast<sockaddr*>(&a.bytes), &a.size);
    return a;
  }
  [[gnu::cold]] int port() const {
    tcp_address const a = own_address();
    return ntohs(a.bytes.ss_family == AF_INET6
                     ? reinterpret_cast<sockaddr_in6 const&>(a.bytes).sin6_port
                     : reinterpret_cast<sockaddr_in const&>(a.bytes).sin_port);
  }
  /// The next connection; not open if there is none now.
  [[gnu::cold]] tcp_socket accept(tcp_address& from) const {
    from.size = sizeof(from.bytes);
    tcp_socket s(uninterrupted([&] {
      return ::accept4(descriptor_, reinterpret_cast<sockaddr*>(&from.bytes), &from.size,
                       SOCK_NONBLOCK | SOCK_CLOEXEC);
    }));
    s.set_options();
    return s;
  }
  /// A connection to this address.
  ///
  /// returns: a socket that is not open if there is no connection before the limit; errno says why
  [[gnu::cold]] static tcp_socket connect_to(tcp_address const& a, time_limit limit) {
    tcp_socket s(make(a));
    s.set_options();
    if (!s.is_open() || connect(s.descriptor_, a.get(), a.size) == 0) return s;
    // An interrupted connect() goes on as well.
    if (errno != EINPROGRESS && errno != EINTR) return s.close_and_keep_error(), std::move(s);
    int error = ETIMEDOUT;
    socklen_t size = sizeof(error);
    bool is_ready = false;
    do is_ready = s.waits(POLLOUT, limit.left(60'000));
    while (!is_ready && !limit.is_over());
    if (is_ready) getsockopt(s.descriptor_, SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0) {
      s.close();
      errno = error;
    }
    return s;
  }

  /// From now on the system ends the connection if the peer takes no bytes for 5 s. Not for data,
  /// whose reader may be late.
  [[gnu::cold]] void expect_prompt_reader() const {
    unsigned const milliseconds = 5000;
    setsockopt(descriptor_, IPPROTO_TCP, TCP_USER_TIMEOUT, &milliseconds, sizeof(milliseconds));
  }

  /// Waits until the socket can be read or written (POLLIN, POLLOUT). Returns whether it can, or is
  /// closed; false also if a signal has come.
  bool waits(short events, int milliseconds) const {
    pollfd of{descriptor_, events, 0};
    return poll(&of, 1, milliseconds) > 0;
  }
  /// The number of bytes that have come and are not read yet.
  [[gnu::cold]] long unread() const {
    int bytes = 0;
    return ioctl(descriptor_, FIONREAD, &bytes) == 0 ? bytes : 0;
  }
  /// Moves up to `bytes` bytes; `done` grows by their number.
  ///
  /// needs: bytes > 0
  moved read(void* to, long bytes, long& done) const {
    long const n =
        uninterrupted([&] { return long(recv(descriptor_, to, std::size_t(bytes), 0)); });
    return n == 0 ? moved::closed : outcome(n, done);
  }
  moved write(void const* from, long bytes, long& done) const {
    return outcome(uninterrupted([&] {
                     return long(send(descriptor_, from, std::size_t(bytes), MSG_NOSIGNAL));
                   }),
                   done);
  }

 private:
  /// The descriptor is not inherited by programs that the process starts.
  [[gnu::cold]] static int make(tcp_address const& a) {
    return socket(a.bytes.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  }
  [[gnu::cold]] void close_and_keep_error() {
    int const error = errno;
    close();
    errno = error;
  }
  /// The system finds within 5 s that the peer of an idle connection is gone.
  [[gnu::cold]] void set_options() const {
    if (!is_open()) return;
    int const error = errno;
    auto const set = [&](int level, int option, int value) {
      setsockopt(descriptor_, level, option, &value, sizeof(value));
    };
    set(IPPROTO_TCP, TCP_NODELAY, 1);
    set(SOL_SOCKET, SO_KEEPALIVE, 1);
    set(IPPROTO_TCP, TCP_KEEPIDLE, 2);
    set(IPPROTO_TCP, TCP_KEEPINTVL, 1);
    set(IPPROTO_TCP, TCP_KEEPCNT, 3);
    errno = error;
  }
  static moved outcome(long n, long& done) {
    if (n >= 0) return done += n, moved::some;
    return errno == EAGAIN || errno == EWOULDBLOCK ? moved::none_now : moved::failed;
  }

  int descriptor_ = -1;
};

}  // namespace pp::detail
