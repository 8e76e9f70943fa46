// SPDX-License-Identifier: BSL-1.0
//
// The transport option: how ranks wait for each other and exchange values.
#pragma once

#include <pipe/backend/backend.hpp>
#include <pipe/base/constant.hpp>
#include <pipe/graph/diagnostics.hpp>
#include <pipe/plan/options/family.hpp>
#include <pipe/plan/options/schedule.hpp>
#include <pipe/plan/options/stages.hpp>
#include <pipe/transport/in_process/in_process.hpp>
#include <pipe/transport/transport.hpp>

namespace pp {

/// Ranks are threads of this process and read each other's memory (default). Nothing is copied.
struct InProcess {
  using transport = detail::in_process;
};

namespace detail {

/// An option with a member type `transport` that satisfies concept transport, or
/// device_transport.
template <class O>
concept transport_option =
    transport<typename O::transport> || device_transport<typename O::transport>;

/// A transport whose processes may be replicas of a pipeline.
template <class T>
concept connects_replicas = replica_transport<T> || device_transport<T>;

/// The first member that T lacks, or has with another type, to be a transport; `none` if all are
/// present (a value that is not constant is reported separately).
template <class T>
constexpr wrong::member missing_of_transport() {
  using enum wrong::member;
  using status = failure_flag const&;
  if constexpr (!requires { bool(T::copies); }) return copies;
  if constexpr (!requires(patience const& p) { T(1, 1, p); }) return constructor;
  if constexpr (!requires { requires std::same_as<decltype(T::place(1)), process_place>; })
    return place;
  if constexpr (!requires(T& t, char* p) { t.set_memory(0, p); }) return set_memory;
  if constexpr (!requires(T& t) { t.reset(); }) return reset;
  if constexpr (!requires(T& t) { t.wake_all(); }) return wake_all;
  if constexpr (!requires(T& t, transfer const& x, status f) {
                  requires std::same_as<decltype(t.share(0, x, f)), waited>;
                })
    return share;
  if constexpr (!requires(T& t, transfer const& x) {
                  requires std::same_as<decltype(t.at(x)), char*>;
                })
    return at;
  if constexpr (!requires(T& t, status f) {
                  requires std::same_as<decltype(t.arrive_and_wait(0, 1, f)), waited>;
                })
    return arrive_and_wait;
  if constexpr (!requires(T& t) { requires std::same_as<decltype(t.cancel_barrier(1)), bool>; })
    return cancel_barrier;
  // Only a transport whose ranks read each other's memory needs publish and wait.
  if constexpr (!requires { typename constants<is_read(T::copies)>; }) {
    return none;
  } else if constexpr (!bool(T::copies)) {
    if constexpr (!requires(T& t, milestone m) { t.publish(0, m, 0); }) return publish;
    if constexpr (!requires(T& t, milestone m, status f) {
                    requires std::same_as<decltype(t.wait(0, m, 0, f)), waited>;
                  })
      return wait;
  }
  return none;
}

}  // namespace detail

namespace option_family {
/// The family of transports: every type with a member type that satisfies concept transport. Its
/// members are checked one by one, so that an incomplete transport is told the first that is
/// missing.
struct transport : detail::any_family {
  using fallback = InProcess;
  template <class O>
  static constexpr bool holds() {
    return detail::transport_option<O>;
  }

  /// The diagnosis of a type with a member type `transport`.
  template <class O>
  static constexpr auto diagnose_type() {
    if constexpr (requires { typename O::transport; }) {
      constexpr wrong::member lacks = detail::missing_of_transport<typename O::transport>();
      if constexpr (lacks != wrong::member::none)
        return detail::diagnosis_of<wrong::transport_is_incomplete, O, wrong::Missing<lacks>>();
      else
        return detail::diagnosis_of<wrong::value_must_be_constexpr, O,
                                    wrong::Value<wrong::member::copies>>();
    } else {
      return std::type_identity<detail::nothing_wrong>{};
    }
  }

  template <class Options>
  static constexpr auto diagnose() {
    using option = typename Options::template get<transport>;
    using by = detail::replicated_by<typename Options::template get<stages>,
                                     typename Options::template get<schedule>>;
    using connection = typename option::transport;
    if constexpr (!std::is_void_v<by> && connection::copies &&
                  !transports::stream_transport<connection> &&
                  !detail::device_transport<connection>)
      return detail::diagnosis_of<wrong::replicas_of_a_stage_need_shared_memory_or_streams, by,
                                  option>();
    else
      return std::type_identity<detail::nothing_wrong>{};
  }
};
}  // namespace option_family

}  // namespace pp
