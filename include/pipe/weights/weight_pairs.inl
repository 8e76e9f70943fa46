// SPDX-License-Identifier: BSL-1.0
//
// Definitions of weights/weight_pairs.hpp.

namespace pp::detail {

PIPE_DEFINED bool is_batch_count(std::string_view name) {
  return name.ends_with("num_batches_tracked");
}
PIPE_DEFINED void require_fit(weights_source const& from, row_list<kept_text> const& problems) {
  if (problems.empty()) return;
  throw_error<data_error>({"the ", from.content, " ", from.where, " do not fit the ", from.target,
                           ": ", text_of_problems(problems)});
}
PIPE_DEFINED std::string text_of_tensors(row_list<kept_text> const& names) {
  return joined_text({names.size() == 1 ? "tensor " : "tensors ", text_of_names(names)});
}
PIPE_DEFINED row_list<kept_text> first_names(row_list<tensors_there> const& all) {
  row_list<kept_text> names;
  for (tensors_there const& of : all) names.push_back(of.names.front());
  return names;
}
PIPE_DEFINED PIPE_ONE_COPY void add_name(std::vector<std::string>& to, std::string_view name) {
  to.emplace_back(name);
}

}  // namespace pp::detail
