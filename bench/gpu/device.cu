// SPDX-License-Identifier: BSL-1.0
//
// What a GPU gives: the first figures of a run, by which the others are judged.
#include "copy_speed.cuh"
#include "cublas.cuh"

namespace {

template <class T>
void measure_product(char const* format, bool in_tf32 = false) {
  constexpr long n = 8192;
  auto const a = bench::random_numbers<T>(n * n, 1), b = bench::random_numbers<T>(n * n, 2);
  pp::cuda::device_buffer c(n * n * long(sizeof(T)));
  double const us = bench::microseconds_of_cublaslt<T>(n, n, n, in_tf32, false, false, a.data(),
                                                       b.data(), c.data());
  if (us > 0)
    bench::figure(std::string("cublaslt_tflops_") + format, 2e-6 * double(n) * n * n / us, 0);
}

}  // namespace

int main() {
  return bench::run("device", [] {
    bench::figure("copy_GB_per_s", bench::copy_speed(), 0);
    measure_product<pp::bf16>("bf16");
    measure_product<float>("tf32", true);
    measure_product<float>("fp32");
  });
}
