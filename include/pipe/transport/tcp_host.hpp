// SPDX-License-Identifier: BSL-1.0
//
// The listening side of the hand-shake, process 0 or another host. It listens at one address, and
// looks at all connections at once, so that none that is silent or slow keeps it from another. A
// stranger is sent away; a process of this job that does not fit ends the start of all, with one
// sentence.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <sys/epoll.h>

#include <pipe/base/thread.hpp>
#include <pipe/transport/tcp_frame.hpp>

namespace pp::detail {

/// law: there are at most channels * (processes - 1) connections that belong to the job, and as
/// many
///      newcomers as processes and 8; one more takes the place of the oldest newcomer
/// law: a newcomer has memory for a frame and a hello, whatever it announces
class tcp_host {
 public:
  /// Listens from now on.
  ///
  /// throws: error if the address is not one of this machine, or the port is in use
  [[gnu::cold]] explicit tcp_host(tcp_start const& start)
      : start_(start), newcomers_(start.processes + 8), connections_(start.processes),
        places_(long(start.channels) * start.processes),
        missing_(start.channels * (start.processes - 1 - start.host)) {
    std::string reason = "it has no address";
    heap_array<tcp_address> const all = tcp_address::of(start.at.address, start.at.port, reason);
    for (tcp_address const& a : all) {
      listener_ = tcp_socket::listen_at(a, start.processes + 8);
      if (listener_.is_open()) {
        connections_.address = a.text();
        break;
      }
      reason = errno == EADDRNOTAVAIL ? "it is no address of this machine, and MASTER_ADDR must be "
                                        "one of process 0's"
               : errno == EADDRINUSE  ? "the port is in use, perhaps by another job: MASTER_PORT "
                                        "must be free"
                                      : std::strerror(errno);
    }
    if (!listener_.is_open())
      throw_error<error>({"process ", start.host, " cannot listen at ", start.at.address, ":",
                          start.at.port, ": ", std::string_view(reason)});
    polled_ = tcp_socket(epoll_create1(EPOLL_CLOEXEC));
    see(listener_, 0);
  }
  tcp_host(tcp_host const&) = delete;
  tcp_host& operator=(tcp_host const&) = delete;

  /// Waits until all processes have come.
  ///
  /// throws: error if one does not fit; rank_error if one does not come before the deadline, or is
  ///         lost
  [[gnu::cold]] tcp_connections meet() {
    time_limit const limit(start_.deadline);
    while (missing_ > 0) {
      look(limit.left(1000), limit.left(1 << 30));
      if (!wrong_.empty()) end<error>(wrong_);
      if (!lost_.empty()) end<rank_error>(lost_);
      if (missing_ > 0 && limit.is_over()) end<rank_error>(words_of_missing());
    }
    for (heap_array<tcp_socket> const& of : connections_.of)
      for (int p = start_.host + 1; p < start_.processes && of[p].is_open(); ++p) {
        epoll_ctl(polled_.descriptor(), EPOLL_CTL_DEL, of[p].descriptor(), nullptr);
        send_frame(of[p], {start_.token, tcp_frame::begins}, nullptr);
      }
    tcp_connections all(0);
    std::swap(all, connections_);
    return all;
  }

  /// Of the listener: the system's choice, if it was asked for port 0.
  [[gnu::cold]] int port() const { return listener_.port(); }
  /// A descriptor that can be read when look() has something to do. After meet(): newcomers, which
  /// are all sent away.
  int descriptor() const { return polled_.descriptor(); }
  /// Looks at all connections, and waits for something to happen on one of them.
  ///
  /// left: until the deadline, which newcomers are told. units: milliseconds
  [[gnu::cold]] void look(int milliseconds, int left = 0) {
    epoll_event events[64];
    int const count = epoll_wait(polled_.descriptor(), events, 64, milliseconds);
    for (int i = 0; i < count && wrong_.empty(); ++i) {
      long const tag = long(events[i].data.u64);
      if (tag == 0)
        accept();
      else if (tag <= newcomers_.size())
        read(newcomers_[tag - 1], left);
      else
        lose(int(tag - newcomers_.size() - 1));
    }
    for (newcomer& n : newcomers_)
      if (n.socket.is_open() && n.patience.is_over())
        send_away(n, "it has sent no whole hand-shake for 5 s");
  }

