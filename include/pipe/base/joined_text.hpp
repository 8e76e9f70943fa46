// SPDX-License-Identifier: BSL-1.0
//
// Joined texts as a std::string, and messages with names in quotes. A chain of `+` makes a string
// for each part, and the compiler the clean-up of each: the messages of a reader of files would be
// half of what a program compiles that reads one.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include <pipe/base/config.hpp>
#include <pipe/base/sentence.hpp>

namespace pp::detail {

using text_parts = std::initializer_list<piece>;

/// Appends the parts to a text.
[[gnu::cold]] void append_text(std::string& to, text_parts parts);
/// The parts joined: joined_text({"rank ", 3}) is "rank 3".
[[gnu::cold]] std::string joined_text(text_parts parts);
/// Throws an Error with the joined parts of both as its text.
template <class Error>
[[noreturn, gnu::cold]] PIPE_ONE_COPY void throw_joined(text_parts parts, text_parts further) {
  std::string all = joined_text(parts);
  append_text(all, further);
  throw Error(all);
}

/// Writes in_quotes(name).
[[gnu::cold]] long write_in_quotes(piece const& name, char* to);
/// A name in a message: see in_quotes.
inline piece quotation(std::string_view name) { return {name, write_in_quotes}; }

}  // namespace pp::detail
#ifdef PIPE_DEFINED
#include <pipe/base/joined_text.inl>
#endif
