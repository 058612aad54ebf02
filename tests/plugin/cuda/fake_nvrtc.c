/* SPDX-License-Identifier: MIT */
/* fake_nvrtc.c - a stand-in for NVRTC. It compiles any text that contains the kernel `scale`: the
 * result is always scale.ptx, the file that $PTX names, even if machine code is requested. */
#include "fake_nvrtc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SUCCESS, OUT_OF_MEMORY, COMPILATION = 6, PTX_BYTES = 1 << 14 };

struct program {
    int scales; /* whether the text has the kernel */
    char ptx[PTX_BYTES];
};

static const char complaint[] = "program(1): error: identifier \"scale\" is undefined\n";

static struct fake_nvrtc state;

struct fake_nvrtc *fake_nvrtc_state(void)
{
    return &state;
}

static int enter(void)
{
    return ++state.calls == state.fails ? state.result : SUCCESS;
}

#define REQUIRED(result, name, arguments, exported) result exported arguments;
#include "exported.def"

int nvrtcVersion(int *major, int *minor)
{
    *major = state.version ? state.version / 1000 : MAJOR;
    *minor = state.version % 1000 / 10;
    return enter();
}

const char *nvrtcGetErrorString(int result)
{
    return result == COMPILATION ? "NVRTC_ERROR_COMPILATION" : "NVRTC_ERROR_OTHER";
}

int nvrtcGetNumSupportedArchs(int *count)
{
    *count = state.newest ? 2 : 1;
    return enter();
}

int nvrtcGetSupportedArchs(int *archs)
{
    archs[0] = 999;
    if (state.newest)
        archs[1] = state.newest;
    return enter();
}

int nvrtcCreateProgram(void **out, const char *text, const char *name, int headers,
                       const char *const *header_texts, const char *const *header_names)
{
    const int failure = enter();
    struct program *program = failure ? NULL : calloc(1, sizeof *program);
    (void)name, (void)headers, (void)header_texts, (void)header_names;
    if (!program)
        return failure ? failure : OUT_OF_MEMORY;
    program->scales = strstr(text, "extern \"C\" __global__ void scale(") != NULL;
    state.programs++;
    *out = program;
    return SUCCESS;
}

int nvrtcDestroyProgram(void **program)
{
    free(*program);
    *program = NULL;
    state.programs--;
    return SUCCESS;
}

int nvrtcCompileProgram(void *handle, int count, const char *const *options)
{
    struct program *program = handle;
    FILE *file = fopen(getenv("PTX"), "rb");
    const int failure = enter();
    if (!file)
        return OUT_OF_MEMORY;
    const size_t bytes = fread(program->ptx, 1, sizeof program->ptx - 1, file);
    fclose(file);
    if (failure || count != 1 || !bytes || !program->scales)
        return failure ? failure : COMPILATION;
    snprintf(state.option, sizeof state.option, "%s", options[0]);
    state.compiled++;
    return SUCCESS;
}

int nvrtcGetProgramLogSize(void *program, size_t *bytes)
{
    (void)program;
    *bytes = sizeof complaint;
    return enter();
}

int nvrtcGetProgramLog(void *program, char *log)
{
    (void)program;
    memcpy(log, complaint, sizeof complaint);
    return enter();
}

int nvrtcGetPTXSize(void *program, size_t *bytes)
{
    *bytes = strlen(((struct program *)program)->ptx) + 1;
    return enter();
}

int nvrtcGetPTX(void *program, char *ptx)
{
    strcpy(ptx, ((struct program *)program)->ptx);
    return enter();
}

int nvrtcGetCUBINSize(void *program, size_t *bytes)
{
    return nvrtcGetPTXSize(program, bytes);
}

int nvrtcGetCUBIN(void *program, char *cubin)
{
    return nvrtcGetPTX(program, cubin);
}
