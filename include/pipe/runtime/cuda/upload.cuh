// SPDX-License-Identifier: BSL-1.0
//
// The staged mini-batch of a run: in its arena each rank has the inputs that its stages read, in
// the type that kernels read. Inputs come from the host through pinned memory, or from a program's
// arrays in device memory.
#pragma once

#include <cstddef>
#include <vector>

#include <pipe/base/bytes.hpp>
#include <pipe/base/heap_array.hpp>
#include <pipe/runtime/actions.hpp>
#include <pipe/runtime/cuda/conversion.hpp>
#include <pipe/runtime/cuda/rank_streams.cuh>
#include <pipe/runtime/cuda/resources.cuh>
#include <pipe/runtime/description.hpp>
#include <pipe/runtime/job.hpp>
#include <pipe/runtime/sum_tree.hpp>

namespace pp::cuda {

/// Launches of conversions between a program's floats in device memory and values. Null unless the
/// program has arrays in device memory, as only such programs compile the kernels.
struct device_conversions {
  void (*to_values)(void* to, float const* from, long count, cudaStream_t) = nullptr;
  void (*to_floats)(float* to, void const* from, long count, cudaStream_t) = nullptr;
};

/// The upload of mini-batches to the ranks of one device.
///
/// law: work is enqueued only, on the streams of the ranks that read the data
class batch_upload {
 public:
  /// needs: the description, the arenas and the streams outlive this object; `device` is current
  [[gnu::cold]] batch_upload(detail::pipeline_description const& d, int device,
                             detail::heap_array<device_buffer> const& arenas,
                             rank_streams const& streams)
      : d_(d), arenas_(arenas), streams_(streams), first_(d.devices.first_rank(device)),
        end_(first_ + d.devices.count(device)), rooms_(detail::prefetch_rooms(d.accumulations)),
        left_(d.devices.count(device)) {
    long uploaded = 0;
    for (int i = 0; i <= d.inputs; ++i) uploaded += d.bytes_of(i) * d.micro_batches;
    bool prefetches = false;
    for (int r = first_; r < end_; ++r)
      for (long const at : d.rank[r].prefetched) prefetches = prefetches || at >= 0;
    loading_ = detail::heap_array<stream>(prefetches);
    // A quarter at a time, so that the device has work while the host converts the rest.
    long const quarter = detail::align_up(uploaded / 4);
    pinned_ = pinned_buffer(2 * (quarter < upload_bytes ? quarter : upload_bytes));
  }

  /// Copies an output of a micro-batch to the program's array in device memory.
  void give_output(detail::job const& j, int output, int micro_batch, char const* from,
                   cudaStream_t on) const {
    long const each = d_.output[output].bytes / d_.samples / size_of(d_.value_type),
               count = each * detail::samples_in(d_, j, micro_batch);
    float* const to = static_cast<float*>(j.batch.output[output]) + micro_batch * d_.samples * each;
    if (d_.value_type != dtype::f32) return convert_.to_floats(to, from, count, on);
    check(
        cudaMemcpyAsync(to, from, sizeof(float) * std::size_t(count), cudaMemcpyDeviceToDevice, on),
        "copy of outputs");
  }

  /// Must be called before the first job with data or outputs in device memory.
  void convert_by(device_conversions const& c) { convert_ = c; }

  /// Orders the work of the first `ranks` ranks after the work that a program has put on a stream
  /// of the device.
  void follow(void* stream, int ranks) {
    check(cudaEventRecord(ready_, static_cast<cudaStream_t>(stream)),
          "record of an event on the stream of a mini-batch");
    for (int r = first_; r < first_ + ranks; ++r)
      check(cudaStreamWaitEvent(streams_.of(r), ready_, 0), "a wait for a mini-batch");
  }

