// SPDX-License-Identifier: BSL-1.0
//
// All readers of data files that need no other library: arrays, images, tokens, texts and their
// translations; and documents of tokens. Not part of pipe.hpp, which includes nothing of files.
// Pictures as PNG and JPEG are read by <pipe/images.hpp>.
#pragma once
#ifndef PIPE_SHOWS_WARNINGS
#pragma GCC system_header
#endif

#include <pipe/data/augment.hpp>
#include <pipe/data/byte_pairs.hpp>
#include <pipe/data/cifar.hpp>
#include <pipe/data/divide.hpp>
#include <pipe/data/idx.hpp>
#include <pipe/data/learn_byte_pairs.hpp>
#include <pipe/data/message_catalogue.hpp>
#include <pipe/data/npy.hpp>
#include <pipe/data/scale.hpp>
#include <pipe/data/table_inputs.hpp>
#include <pipe/data/text.hpp>
#include <pipe/data/token_documents.hpp>
#include <pipe/data/token_shards.hpp>
#include <pipe/data/tokenizer_file.hpp>
#include <pipe/io/files_like.hpp>
