/* SPDX-License-Identifier: MIT */
/* Compiles a source file with NVRTC, without an include path: nvrtc SOURCE PTX. The exit
 * status is 77 if the library is not installed. */
#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct program *program;

static int (*create_program)(program *, const char *source, const char *name, int headers,
                             const char *const *header_text,
                             const char *const *header_names);
static int (*compile_program)(program, int options, const char *const *option);
static int (*get_log_size)(program, size_t *size);
static int (*get_log)(program, char *log);
static int (*get_ptx_size)(program, size_t *size);
static int (*get_ptx)(program, char *ptx);

static void *open_library(void)
{
    static const char *const names[] = { "libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12",
                                         "libnvrtc.so.11.2",
                                         "/usr/local/cuda/lib64/libnvrtc.so" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        void *library = dlopen(names[i], RTLD_NOW);
        if (library)
            return library;
    }
    return NULL;
}

static int resolve(void *library)
{
    static const struct {
        const char *name;
        void *at;
    } symbols[] = { { "nvrtcCreateProgram", &create_program },
                    { "nvrtcCompileProgram", &compile_program },
                    { "nvrtcGetProgramLogSize", &get_log_size },
                    { "nvrtcGetProgramLog", &get_log },
                    { "nvrtcGetPTXSize", &get_ptx_size },
                    { "nvrtcGetPTX", &get_ptx } };
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
        *(void **)symbols[i].at = dlsym(library, symbols[i].name);
        if (!*(void **)symbols[i].at) {
            fprintf(stderr, "libnvrtc has no %s\n", symbols[i].name);
            return 0;
        }
    }
    return 1;
}

static char *read_text(const char *path)
{
    FILE *f = fopen(path, "rb");
    char *text = NULL;
    long size;
    if (f && fseek(f, 0, SEEK_END) == 0 && (size = ftell(f)) >= 0 &&
        fseek(f, 0, SEEK_SET) == 0 && (text = calloc((size_t)size + 1, 1)) &&
        fread(text, 1, (size_t)size, f) != (size_t)size) {
        free(text);
        text = NULL;
    }
    if (f)
        fclose(f);
    return text;
}

static void print_log(program p)
{
    size_t size = 0;
    char *log;
    if (get_log_size(p, &size) == 0 && (log = calloc(size + 1, 1))) {
        if (get_log(p, log) == 0)
            fputs(log, stderr);
        free(log);
    }
}

static int write_ptx(program p, const char *path)
{
    size_t size = 0;
    char *ptx = NULL;
    FILE *f = NULL;
    const int ok = get_ptx_size(p, &size) == 0 && size > 0 && (ptx = malloc(size)) &&
                   get_ptx(p, ptx) == 0 && (f = fopen(path, "wb")) &&
                   fwrite(ptx, 1, size - 1, f) == size - 1;
    free(ptx);
    return f && fclose(f) == 0 && ok;
}

int main(int argc, char **argv)
{
    const char *const options[] = { "--gpu-architecture=compute_75" };
    void *library = open_library();
    program p;

    if (argc != 3)
        return 2;
    if (!library) {
        puts("NVRTC (libnvrtc.so) is not installed");
        return 77;
    }
    char *source = read_text(argv[1]);
    if (!source || !resolve(library) || create_program(&p, source, argv[1], 0, NULL, NULL))
        return 1;
    if (compile_program(p, 1, options)) {
        print_log(p);
        return 1;
    }
    const int ok = write_ptx(p, argv[2]);
    free(source);
    return ok ? 0 : 1;
}
