// SPDX-License-Identifier: BSL-1.0
//
// Golden numbers: what PyTorch computed, from the files that write_golden.py wrote, and how near
// ours must be.
#pragma once

#include "catch.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <pipe/pipe.hpp>
#include <pipe/weights/weights.hpp>

namespace golden {

/// Relative, in fp32: of a tensor's norm, and of its largest element.
inline constexpr double tolerance = 1e-5;

/// Holds numbers to PyTorch's. What is not a number is never near, and neither is anything to a
/// tensor of zeros.
template <class A, class B>
void check_near(std::string const& what, A const& ours, B const& theirs, double most = tolerance) {
  INFO(what);
  REQUIRE(ours.size() == theirs.size());
  double apart = 0, norm = 0, largest_apart = 0, largest = 0;
  for (std::size_t i = 0; i < theirs.size(); ++i) {
    double const wanted = double(theirs[i]), difference = std::fabs(double(ours[i]) - wanted);
    apart += difference * difference;
    norm += wanted * wanted;
    if (!(difference <= largest_apart)) largest_apart = difference;
    if (std::fabs(wanted) > largest) largest = std::fabs(wanted);
  }
  CHECK(std::sqrt(apart / norm) < most);
  CHECK(largest_apart / largest < most);
}

inline pp::safetensors_file const& file(std::string const& name) {
  static std::map<std::string, pp::safetensors_file> files;
  auto const at = files.find(name);
  if (at != files.end()) return at->second;
  return files
      .emplace(name, pp::safetensors_file(PIPE_TESTS_FOLDER "/golden/" + name + ".safetensors"))
      .first->second;
}

/// The tensors of one case: those whose names begin with CASE/. What it lacks fails the test.
class record {
 public:
  record(std::string const& of, std::string name) : file_(&file(of)), name_(std::move(name)) {}

  std::string const& name() const { return name_; }
  bool has(std::string const& what) const { return file_->find(name_ + "/" + what) != nullptr; }
  /// How many tensors begin so.
  int count(std::string const& what) const {
    int n = 0;
    for (pp::safetensors_entry const& tensor : file_->tensors())
      n += tensor.name.starts_with(name_ + "/" + what);
    return n;
  }

  template <class T>
  std::vector<T> numbers(std::string const& what) const {
    pp::safetensors_entry const& tensor = find(what);
    REQUIRE(pp::files::is_real(tensor.type));
    std::vector<T> all(tensor.bytes.size() / std::size_t(pp::files::size_of(tensor.type)));
    pp::files::decode(tensor.type, tensor.bytes.data(), std::span<T>(all));
    return all;
  }
  std::vector<long> shape(std::string const& what) const { return find(what).shape; }
  /// The tensors WHAT..., under the rest of their names. Views of the file, which stays.
  std::vector<pp::safetensors_entry> tensors(std::string const& what) const {
    std::string const prefix = name_ + "/" + what;
    std::vector<pp::safetensors_entry> all;
    for (pp::safetensors_entry tensor : file_->tensors())
      if (tensor.name.starts_with(prefix)) {
        tensor.name.erase(0, prefix.size());
        all.push_back(tensor);
      }
    return all;
  }
  std::vector<int> ids(std::string const& what) const {
    pp::safetensors_entry const& tensor = find(what);
    REQUIRE(tensor.type == pp::files::stored_type::i32);
    std::vector<int> all(tensor.bytes.size() / 4);
    for (std::size_t i = 0; i < all.size(); ++i)
      all[i] = int(pp::detail::little_endian<std::uint32_t>(tensor.bytes.data() + 4 * i));
    return all;
  }
  /// Numbers or ids, as a batch wants them.
  template <class T>
  std::vector<T> tensor(std::string const& what) const {
    if constexpr (std::is_same_v<T, int>)
      return ids(what);
    else
      return numbers<T>(what);
  }

  /// Gives a trainer the parameters WHAT/..., all of them.
  template <class Trainer>
  void load(Trainer& trainer, std::string const& what = "weight") const {
    auto const parameters = pp::detail::named_parameters(trainer);
    read(std::vector(parameters.begin(), parameters.end()), what);
    trainer.parameters_changed();
  }
  /// The tensors WHAT/..., in the order and layout of the trainer's parameters that have gradients.
  template <class Trainer>
  std::vector<std::vector<typename Trainer::element>> of_trained(Trainer& trainer,
                                                                 std::string const& what) const {
    auto const views = trainer.parameters();
    auto const parameters = pp::detail::named_parameters(trainer);
    std::vector<std::vector<typename Trainer::element>> all;
    for (auto const& v : views) all.emplace_back(v.gradients.size());
    std::vector<pp::detail::named_parameter<typename Trainer::element>> places;
    for (std::size_t i = 0; i < all.size(); ++i)
      if (!all[i].empty()) {
        places.push_back(parameters[i]);
        places.back().values = all[i];
      }
    read(std::move(places), what);
    return all;
  }

