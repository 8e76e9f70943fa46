// error: wrong::schedule_is_not_readable, .*FromCSV<.*order.*>, .*Because<.*unknown_action>.*AtLine<2>.*AtColumn<9>
// SPDX-License-Identifier: BSL-1.0
//
// A schedule's text with an action that PyTorch does not have.
#include <pipe/pipe.hpp>
#include <pipe/schedule/families/from_csv.hpp>

#ifdef PIPE_EXPECT_OK
constexpr char order[] = "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n";
#else
constexpr char order[] = "0F0,0F1,0B0,0B1\n1F0,1B0,1G1,1B1\n";
#endif

struct Net : pp::Model<pp::Input<2>, pp::Linear<2>, pp::Linear<2>, pp::CrossEntropy> {};
using Trainer = pp::Pipeline<Net, pp::Stages<2>, pp::MicroBatches<2>, pp::FromCSV<order>>;
double train(Trainer& trainer, Trainer::batch const& batch) { return trainer.step(batch).loss; }
