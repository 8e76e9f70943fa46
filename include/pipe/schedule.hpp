// SPDX-License-Identifier: BSL-1.0
//
// Schedules without a model: build, validate, simulate and search them, and exchange them with
// other programs. Needs no layers and no device.
#pragma once
#ifndef PIPE_SHOWS_WARNINGS
#pragma GCC system_header
#endif

#include <pipe/base/config.hpp>  // first, as in pipe.hpp
#include <pipe/base/diagnosis.hpp>

#include <pipe/schedule/boundary_slots.hpp>
#include <pipe/schedule/catalog/catalog.hpp>
#include <pipe/schedule/catalog/families.hpp>
#include <pipe/schedule/catalog/torch_csv.hpp>
#include <pipe/schedule/communication.hpp>
#include <pipe/schedule/critical_path.hpp>
#include <pipe/schedule/dynamic_table.hpp>
#include <pipe/schedule/appraise.hpp>
#include <pipe/schedule/families/repeated.hpp>
#include <pipe/schedule/families/weave.hpp>
#include <pipe/schedule/certificate.hpp>
#include <pipe/schedule/floors.hpp>
#include <pipe/schedule/in_flight.hpp>
#include <pipe/schedule/list_schedule.hpp>
#include <pipe/schedule/period.hpp>
#include <pipe/schedule/proved.hpp>
#include <pipe/schedule/simulate.hpp>
#include <pipe/schedule/validate.hpp>