 private:
  pp::safetensors_entry const& find(std::string const& what) const {
    pp::safetensors_entry const* const tensor = file_->find(name_ + "/" + what);
    INFO(file_->name() << ": " << name_ << "/" << what);
    REQUIRE(tensor != nullptr);
    return *tensor;
  }
  /// law: the file has CASE/WHAT/PARAMETER for each parameter, and for nothing else
  template <class Named>
  void read(Named parameters, std::string const& what) const {
    std::string const prefix = name_ + "/" + what + "/";
    for (auto& p : parameters) p.name = prefix + std::string(p.name);
    pp::load_report const report = pp::load_weights(parameters, *file_, pp::load_policy::partial);
    for (std::string const& name : report.missing) FAIL_CHECK(name << ": not in the file");
    for (std::string const& name : report.unused)
      if (name.starts_with(prefix)) FAIL_CHECK(name << ": not in the model");
  }

  pp::safetensors_file const* file_;
  std::string name_;
};

/// A case's mini-batches: one, which may have fewer samples than it could, or one for each step.
template <class Trainer>
class batches {
 public:
  explicit batches(record const& of)
      : inputs_(of.tensor<typename Trainer::input_type>("input")),
        labels_(of.tensor<typename Trainer::label_type>("label")),
        samples_(
            std::min(long(Trainer::samples), long(inputs_.size()) / Trainer::inputs_per_sample)) {
    further<1>(of);
  }

  long samples() const { return samples_; }
  typename Trainer::batch operator[](std::size_t step) const {
    typename Trainer::batch b{part(inputs_, step, Trainer::inputs_per_sample),
                              part(labels_, step, Trainer::labels_per_sample)};
    for (int i = 1; i < graph.size.inputs; ++i)
      if (graph.inputs[i].is_ids)
        b.named_ids[i] = part(ids_[i], step, graph.inputs[i].form.elements());
      else
        b.named_numbers[i] = part(numbers_[i], step, graph.inputs[i].form.elements());
    return b;
  }

 private:
  static constexpr auto const& graph = Trainer::model::graph;

  template <int Index>
  void further(record const& of) {
    if constexpr (Index < graph.size.inputs) {
      std::string const what =
          "input." + std::string(pp::detail::input_name<typename Trainer::model, Index>());
      if constexpr (graph.inputs[Index].is_ids)
        ids_[Index] = of.ids(what);
      else
        numbers_[Index] = of.numbers<typename Trainer::element>(what);
      further<Index + 1>(of);
    }
  }
  template <class T>
  std::span<T const> part(std::vector<T> const& all, std::size_t step, long per_sample) const {
    std::size_t const n = std::size_t(samples_ * per_sample);
    return std::span<T const>(all).subspan(step * n, n);
  }

  std::vector<typename Trainer::input_type> inputs_;
  std::vector<typename Trainer::label_type> labels_;
  long samples_;
  std::vector<int> ids_[pp::detail::max_inputs];
  std::vector<typename Trainer::element> numbers_[pp::detail::max_inputs];
};

/// Output, loss and every gradient of a case's mini-batch.
template <class Trainer>
void check_model(std::string const& of, std::string const& name, double most = tolerance) {
  record const theirs(of, name);
  batches<Trainer> const data(theirs);
  Trainer trainer;
  theirs.load(trainer);
  std::vector<typename Trainer::element> output(
      std::size_t(data.samples() * Trainer::outputs_per_sample));
  trainer.forward(data[0], output);
  check_near(name + ": output", output, theirs.numbers<double>("output"), most);
  std::vector const loss{trainer.gradients(data[0]).loss};
  check_near(name + ": loss", loss, theirs.numbers<double>("loss"), most);
  auto const gradients = theirs.of_trained(trainer, "gradient");
  auto const parameters = trainer.parameters();
  for (std::size_t i = 0; i < parameters.size(); ++i)
    if (!gradients[i].empty())
      check_near(name + ": gradient of " + parameters[i].name, parameters[i].gradients,
                 gradients[i], most);
  if constexpr (Trainer::compiled::input_gradients)
    check_near(name + ": gradient of the input", trainer.input_gradients(data[0]),
               theirs.numbers<double>("input_gradient"), most);
  if (theirs.count("buffer/") == 0) return;
  trainer.step(data[0]);
  for (auto const& p : parameters)
    if (std::string const what = "buffer/" + p.name; theirs.count(what) > 0)
      check_near(name + ": " + p.name, p.values, theirs.numbers<double>(what), most);
}

/// The same of model M in two micro-batches of two samples each.
template <class M>
void check_in_two(std::string const& of, std::string const& name) {
  check_model<pp::Pipeline<M, pp::PortableHost, pp::MicroBatches<2>, pp::MicroBatchSize<2>>>(of,
                                                                                             name);
}

}  // namespace golden
