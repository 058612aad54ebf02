/* SPDX-License-Identifier: MIT */
/* products.c - see products.h. */
#include "products.h"

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

bool product_read(const char *word, struct product *p)
{
    const size_t length = strcspn(word, ":");
    const char *at = word + length;
    *p = (struct product){ 0 };
    for (int32_t type = 1; type < HW_DTYPE_END; type++)
        if (strlen(hw_dtype_name(type)) == length &&
            !strncmp(word, hw_dtype_name(type), length))
            p->type = type;
    return p->type && read_extent(&at, ':', &p->m) && read_extent(&at, 'x', &p->n) &&
           read_extent(&at, 'x', &p->k) && !*at;
}

double product_operations(const struct product *p)
{
    return 2.0 * (double)p->m * (double)p->n * (double)p->k;
}

float *random_numbers(void)
{
    uint64_t state = 1;
    float *numbers = malloc(RANDOM_NUMBERS * sizeof *numbers);
    for (int i = 0; numbers && i < RANDOM_NUMBERS; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        numbers[i] = (float)(int32_t)(state >> 32) * 0x1p-31f;
    }
    return numbers;
}

/* Whole rows at a time, which are whole blocks; an extent is at most RANDOM_NUMBERS. */
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
