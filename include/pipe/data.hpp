// SPDX-License-Identifier: BSL-1.0
//
// All readers of data files that need no other library: arrays, images, tokens, texts and their
// translations. Not part of pipe.hpp, which includes nothing of files. Pictures as PNG and JPEG are
// read by <pipe/images.hpp>.
#pragma once
#ifndef PIPE_SHOWS_WARNINGS
#pragma GCC system_header
#endif

#include <pipe/io/files_like.hpp>
#include <pipe/train/data/augment.hpp>
#include <pipe/train/data/byte_pairs.hpp>
#include <pipe/train/data/cifar.hpp>
#include <pipe/train/data/idx.hpp>
#include <pipe/train/data/learn_byte_pairs.hpp>
#include <pipe/train/data/message_catalogue.hpp>
#include <pipe/train/data/npy.hpp>
#include <pipe/train/data/tokenizer_file.hpp>
#include <pipe/train/text.hpp>
#include <pipe/train/token_shards.hpp>
