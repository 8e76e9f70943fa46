// SPDX-License-Identifier: BSL-1.0
//
// Every loss of the library, and every way to compare rows, on a GPU.
#include "cuda/device_laws.hpp"
#include "laws/every_layer.hpp"

using namespace pp;

TEST_CASE("every loss equals the host's", "[gpu]") {
  on_device::losses_equal_the_hosts<laws::EveryLoss<MSE>>(1e-4, 5);
  on_device::losses_equal_the_hosts<laws::EveryLoss<BCE>>(1e-4, 5);
  on_device::losses_equal_the_hosts<laws::EveryLoss<Huber<1, 2>>>(1e-4, 5);
  on_device::losses_equal_the_hosts<laws::EveryLoss<SoftCrossEntropy>>(1e-4, 5);
  on_device::losses_equal_the_hosts<laws::EveryLoss<laws::LogCosh>>(1e-4, 5);
  on_device::losses_equal_the_hosts<laws::EveryLoss<CrossEntropy>>(1e-4, 5);
  on_device::losses_equal_the_hosts<laws::EveryLoss<laws::Surprise>>(1e-4, 5);
  on_device::losses_equal_the_hosts<laws::EveryPool<MeanPool>>(1e-4, 5);
  on_device::losses_equal_the_hosts<laws::EveryPool<FirstPosition>>(1e-4, 5);
  on_device::losses_equal_the_hosts<laws::EveryLoss<laws::UnequalClasses>>(1e-4, 5);
  on_device::losses_equal_the_hosts<laws::EveryComparison>(1e-4, 5);
  on_device::losses_equal_the_hosts<laws::EveryContrast<>>(1e-4, 5);
  on_device::losses_equal_the_hosts<laws::EveryContrast<Symmetric>>(1e-4, 5);
  on_device::losses_equal_the_hosts<laws::FurtherContrast>(1e-4, 5);
  on_device::losses_equal_the_hosts<laws::EveryBag<PaddingIndex<3>>>(1e-4, 5);
}
