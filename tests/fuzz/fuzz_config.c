/* SPDX-License-Identifier: MIT */
/* fuzz_config.c - configuration files of arbitrary bytes, whose values are then applied
 * as settings. */
#include "settings/config_file.h"
#include "settings/config_value.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct file_values values = { 0 };
    struct settings settings = { 0 };
    enum hw_status status = config_parse(&values, (const char *)data, size, "fuzz.conf");
    for (int i = 0; i < SETTING_COUNT && !status; i++) {
        if (values.text[i] && strlen(values.text[i]) > size)
            abort();
        if (values.text[i])
            (void)config_apply(&settings, (enum setting)i, values.text[i], "fuzz.conf");
    }
    if (settings.threads > 4096 || settings.log_level > HW_LOG_DEBUG ||
        settings.log_level < 0)
        abort();
    file_values_free(&values);
    return 0;
}
