// SPDX-License-Identifier: BSL-1.0
//
// The staged mini-batch of a run: each rank has the inputs that its stages read in its arena, in
// the type that kernels read. They come from the host through pinned memory, or from a program's
// arrays in device memory.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include <pipe/base/bytes.hpp>
#include <pipe/runtime/cuda/conversion.hpp>
#include <pipe/runtime/cuda/rank_streams.cuh>
#include <pipe/runtime/cuda/resources.cuh>
#include <pipe/runtime/description.hpp>
#include <pipe/runtime/job.hpp>

namespace pp::cuda {

/// Launches of conversions between a program's floats in device memory and values. Null unless the
/// program has such data: their kernels are compiled where they are used.
struct device_conversions {
  void (*to_values)(void* to, float const* from, long count, cudaStream_t) = nullptr;
  void (*to_floats)(float* to, void const* from, long count, cudaStream_t) = nullptr;
};

/// law: work is enqueued only, on the streams of the ranks that read the data
class batch_upload {
 public:
  /// needs: the description, the arenas and the streams outlive this object
  batch_upload(detail::pipeline_description const& d, std::vector<device_buffer> const& arenas,
               rank_streams const& streams)
      : d_(d), arenas_(arenas), streams_(streams) {
    long uploaded = 0;
    for (int i = 0; i <= d.inputs; ++i) uploaded += d.bytes_of(i) * d.micro_batches;
    // A quarter at a time, so that the device has work while the host converts the rest.
    pinned_ = pinned_buffer(2 * std::min(detail::align_up(uploaded / 4), upload_bytes));
  }

  /// Must be called before the first job with data or outputs in device memory.
  void convert_by(device_conversions const& c) { convert_ = c; }
  device_conversions const& conversions() const { return convert_; }

  /// Orders the work of ranks [0, ranks) after what a program has put on a stream.
  void follow(void* stream, int ranks) {
    check(cudaEventRecord(ready_, static_cast<cudaStream_t>(stream)),
          "record of an event on the stream of a mini-batch");
    for (int r = 0; r < ranks; ++r)
      check(cudaStreamWaitEvent(streams_.of(r), ready_, 0), "a wait for a mini-batch");
  }

  /// Enqueues the staging of a job's mini-batch. A partly filled micro-batch is padded with zeros.
  ///
  /// post: arrays of the host have been read; those in device memory are read until the run ends
  void enqueue(detail::job const& j) {
    if (j.data_is_on_device || j.output_is_on_device) follow(j.stream, d_.ranks);
    for (int r = 0; r < d_.ranks; ++r)
      for (int i = 0; i <= d_.inputs; ++i)
        if (d_.rank[r].staging[i] >= 0 && given(j, i) != nullptr) stage(j, r, i);
  }

 private:
  static constexpr long upload_bytes = 1L << 20;  // most bytes of one copy

  void const* given(detail::job const& j, int input) const {
    return input < d_.inputs ? j.input[input] : j.label;
  }
  /// Type of an input on the device. Labels, ids and inputs of the loss are not converted.
  dtype type_of(int which) const {
    return which < d_.inputs && d_.input_is_converted[which] ? d_.value_type : dtype::f32;
  }

  void stage(detail::job const& j, int rank, int input) {
    char* const to = arenas_[std::size_t(rank)].data() + d_.rank[rank].staging[input];
    long const bytes = d_.bytes_of(input), all = bytes / d_.samples * j.samples;
    if (j.data_is_on_device)
      take(to, given(j, input), type_of(input), all, streams_.of(rank));
    else
      send(to, given(j, input), type_of(input), all, streams_.of(rank));
    if (long const rest = (bytes - all % bytes) % bytes; rest > 0)
      check(cudaMemsetAsync(to + all, 0, std::size_t(rest), streams_.of(rank)),
            "filling up of a micro-batch");
  }
  /// Converts or copies `bytes` of values from a program's array in device memory.
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
  std::vector<device_buffer> const& arenas_;
  rank_streams const& streams_;
  device_conversions convert_;
  pinned_buffer pinned_;
  event gone_[2];  // the copy from a half of pinned_ has finished
  long sent_ = 0;  // halves copied so far
  event ready_;    // of a program's arrays in device memory
};

}  // namespace pp::cuda
