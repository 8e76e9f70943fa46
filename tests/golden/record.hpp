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
inline void check_near(std::string const& what, std::vector<double> const& ours,
                       std::vector<double> const& theirs, double most) {
  INFO(what);
  REQUIRE(ours.size() == theirs.size());
  double apart = 0, norm = 0, largest_apart = 0, largest = 0;
  for (std::size_t i = 0; i < theirs.size(); ++i) {
    double const wanted = theirs[i], difference = std::fabs(ours[i] - wanted);
    apart += difference * difference;
    norm += wanted * wanted;
    if (!(difference <= largest_apart)) largest_apart = difference;
    if (std::fabs(wanted) > largest) largest = std::fabs(wanted);
  }
  CHECK(std::sqrt(apart / norm) < most);
  CHECK(largest_apart / largest < most);
}
template <class A, class B>
void check_near(std::string const& what, A const& ours, B const& theirs, double most = tolerance) {
  check_near(what, std::vector<double>(ours.begin(), ours.end()),
             std::vector<double>(theirs.begin(), theirs.end()), most);
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
    return of_trained(trainer.parameters(), pp::detail::named_parameters(trainer), what);
  }
  template <class T>
  std::vector<std::vector<T>> of_trained(
      std::vector<pp::parameter_view<T>> const& views,
      pp::detail::row_list<pp::detail::named_parameter<T>> const& named,
      std::string const& what) const {
    std::vector<std::vector<T>> all;
    std::vector<pp::detail::named_parameter<T>> places;
    for (auto const& v : views) all.emplace_back(v.gradients.size());
    for (std::size_t i = 0; i < all.size(); ++i)
      if (!all[i].empty()) {
        places.push_back(named[i]);
        places.back().values = all[i];
      }
    read(std::move(places), what);
    return all;
  }
  /// law: the file has CASE/WHAT/PARAMETER for each parameter, and for nothing else
  template <class T>
  void read(std::vector<pp::detail::named_parameter<T>> parameters, std::string const& what) const {
    std::string const prefix = name_ + "/" + what + "/";
    for (auto& p : parameters) p.name = prefix + std::string(p.name);
    pp::load_report const report = pp::load_weights(parameters, *file_, pp::load_policy::partial);
    for (std::string const& name : report.missing) FAIL_CHECK(name << ": not in the file");
    for (std::string const& name : report.unused)
      if (name.starts_with(prefix)) FAIL_CHECK(name << ": not in the model");
  }

 private:
  pp::safetensors_entry const& find(std::string const& what) const {
    pp::safetensors_entry const* const tensor = file_->find(name_ + "/" + what);
    INFO(file_->name() << ": " << name_ << "/" << what);
    REQUIRE(tensor != nullptr);
    return *tensor;
  }

  pp::safetensors_file const* file_;
  std::string name_;
};

/// An input, or the labels, of all mini-batches of a case.
template <class T>
struct stored_list {
  std::vector<int> ids;
  std::vector<T> numbers;
  long per_sample;

  stored_list(record const& of, std::string const& what, bool is_ids, long numbers_per_sample)
      : per_sample(numbers_per_sample) {
    if (is_ids)
      ids = of.ids(what);
    else
      numbers = of.numbers<T>(what);
  }
  template <class Of>
  std::span<Of const> part(std::size_t step, long samples) const {
    std::size_t const n = std::size_t(samples * per_sample);
    if constexpr (std::is_same_v<Of, int>)
      return std::span(ids).subspan(step * n, n);
    else
      return std::span(numbers).subspan(step * n, n);
  }
};

/// A case's mini-batches: one, which may have fewer samples than it could, or one for each step.
template <class Trainer>
class batches {
  using model = typename Trainer::model;
  using element = typename Trainer::element;
  static constexpr auto const& inputs = pp::detail::model_tables<model>::inputs;

 public:
  explicit batches(record const& of)
      : inputs_(lists_of(of, std::make_integer_sequence<int, inputs.size()>{})),
        labels_(of, "label", model::labels_are_ids, Trainer::labels_per_sample),
        samples_(std::min(long(Trainer::samples),
                          long(inputs_[0].ids.size() + inputs_[0].numbers.size()) /
                              Trainer::inputs_per_sample)) {}

