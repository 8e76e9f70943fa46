// SPDX-License-Identifier: BSL-1.0
//
// Work that all processes of a trainer do, or none: a file that each of them reads, or a copy for
// which each needs memory. Processes: an object whose agree(here) returns whether `here` is true in
// all processes, which all call it.
#pragma once

#include <exception>
#include <string>
#include <string_view>
#include <utility>

#include <pipe/base/config.hpp>
#include <pipe/base/error.hpp>
#include <pipe/base/function_ref.hpp>
#include <pipe/base/joined_text.hpp>
#include <pipe/base/owner.hpp>

namespace pp::detail {

/// What work() has thrown, if it has.
[[gnu::cold]] std::exception_ptr failure_of(function_ref<void()> work);
/// The same; a rank_error, which all processes throw, is thrown on.
[[gnu::cold]] std::exception_ptr failure_here(function_ref<void()> work);
/// Calls work(), and then rest(), also if work() has thrown: the exception of work() is thrown
/// after rest(), on which other processes wait.
[[gnu::cold]] void with_rest(function_ref<void()> work, function_ref<void()> rest);

/// Processes that are one, whose calls wait for nothing.
template <class Processes>
concept are_one = requires { requires Processes::are_one; };
/// Calls work(), and if it has thrown, undo(), except after a rank_error.
[[gnu::cold]] void in_one_process(function_ref<void()> work, function_ref<void()> undo);

/// Calls work() in all processes, which all call this, and returns once work() has returned in all.
/// If it has thrown in one of them, undo() is called in all.
///
/// law:    it throws in all processes or in none
/// throws: here, the exception of work(); in a process where work() has returned, Error with
///         `otherwise` and the name in quotes, if there is one. After a rank_error, which all
///         processes throw, nothing is agreed upon, nor undone
template <class Error, class Processes>
[[gnu::cold]] void together(
    Processes const& all, std::string_view otherwise, std::string_view name,
    function_ref<void()> work, function_ref<void()> undo = [] {}) {
  if constexpr (are_one<Processes>) {
    in_one_process(work, undo);
  } else {
    std::exception_ptr const failure = failure_here(work);
    if (all.agree(!failure)) return;
    undo();
    if (failure) std::rethrow_exception(failure);
    if (name.empty()) throw_error<Error>({otherwise});
    throw_error<Error>({otherwise, " ", quotation(name)});
  }
}

/// Loads in all processes, or in none. check(): everything that may fail in one process alone,
/// before write(*checked) changes anything; spoil(): called in all processes if write() has thrown
/// in one, which could not read again what it had read. Returns an owner of what check() has
/// returned.
///
/// throws: as together, data_error
template <class Processes, class Check, class Write, class Spoil>
[[gnu::cold]] auto load_together(Processes const& all, std::string_view path, Check const& check,
                                 Write const& write, Spoil const& spoil) {
  constexpr char const* otherwise = "another process could not load";
  using checked_load = decltype(check());
  owner<checked_load> checked;
  together<data_error>(all, otherwise, path,
                       [&] { checked = owner<checked_load>(new checked_load(check())); });
  together<data_error>(all, otherwise, path, [&] { write(*checked); }, spoil);
  return checked;
}

}  // namespace pp::detail
#ifdef PIPE_DEFINED
#include <pipe/base/together.inl>
#endif
