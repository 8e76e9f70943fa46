// SPDX-License-Identifier: BSL-1.0
//
// Definitions of checkpoint/checkpoint_match.hpp.

#include <pipe/weights/misfit.hpp>

namespace pp::detail {

PIPE_DEFINED std::string text_of_version() {
  return joined_text(
      {PIPE_VERSION / 10000, ".", PIPE_VERSION / 100 % 100, ".", PIPE_VERSION % 100});
}
PIPE_DEFINED checkpoint_match::checkpoint_match(open_checkpoint const& file,
                                                std::string const& optimizer)
    : file_(file), known_(file.size()) {
  kept_text const* const theirs = file.metadata("optimizer");
  if (theirs == nullptr || theirs->view() != optimizer)
    file.refuse({"it is a run of ",
                 theirs == nullptr ? std::string_view("no optimizer") : theirs->view(),
                 ", this trainer has ", optimizer});
}
PIPE_DEFINED checkpoint_match::~checkpoint_match() {}
PIPE_DEFINED long checkpoint_match::find(safetensors_place const& expected) {
  long const at = file_.find(expected.name);
  auto const misses = [&](text_parts why) {
    std::string text = joined_text({"tensor ", quotation(expected.name), ": "});
    append_text(text, why);
    problems_.push_back(text);
    return -1L;
  };
  if (at < 0) return misses({"not in the file"});
  known_[std::size_t(at)] = true;
  safetensors_place const& found = file_[std::size_t(at)];
  long numbers = 1;
  for (long const extent : expected.shape) numbers *= extent;
  std::string const why = misfit_of_shape(
      file_.is_divided(std::size_t(at)) ? extents{numbers} : expected.shape, found.shape);
  if (!why.empty()) return misses({why});
  if (found.type != expected.type)
    return misses({"expected ", text_of_type(expected), ", found ", text_of_type(found)});
  return at;
}
PIPE_DEFINED bool checkpoint_match::ignore_all(std::string_view prefix) {
  bool any = false;
  for (std::size_t i = 0; i < file_.size(); ++i)
    if (file_[i].name.starts_with(prefix)) any = known_[i] = true;
  return any;
}
PIPE_DEFINED void checkpoint_match::require() const {
  if (!problems_.empty())
    file_.refuse({"it does not fit this trainer: ", text_of_problems(problems_)});
}
PIPE_DEFINED void checkpoint_match::require_all() {
  for (std::size_t i = 0; i < file_.size(); ++i)
    if (!known_[i])
      problems_.push_back(
          joined_text({"tensor ", quotation(file_[i].name), ": not of this trainer"}));
  require();
}

}  // namespace pp::detail