 private:
  /// A connection of which it is not known yet whether it belongs to the job.
  struct newcomer {
    tcp_socket socket;
    tcp_address from;
    long number = 0;  // in the order of their coming
    time_limit patience{std::chrono::milliseconds(0)};
    long have = 0;
    char bytes[sizeof(tcp_frame) + sizeof(tcp_hello)];

    long number_now() const { return socket.is_open() ? number : 0; }
  };

  /// Tags: 0 is the listener; then come newcomers, then processes that have joined.
  [[gnu::cold]] void see(tcp_socket const& s, long tag) {
    epoll_event event{};
    event.events = EPOLLIN | EPOLLRDHUP;
    event.data.u64 = std::uint64_t(tag);
    epoll_ctl(polled_.descriptor(), EPOLL_CTL_ADD, s.descriptor(), &event);
  }
  /// Takes all connections that have come. When there is no place left, the oldest newcomer makes
  /// room: one that belongs to the job has said so long ago.
  [[gnu::cold]] void accept() {
    for (;;) {
      tcp_address from;
      tcp_socket s = listener_.accept(from);
      if (!s.is_open()) {
        // Without a descriptor to give, the system would say again and again that one has come.
        if (errno != EAGAIN) sleep_for(10'000'000);
        return;
      }
      newcomer* place = newcomers_.begin();  // a free one, or that of the oldest
      for (newcomer& n : newcomers_)
        if (n.number_now() < place->number_now()) place = &n;
      if (place->socket.is_open()) send_away(*place, "newer ones have taken its place");
      place->socket = std::move(s);
      place->from = from;
      place->number = ++came_;
      place->have = 0;
      place->patience = time_limit(std::chrono::seconds(5));
      see(place->socket, place - newcomers_.begin() + 1);
    }
  }
  /// Sends a stranger away, with an answer that it may understand. It is counted, and the last one
  /// is remembered for the message of a process that is missing.
  [[gnu::cold]] void send_away(newcomer& n, std::string_view why) {
    ++strangers_;
    stranger_ = n.from.text() + ": " + std::string(why);
    // An answer that cannot be taken for one of another protocol; a stranger may be anything.
    send_refusal(n.socket, {},
                 sentence({"process ", start_.host, " of the job at this address has refused ",
                           std::string_view(n.from.text()), ": ", why})
                     .begin(),
                 false);
    n.socket = {};
  }
  /// Of a process of this job. Before all are there it is the end of the start.
  [[gnu::cold]] void refuse(newcomer& n, std::string const& text) {
    send_refusal(n.socket, start_.token, text, false);
    n.socket = {};
    if (missing_ > 0) wrong_ = text;
  }

