/* SPDX-License-Identifier: MIT */
/* model_file.h - tells the file of a whole model from files that have the same format, but are
 * something else. */
#ifndef HW_MODEL_MODEL_FILE_H
#define HW_MODEL_MODEL_FILE_H

#include "gguf.h"

/* Whether the tensors of the file can be taken as they are. Returns false, with the reason in
 * `why`, for a part of a model that is split over several files, and for blocks of another version
 * than the reader's. */
bool model_file_is_whole(const struct gguf *file, struct fault *why);

/* Whether the file is a model by itself. Returns false, with the reason in `why`, for an adapter, a
 * projector, statistics and the like. */
bool model_file_is_model(const struct gguf *file, struct fault *why);

#endif
