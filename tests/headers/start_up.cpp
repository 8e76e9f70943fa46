// SPDX-License-Identifier: BSL-1.0
//
// What start_up.py looks for in an object file: first something that runs before main, then a
// program with a plan that the compiler makes and one that it leaves to the program.
#ifdef RUNS_BEFORE_MAIN
extern "C" char* getenv(char const*);
char const* const early = getenv("HOME");
#else
#include <pipe/metrics/metrics.hpp>
#include <pipe/pipe.hpp>
#include <pipe/report/html.hpp>
#include <pipe/schedule.hpp>
#include <pipe/weights/weights.hpp>

using namespace pp;

struct Small : Model<Input<2>, Linear<3>, Tanh, Linear<1>, MSE> {};
struct Late : OneFOneB {
  static constexpr bool fits_a_constant(int, int) { return false; }
};

template <class Trainer>
double use() {
  Trainer trainer;
  trainer.swap_averages();
  load_weights(trainer, "weights");
  return trainer.step({}).loss + Trainer::plan().bubble + double(explain<Trainer>().size());
}
double both() {
  return use<Pipeline<Small, Stages<2>, Late, AdamW, Averaging<9, 10>, PortableHost>>() +
         use<Pipeline<Small, Stages<2>, AdamW, Averaging<9, 10>, PortableHost>>();
}

#endif
