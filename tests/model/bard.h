/* SPDX-License-Identifier: MIT */
/* bard.h - the model of models/ for tests: opened once, then loaded and fed by functions that fail
 * the test if they cannot. */
#ifndef HW_TEST_BARD_H
#define HW_TEST_BARD_H

#include "blob.h"
#include "model/llama/llama.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { VOCABULARY = 1024, HEAD = 64, LAYERS = 4, TEXT = 24 };

extern const char *model_path; /* to be set before bard_open() */
extern uint8_t *model_bytes;
extern size_t model_size;
extern struct gguf *model;
extern struct hw_context *context;
extern struct hw_device *device; /* the CPU, which computes every op */

extern const int32_t text[TEXT];

/* Group setup and teardown. */
int bard_open(void **state);
int bard_close(void **state);

struct llama *load(const struct gguf *file, const struct llama_settings *settings);
void feed(struct llama *llama, const int32_t *tokens, int64_t count);
void scores_of(struct llama *llama, float *scores);

/* Computes the scores after the text, fed at once. */
void score_text(const struct gguf *file, int32_t kv_type, float *scores);

/* ||a - b|| / ||b||; NaN if a or b contains a NaN. */
double distance(const float *a, const float *b);
void assert_near(const float *scores, const float *wanted, double bound, const char *what);

#endif
