// SPDX-License-Identifier: BSL-1.0
//
// Definitions of weights/names.hpp.

#include <string>

#include <pipe/base/joined_text.hpp>

namespace pp::detail {

PIPE_DEFINED row_list<parameter_name> names_of(view<name_event> events, int parameters) {
  // Later places of shared parameters have no name.
  row_list<parameter_name> names{std::size_t(parameters)};
  std::string path;                  // to the layer, with a dot at the end
  row_list<std::size_t> path_sizes;  // of the paths to the layers around it
  for (name_event const& e : events) {
    std::string_view const text(e.text, e.characters);
    if (e.what == name_event::part) {
      path_sizes.push_back(path.size());
      append_text(path, {e.number, "."});
    } else if (e.what == name_event::end_part) {
      path.resize(path_sizes.back());
      path_sizes.pop_back();
    } else if (e.what == name_event::name) {
      path.resize(path_sizes.back());
      append_text(path, {text, "."});
    } else {
      names[std::size_t(e.number)] = {joined_text({path, text}), e.transposed};
    }
  }
  return names;
}

}  // namespace pp::detail