  /// Enqueues the staging of a job's mini-batch. A partly filled micro-batch is padded with zeros.
  ///
  /// post: arrays of the host have been read; arrays in device memory are read until the run ends
  void enqueue(detail::job const& j) {
    if (j.batch.place == detail::data_place::device || j.batch.output_is_on_device)
      follow(j.batch.stream, end_ - first_);
    bool const is_loaded = j.batch.place == detail::data_place::loaded;
    if (j.batch.place == detail::data_place::staged && rooms_ == 1) return;
    if (is_loaded && j.part.accumulation == 0) begin_unloading();
    for_each_list(j, [&](int r, int i) { stage(j, r, i); });
    if (is_loaded) end_unloading();
  }

  // ---- the mini-batch that is prefetched ----

  /// Enqueues the upload of a job's mini-batch, whose arrays are in the host's memory, to the room
  /// of the next mini-batch, behind the staging of the mini-batch that was there. The upload does
  /// not wait for runs.
  ///
  /// post: the arrays have been read
  void load(detail::job const& j) {
    is_loaded_ = false;                  // stays so if the upload fails
    for (stream const& on : loading_) {  // none if mini-batches are not prefetched to this device
      for (event const& left : left_) check(cudaStreamWaitEvent(on, left, 0), "a wait");
      for_each_list(j, [&](int r, int i) {
        send(prefetched(r, i, next_room()), given(j, i), type_of(i), bytes_of(j, i), on);
      });
      check(cudaEventRecord(arrived_, on), "record of an event");
    }
    is_loaded_ = true;
  }
  /// After a failure: see rank_streams::drain.
  void drain() const noexcept {
    for (stream const& s : loading_) (void)cudaStreamSynchronize(s);
  }

  /// An input of the last mini-batch as a rank of the device has read it; the labels for number
  /// d.inputs. Empty if no rank has read it. Waits for the device; for messages.
  ///
  /// needs: the mini-batch was prefetched
  [[gnu::cold]] std::vector<float> staged(int input, int samples) const {
    int r = first_;
    while (r < end_ && d_.rank[r].staging[input] < 0) ++r;
    if (r == end_) return {};
    long const bytes = d_.bytes_of(input) / d_.samples * samples,
               count = bytes / size_of(type_of(input));
    std::vector<char> values(static_cast<std::size_t>(bytes));
    check(cudaMemcpy(values.data(), rooms_ == 1 ? staging(r, input) : prefetched(r, input, room_),
                     values.size(), cudaMemcpyDeviceToHost),
          "download of a mini-batch");
    std::vector<float> floats(static_cast<std::size_t>(count));
    detail::convert_to_float(type_of(input), floats.data(), values.data(), count);
    return floats;
  }

 private:
  static constexpr long upload_bytes = 1L << 20;  // most bytes of one copy

  /// The array of a job's input, or of its labels for number d.inputs; null if none was given.
  void const* given(detail::job const& j, int input) const {
    return input < d_.inputs ? j.batch.input[input] : j.batch.label;
  }
  /// The type of an input on the device. Labels, ids and inputs of the loss are not converted.
  dtype type_of(int which) const {
    return which < d_.inputs && d_.input_is_converted[which] ? d_.value_type : dtype::f32;
  }

  /// The arena of a rank.
  char* memory_of(int rank) const { return arenas_[rank].data(); }
  /// The address at which kernels of a rank read an input.
  char* staging(int rank, int input) const {
    return memory_of(rank) + d_.rank[rank].staging[input];
  }
  /// The address of an input of a prefetched mini-batch, in one of the rooms.
  char* prefetched(int rank, int input, int room) const {
    return memory_of(rank) + d_.rank[rank].prefetched[input] +
           room * d_.accumulations * d_.micro_batches * d_.bytes_of(input);
  }
  int next_room() const { return (room_ + 1) % rooms_; }
  /// The bytes of an input for all samples of a job.
  long bytes_of(detail::job const& j, int input) const {
    return d_.bytes_of(input) / d_.samples * j.batch.samples;
  }
  /// use(rank, input) for each input, and the labels, that a rank reads of a job's mini-batch.
  template <class Use>
  void for_each_list(detail::job const& j, Use const& use) {
    for (int r = first_; r < end_; ++r)
      for (int i = 0; i <= d_.inputs; ++i)
        if (d_.rank[r].staging[i] >= 0 && given(j, i) != nullptr && j.batch.samples > 0) use(r, i);
  }

