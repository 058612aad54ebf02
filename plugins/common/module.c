/* SPDX-License-Identifier: MIT */
/* module.c - builds programs, each only once. */
#include "module.h"

#include "cache.h"

#include <stdlib.h>

static bool has_suffix(const char *name, const char *suffix)
{
    const size_t length = strlen(name), tail = strlen(suffix);

    return length >= tail && strcmp(name + length - tail, suffix) == 0;
}

static bool is_source_of(const char *name, const char *kernel)
{
    const size_t length = strlen(kernel);

    return strncmp(name, kernel, length) == 0 &&
           (strcmp(name + length, ".c") == 0 || strcmp(name + length, ".cl") == 0);
}

bool module_parts(struct module_program *program, const struct embedded *list,
                  const char *kernel)
{
    const struct embedded *source = NULL;
    int count = 0;

    memset(program->parts, 0, sizeof program->parts);
    for (; list->name; list++) {
        if (is_source_of(list->name, kernel))
            source = list;
        if (has_suffix(list->name, ".h") && count < MODULE_PARTS)
            program->parts[count++] = list;
    }
    if (!source || count >= MODULE_PARTS)
        return false;
    program->parts[count] = source;
    return true;
}

/* The length comes first, so that moving text from one field to the next changes the hash. */
static void add_field(struct sha256 *hash, const void *data, size_t bytes)
{
    const uint64_t length = bytes;

    sha256_add(hash, &length, sizeof length);
    sha256_add(hash, data, bytes);
}

static void make_key(const struct module_builder *builder,
                     const struct module_program *program, uint8_t key[SHA256_BYTES])
{
    const char *const fields[] = { builder->build, builder->device, builder->driver,
                                   program->options };
    struct sha256 hash;

    sha256_begin(&hash);
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        add_field(&hash, fields[i], strlen(fields[i]));
    for (int i = 0; i < MODULE_PARTS && program->parts[i]; i++)
        add_field(&hash, program->parts[i]->data, program->parts[i]->bytes);
    sha256_end(&hash, key);
}

static char *join_parts(const struct module_program *program)
{
    size_t bytes = 1, used = 0;

    for (int i = 0; i < MODULE_PARTS && program->parts[i]; i++)
        bytes += program->parts[i]->bytes;
    char *text = malloc(bytes);
    for (int i = 0; text && i < MODULE_PARTS && program->parts[i]; i++) {
        memcpy(text + used, program->parts[i]->data, program->parts[i]->bytes);
        used += program->parts[i]->bytes;
    }
    if (text)
        text[used] = '\0';
    return text;
}

/* Compiles to an image or, if `module` is not NULL, to a module without an image. */
static int32_t compile(const struct module_builder *builder,
                       const struct module_program *program, struct module_image *image,
                       void **module)
{
    char *text = join_parts(program);

    if (!text)
        return hw_fail(builder->host, HW_NO_MEMORY, "out of memory for the text of %s",
                       program->name);
    const int32_t status = module
                               ? builder->make(builder->user, program, text, image, module)
                               : builder->compile(builder->user, program, text, image);
    free(text);
    if (status == HW_OK)
        return HW_OK;
    image->log[sizeof image->log - 1] = '\0';
    return hw_fail(builder->host, status, "cannot compile %s for %s: %s", program->name,
                   builder->device, image->log[0] ? image->log : "no log");
}

/* Logs a warning if the user can fix the cause. */
static void tell(const struct module_builder *builder, const char *why)
{
    const struct hw_host *host = builder->host;
    const bool shared = cache_is_shared(host->cache_dir);
    char line[1200];

    snprintf(line, sizeof line, "compiled programs are not kept: %s%s%.512s", why,
             shared ? "; run chmod go-w " : "", shared ? host->cache_dir : "");
    host->log(host->instance, shared ? HW_LOG_WARN : HW_LOG_DEBUG, line);
}

static void store(struct module_builder *builder, const uint8_t key[SHA256_BYTES],
                  const struct module_image *image)
{
    char why[512];

    if (!cache_write(builder->host->cache_dir, key, image->data, image->bytes, why,
                     sizeof why) &&
        !atomic_exchange(&builder->silent, true))
        tell(builder, why);
}

static bool load_cached(const struct module_builder *builder,
                        const uint8_t key[SHA256_BYTES], void **module)
{
    size_t bytes = 0;
    void *data = cache_read(builder->host->cache_dir, key, &bytes);
    const bool loaded = data && builder->load(builder->user, data, bytes, module) == HW_OK;

    free(data);
    return loaded;
}

int32_t module_load(struct module_builder *builder, const struct module_program *program,
                    void **module)
{
    const bool caching = builder->host->cache_dir[0] != '\0';
    struct module_image image = { 0 };
    uint8_t key[SHA256_BYTES];

    make_key(builder, program, key);
    if (caching && load_cached(builder, key, module))
        return HW_OK;
    if (!caching && builder->make)
        return compile(builder, program, &image, module);
    int32_t status = compile(builder, program, &image, NULL);
    if (status == HW_OK)
        status = builder->load(builder->user, image.data, image.bytes, module);
    if (status == HW_OK && caching)
        store(builder, key, &image);
    free(image.data);
    return status;
}