  /// Reads what there is, and judges what has come so far.
  [[gnu::cold]] void read(newcomer& n, int left) {
    if (!n.socket.is_open()) return;
    moved m = moved::some;
    while (m == moved::some && n.have < long(sizeof(n.bytes)))
      m = n.socket.read(n.bytes + n.have, long(sizeof(n.bytes)) - n.have, n.have);
    tcp_frame f;
    std::memcpy(&f, n.bytes, sizeof(f));
    if (n.have >= tcp_frame::magic_size && !f.has_magic())
      return send_away(n, "it has sent no hand-shake of pipe");
    if (n.have >= long(sizeof(f)) && !judge(n, f)) return;
    if (n.have == long(sizeof(n.bytes))) return join(n, left);
    if (m == moved::none_now) return;
    send_away(n, sentence({"it has ended after ", n.have, " of ", sizeof(n.bytes),
                           " bytes of a hand-shake"})
                     .begin());
  }
  /// Whether a frame can be the beginning of a hand-shake of this job. The token comes first: of
  /// who has not got it, nothing else is believed, nor is it told more.
  [[gnu::cold]] bool judge(newcomer& n, tcp_frame const& f) {
    if (!(f.token == start_.token)) {
      send_away(n, "its PIPE_JOB_TOKEN is not that of this job");
    } else if (f.version != PIPE_VERSION) {
      refuse(n, sentence({"the process at ", std::string_view(n.from.text()), " has version ",
                          f.version, " of pipe, and process ", start_.host, " has version ",
                          PIPE_VERSION, ": start the same program in all processes"})
                    .begin());
    } else if (f.kind != tcp_frame::hello || f.length != sizeof(tcp_hello)) {
      send_away(n, sentence({"it has announced ", f.length, " bytes, and a hand-shake has ",
                             sizeof(tcp_hello)})
                       .begin());
    } else {
      return true;
    }
    return false;
  }
  /// A whole hand-shake: the connection has a place from now on, or the sender does not fit.
  [[gnu::cold]] void join(newcomer& n, int left) {
    tcp_hello h;
    std::memcpy(&h, n.bytes + sizeof(tcp_frame), sizeof(h));
    std::string const from = n.from.text();
    if (h.processes != start_.processes || h.process <= start_.host ||
        h.process >= start_.processes || h.channel < 0 || h.channel >= start_.channels)
      return refuse(n, sentence({"the process at ", std::string_view(from), " is process ",
                                 h.process, " of ", h.processes, ", and process ", start_.host,
                                 " is one of ", start_.processes, ": all need the same WORLD_SIZE"})
                           .begin());
    if (h.plan != start_.plan)
      return refuse(n, sentence({"process ", h.process, " at ", std::string_view(from),
                                 " has another plan than process ", start_.host,
                                 ": start the same program in all processes"})
                           .begin());
    std::string& place = places_[long(start_.channels) * h.process + h.channel];
    if (!place.empty())
      return refuse(n, sentence({"process ", h.process, " is there twice, at ",
                                 std::string_view(place), " and at ", std::string_view(from),
                                 ": every process needs a RANK of its own"})
                           .begin());
    place = from;
    --missing_;
    epoll_ctl(polled_.descriptor(), EPOLL_CTL_DEL, n.socket.descriptor(), nullptr);
    send_frame(n.socket, {start_.token, tcp_frame::accepted, 0, std::uint32_t(left)}, nullptr);
    tcp_socket& s = connections_.of[h.channel][h.process];
    s = std::move(n.socket);
    see(s, newcomers_.size() + 1 + h.process);
  }
  /// A process that has joined says nothing before all are there, unless it ends.
  [[gnu::cold]] void lose(int process) {
    lost_ = sentence({"process ", process, " was lost: it has ended its connection, while process ",
                      start_.host, " was starting"})
                .begin();
  }

  /// Which processes have not come, by number, and the last stranger, which may be one of them with
  /// other variables.
  [[gnu::cold]] std::string words_of_missing() const {
    auto const has_all_of = [&](int p) {
      for (int c = 0; c < start_.channels; ++c)
        if (places_[long(start_.channels) * p + c].empty()) return false;
      return true;
    };
    constexpr int most = 8;
    std::string names;
    int count = 0;
    for (int p = start_.host + 1; p < start_.processes; ++p) {
      if (has_all_of(p)) continue;
      if (++count <= most) names += sentence({count > 1 ? ", " : "", p}).begin();
    }
    if (count > most) names += sentence({" and ", count - most, " more"}).begin();
    std::string text =
        sentence({count > 1 ? "processes " : "process ", std::string_view(names), " of ",
                  start_.processes, count > 1 ? " have" : " has", " not come to process ",
                  start_.host, " at ", std::string_view(connections_.address), " within ",
                  double(start_.deadline.count()) / 1000, " s"})
            .begin();
    if (strangers_ > 0)
      text += sentence({"; it has refused ", strangers_,
                        strangers_ > 1 ? " other connections, the last from "
                                       : " other connection, from ",
                        std::string_view(stranger_)})
                  .begin();
    return text;
  }
  /// The end of the start: all that have come are told, and throw the same text.
  ///
  /// throws: Error
  template <class Error>
  [[noreturn, gnu::cold]] void end(std::string const& text) {
    for (tcp_socket const& s : connections_.of[tcp_connections::calls])
      if (s.is_open()) send_refusal(s, start_.token, text, std::is_same_v<Error, rank_error>);
    throw Error(text);
  }

  tcp_start start_;
  tcp_socket listener_, polled_;
  heap_array<newcomer> newcomers_;
  tcp_connections connections_;
  heap_array<std::string> places_;  // by process and channel: its address
  int missing_;                     // connections of the job
  long came_ = 0, strangers_ = 0;
  std::string stranger_, wrong_, lost_;
};

}  // namespace pp::detail