  long samples() const { return samples_; }
  typename Trainer::batch operator[](std::size_t step) const {
    typename Trainer::batch b{
        inputs_[0].template part<typename Trainer::input_type>(step, samples_),
        labels_.template part<typename Trainer::label_type>(step, samples_)};
    for (int i = 1; i < inputs.size(); ++i)
      if (inputs[i].is_ids)
        b.named_ids[i] = inputs_[std::size_t(i)].template part<int>(step, samples_);
      else
        b.named_numbers[i] = inputs_[std::size_t(i)].template part<element>(step, samples_);
    return b;
  }

 private:
  template <int... Is>
  static std::vector<stored_list<element>> lists_of(record const& of,
                                                    std::integer_sequence<int, Is...>) {
    return {{of, Is == 0 ? "input" : "input." + std::string(pp::detail::input_name<model, Is>()),
             inputs[Is].is_ids, inputs[Is].form.elements()}...};
  }

  std::vector<stored_list<element>> inputs_;
  stored_list<element> labels_;
  long samples_;
};

/// Holds output, loss and every gradient of a case's mini-batch to PyTorch's.
template <class T>
void check_gradients(record const& theirs, std::vector<T> const& output, double loss,
                     std::vector<pp::parameter_view<T>> const& parameters,
                     pp::detail::row_list<pp::detail::named_parameter<T>> const& named,
                     double most) {
  check_near(theirs.name() + ": output", output, theirs.numbers<double>("output"), most);
  check_near(theirs.name() + ": loss", std::vector{loss}, theirs.numbers<double>("loss"), most);
  auto const gradients = theirs.of_trained(parameters, named, "gradient");
  for (std::size_t i = 0; i < parameters.size(); ++i)
    if (!gradients[i].empty())
      check_near(theirs.name() + ": gradient of " + parameters[i].name, parameters[i].gradients,
                 gradients[i], most);
}
template <class T>
void check_buffers(record const& theirs, std::vector<pp::parameter_view<T>> const& parameters,
                   double most) {
  for (auto const& p : parameters)
    if (std::string const what = "buffer/" + p.name; theirs.count(what) > 0)
      check_near(theirs.name() + ": " + p.name, p.values, theirs.numbers<double>(what), most);
}
/// Whether steps write buffers of model M.
template <class M>
constexpr bool has_buffers() {
  for (auto const& p : pp::detail::model_tables<M>::parameters)
    if (p.is_buffer) return true;
  return false;
}

/// Output, loss and every gradient of a case's mini-batch, and the buffers after a step.
template <class Trainer>
void check_model(std::string const& of, std::string const& name, double most = tolerance) {
  using element = typename Trainer::element;
  record const theirs(of, name);
  batches<Trainer> const data(theirs);
  Trainer trainer;
  auto const named = pp::detail::named_parameters(trainer);
  theirs.read(std::vector(named.begin(), named.end()), "weight");
  trainer.parameters_changed();
  std::vector<element> output(std::size_t(data.samples() * Trainer::outputs_per_sample));
  trainer.forward(data[0], output);
  double const loss = trainer.gradients(data[0]).loss;
  auto const parameters = trainer.parameters();
  check_gradients<element>(theirs, output, loss, parameters, named, most);
  if constexpr (Trainer::compiled::input_gradients)
    check_near(name + ": gradient of the input", trainer.input_gradients(data[0]),
               theirs.numbers<double>("input_gradient"), most);
  if constexpr (has_buffers<typename Trainer::model>()) {
    if (theirs.count("buffer/") == 0) return;
    trainer.step(data[0]);
    check_buffers<element>(theirs, parameters, most);
  }
}

/// The same of model M in two micro-batches of two samples each.
template <class M>
void check_in_two(std::string const& of, std::string const& name) {
  check_model<pp::Pipeline<M, pp::PortableHost, pp::MicroBatches<2>, pp::MicroBatchSize<2>>>(of,
                                                                                             name);
}

}  // namespace golden
