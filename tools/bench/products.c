/* SPDX-License-Identifier: MIT */
/* products.c - see products.h. */
#include "products.h"

#include <hw/report.h>

#include <stdlib.h>
#include <string.h>

static bool read_extent(const char **text, char before, int64_t *extent)
{
    char *end;
    if (**text != before || (*text)[1] < '1' || (*text)[1] > '9')
        return false;
    *extent = strtoll(*text + 1, &end, 10);
    *text = end;
    return *extent <= 1 << 20;
}

/* Up to the colon, where the extents begin. */
static int32_t read_type(const char **text)
{
    const size_t length = strcspn(*text, ":");
    int32_t found = 0;
    for (int32_t type = 1; type < HW_DTYPE_END; type++)
        if (strlen(hw_dtype_name(type)) == length &&
            !strncmp(*text, hw_dtype_name(type), length))
            found = type;
    *text += length;
    return found;
}

bool product_read(const char *word, struct product *p)
{
    *p = (struct product){ .type = read_type(&word) };
    return p->type && read_extent(&word, ':', &p->m) && read_extent(&word, 'x', &p->n) &&
           read_extent(&word, 'x', &p->k) && !*word;
}

double product_operations(const struct product *p)
{
    return 2.0 * (double)p->m * (double)p->n * (double)p->k;
}

bool attention_read(const char *word, struct attention_shape *s)
{
    *s = (struct attention_shape){ .type = read_type(&word) };
    return s->type && read_extent(&word, ':', &s->queries) &&
           read_extent(&word, 'x', &s->keys) && read_extent(&word, 'x', &s->heads) &&
           read_extent(&word, '/', &s->kv_heads) && read_extent(&word, 'x', &s->size) &&
           !*word && (s->queries == 1 || s->queries == s->keys) &&
           s->heads % s->kv_heads == 0 && s->size <= HW_MAX_HEAD &&
           s->heads * s->size <= RANDOM_NUMBERS;
}

/* Two products; a query sees the keys up to its own. */
double attention_operations(const struct attention_shape *s)
{
    const double hidden = (double)(s->queries - 1) / 2;
    return 4.0 * (double)s->queries * ((double)s->keys - hidden) *
           (double)(s->heads * s->size);
}

float *random_numbers(void)
{
    uint64_t state = 1;
    float *numbers = malloc((RANDOM_NUMBERS + RANDOM_SPARE) * sizeof *numbers);
    for (int i = 0; numbers && i < RANDOM_NUMBERS + RANDOM_SPARE; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        numbers[i] = (float)(int32_t)(state >> 32) * 0x1p-31f;
    }
    return numbers;
}

/* Converts whole rows, which are whole blocks. A row has at most RANDOM_NUMBERS elements. */
enum hw_status fill_random(struct hw_queue *queue, const float *numbers,
                           const struct hw_tensor *matrix)
{
    const int64_t rows = matrix->extent[0], cols = matrix->extent[1];
    const int64_t most = RANDOM_NUMBERS / cols;
    enum hw_status status = HW_OK;
    for (int64_t row = 0; row < rows && !status; row += most) {
        const int64_t end = rows - row < most ? rows : row + most;
        struct hw_copy copy = { .src = hw_host_2d(numbers, HW_F32, end - row, cols) };
        status = hw_tensor_slice(&copy.dst, matrix, 0, row, end);
        if (!status)
            status = hw_copy(queue, &copy);
    }
    return status;
}
