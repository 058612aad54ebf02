/* SPDX-License-Identifier: MIT */
/* gguf_advice.h - the remedies that most faults of a model file have. */
#ifndef HW_MODEL_GGUF_ADVICE_H
#define HW_MODEL_GGUF_ADVICE_H

#define AGAIN         "download or copy it again"
#define CONVERT_AGAIN "convert the model again with a current converter"

#endif