  /// Takes the prefetched mini-batch for this run: ranks wait for its upload.
  ///
  /// throws: pp::error if a failure has discarded the mini-batch
  void begin_unloading() {
    if (!is_loaded_)
      detail::throw_error<error>(
          {"a prefetched mini-batch was discarded when a run before it "
           "failed: prefetch it again"});
    is_loaded_ = false;
    room_ = next_room();
    for (int r = first_; r < end_; ++r)
      check(cudaStreamWaitEvent(streams_.of(r), arrived_, 0), "a wait for a mini-batch");
  }
  /// Records that all ranks have staged the prefetched mini-batch, so that the next upload may
  /// overwrite it.
  void end_unloading() {
    for (int r = first_; r < end_; ++r)
      check(cudaEventRecord(left_[r - first_], streams_.of(r)), "record of an event");
  }

  /// Brings one array to the address at which kernels of a rank read it: from the host's memory,
  /// from a program's array in device memory, or from the room of a prefetched mini-batch.
  void stage(detail::job const& j, int rank, int input) {
    char* const to = staging(rank, input);
    long const bytes = d_.bytes_of(input), all = bytes_of(j, input);
    cudaStream_t const on = streams_.of(rank);
    if (j.batch.place == detail::data_place::host)
      send(to, given(j, input), type_of(input), all, on);
    else if (j.batch.place == detail::data_place::device)
      take(to, given(j, input), type_of(input), all, on);
    else
      take(to, prefetched(rank, input, room_) + j.part.accumulation * d_.micro_batches * bytes,
           dtype::f32, all, on);
    if (long const rest = (bytes - all % bytes) % bytes; rest > 0)
      check(cudaMemsetAsync(to + all, 0, std::size_t(rest), on), "filling up of a micro-batch");
  }
  /// Converts or copies `bytes` of values from an array in device memory.
  void take(char* to, void const* from, dtype type, long bytes, cudaStream_t on) {
    if (type != dtype::f32)
      return convert_.to_values(to, static_cast<float const*>(from), bytes / size_of(type), on);
    check(cudaMemcpyAsync(to, from, std::size_t(bytes), cudaMemcpyDeviceToDevice, on),
          "copy of the mini-batch");
  }
  /// Double-buffered upload: the host fills one half of the pinned buffer while the other is
  /// copied.
  void send(char* to, void const* data, dtype type, long bytes, cudaStream_t on) {
    long const half = pinned_.bytes() / 2, size = size_of(type);
    for (long at = 0; at < bytes; at += half, ++sent_) {
      event const& gone = gone_[sent_ % 2];
      char* const from = pinned_.data() + sent_ % 2 * half;
      long const now = bytes - at < half ? bytes - at : half;
      gone.wait();
      detail::convert_from_float(
          type, from, static_cast<char const*>(data) + at / size * long(sizeof(float)), now / size);
      check(cudaMemcpyAsync(to + at, from, std::size_t(now), cudaMemcpyHostToDevice, on),
            "upload of the mini-batch");
      check(cudaEventRecord(gone, on), "record of an event");
    }
  }

  detail::pipeline_description const& d_;
  detail::heap_array<device_buffer> const& arenas_;
  rank_streams const& streams_;
  int first_, end_;  // the ranks of the device
  int rooms_;        // for prefetched mini-batches
  int room_ = 0;     // of the last mini-batch that a run has taken
  device_conversions convert_;
  pinned_buffer pinned_;
  event gone_[2];  // the copy from a half of pinned_ has finished
  long sent_ = 0;  // halves copied so far
  event ready_;    // of a program's arrays in device memory
  detail::heap_array<stream>
      loading_;                     // of uploads of prefetched mini-batches; none if there are none
  event arrived_;                   // the prefetched mini-batch is there
  detail::heap_array<event> left_;  // by rank of the device: it has staged the mini-batch
  bool is_loaded_ = false;
};

}  // namespace pp::cuda
