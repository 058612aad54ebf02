/* SPDX-License-Identifier: MIT */
/* hw/types.h - the types that applications, the library and plugins share.
 *
 * Every struct here has a frozen layout: fixed-width fields and no implicit padding on
 * 64-bit targets (asserted at the end of the file). New fields are added only at the end,
 * and only to structs that begin with `size`. */
#ifndef HW_TYPES_H
#define HW_TYPES_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(_WIN32)
#define HW_EXPORT __declspec(dllexport)
#elif defined(__GNUC__)
#define HW_EXPORT __attribute__((visibility("default")))
#else
#define HW_EXPORT
#endif

/* The result of every function that can fail. A newer plugin or library may return a value
 * that is not listed here: treat it as an error. X(NAME, value, text): append only, because
 * the values are ABI. */
#define HW_STATUSES(X)                                                                     \
    X(OK, 0, "success")                                                                    \
    X(INVALID, 1, "the call breaks the contract; nothing was touched")                     \
    X(UNSUPPORTED, 2, "this combination is not implemented")                               \
    X(NO_MEMORY, 3, "out of memory, or over the memory limit")                             \
    X(NO_DEVICE, 4, "no such backend or device")                                           \
    X(NOT_READY, 5, "the work is still pending")                                           \
    X(ABI, 6, "library and plugin have no ABI version in common")                          \
    X(DRIVER, 7, "the vendor's driver reported an error")                                  \
    X(LOST, 8, "the device is lost; close its queues and free its buffers")                \
    X(FORKED, 9, "the context was opened before fork(); open a new one")                   \
    X(IO, 10, "a file could not be read or written")                                       \
    X(TIMEOUT, 11, "a deadline passed")                                                    \
    X(UNTRUSTED, 12, "other users may write to a file or directory")                       \
    X(INTERNAL, 13, "a plugin or the library broke its own contract")                      \
    X(END, 14, "past the end of a list")

enum hw_status {
#define X(NAME, value, text) HW_##NAME = value,
    HW_STATUSES(X)
#undef X
};

/* Element types. f32 to i64 are plain. The others are block types, bit-identical to GGML's:
 * a row is a whole number of blocks, little-endian. X(NAME, value, name, elements per
 * block, bytes per block): append only. */
#define HW_DTYPES(X)                                                                       \
    X(F32, 1, "f32", 1, 4)                                                                 \
    X(F16, 2, "f16", 1, 2)                                                                 \
    X(BF16, 3, "bf16", 1, 2)                                                               \
    X(I8, 4, "i8", 1, 1)                                                                   \
    X(I32, 5, "i32", 1, 4)                                                                 \
    X(I64, 6, "i64", 1, 8)                                                                 \
    X(Q8_0, 7, "q8_0", 32, 34)                                                             \
    X(Q4_0, 8, "q4_0", 32, 18)                                                             \
    X(Q4_K, 9, "q4_K", 256, 144)                                                           \
    X(Q5_K, 10, "q5_K", 256, 176)                                                          \
    X(Q6_K, 11, "q6_K", 256, 210)                                                          \
    X(Q4_1, 12, "q4_1", 32, 20)                                                            \
    X(Q5_0, 13, "q5_0", 32, 22)                                                            \
    X(Q5_1, 14, "q5_1", 32, 24)

enum hw_dtype {
    HW_NONE = 0, /* the operand is absent */
#define X(NAME, value, name, elements, bytes) HW_##NAME = value,
    HW_DTYPES(X)
#undef X
        HW_DTYPE_END /* one past the last dtype of this header */
};

/* Elements per block of `dtype`: 1 for plain types, 0 for a value that is not a dtype. */
static inline int64_t hw_dtype_block(int32_t dtype)
{
    switch (dtype) {
#define X(NAME, value, name, elements, bytes)                                              \
    case value:                                                                            \
        return elements;
        HW_DTYPES(X)
#undef X
    default:
        return 0;
    }
}

/* Bytes per block of `dtype`: the element's size for plain types, 0 for a value that is not
 * a dtype. */
static inline int64_t hw_dtype_bytes(int32_t dtype)
{
    switch (dtype) {
#define X(NAME, value, name, elements, bytes)                                              \
    case value:                                                                            \
        return bytes;
        HW_DTYPES(X)
#undef X
    default:
        return 0;
    }
}

#define HW_MAX_RANK 4

/* A typed, strided view of a buffer or of host memory. It is a plain value that owns
 * nothing: copy it freely.
 *
 * Extents are listed outermost first. Only extent[i] and stride[i] with i < rank are used;
 * set the rest to zero. Strides are in bytes and never negative. A stride of 0 repeats
 * (broadcasts) an input; it is invalid in an output. For a block type, the innermost stride
 * is the size of one block, and the innermost extent, in elements, is a multiple of the
 * block. A scalar has rank 1 and extent 1.
 *
 * The first element lies `offset` bytes into `buffer` or, if `buffer` is NULL, `offset`
 * bytes past the host address `data`. hw_tensor_host() and hw_tensor_view() in hw.h fill in
 * a contiguous tensor. */
struct hw_tensor {
    struct hw_buffer *buffer;
    void *data;
    uint64_t offset;
    int32_t dtype; /* enum hw_dtype; HW_NONE: the operand is absent */
    int32_t rank;  /* 1 to HW_MAX_RANK */
    int64_t extent[HW_MAX_RANK];
    int64_t stride[HW_MAX_RANK];
    /* 0: as the strides describe; otherwise a private layout of one device, from
     * hw_tensor_pack() */
    uint32_t layout;
    uint32_t reserved[3];
};

/* The kind of memory to allocate or import. Zero is ordinary device memory. */
enum hw_buffer_flag {
    HW_BUFFER_HOST_VISIBLE = 1, /* hw_buffer_host() returns an address */
    HW_BUFFER_PINNED = 2,       /* host memory that the device reads and writes directly */
    HW_BUFFER_READ_ONLY = 4,    /* for weights: of all ops only copy may write it */
    HW_BUFFER_WRITE_ONLY = 8,   /* a hint: kernels write it and rarely read it */
    HW_BUFFER_ZEROED = 16       /* all bytes are initially zero */
};

/* Where backends have the same rank, discrete devices come before integrated ones, then
 * other kinds, then CPUs. Software devices come last whatever their rank. */
enum hw_device_kind {
    HW_DEVICE_OTHER = 0,
    HW_DEVICE_DISCRETE = 1,
    HW_DEVICE_INTEGRATED = 2,
    HW_DEVICE_CPU = 3,
    HW_DEVICE_SOFTWARE = 4 /* a GPU's API implemented on a CPU: llvmpipe, PoCL */
};

enum hw_device_feature {
    HW_FEATURE_UNIFIED_MEMORY = 1, /* shares physical memory with the host */
    /* kernels read and write any host address, so that host tensors need no staging */
    HW_FEATURE_HOST_TENSORS = 2,
    HW_FEATURE_F16 = 4,       /* f16 arithmetic in hardware */
    HW_FEATURE_BF16 = 8,      /* bf16 arithmetic in hardware */
    HW_FEATURE_INT8_DOT = 16, /* 8-bit dot products in hardware */
    HW_FEATURE_MATRIX = 32    /* matrix units: tensor cores, MFMA, WMMA, AMX */
};

/* Facts about a device, as read from the device or its driver. A fact that cannot be read
 * is zero, an empty string or -1, never a guess. Strings are UTF-8 and always
 * NUL-terminated. */
struct hw_device_info {
    uint32_t size; /* set by the caller: sizeof(struct hw_device_info) */
    int32_t kind;  /* enum hw_device_kind */
    char name[128];
    char vendor[64];
    char driver[64];       /* version of the vendor's driver */
    char arch[64];         /* "sm_90", "gfx942", "x86-64-v4" */
    uint64_t memory_total; /* bytes */
    uint64_t memory_free;  /* bytes, at the time of the call; 0: unknown */
    uint64_t features;     /* bits of enum hw_device_feature */
    uint32_t units;        /* cores, multiprocessors, compute units */
    int32_t pci_domain;    /* -1: not a PCI device, or unknown */
    int32_t pci_bus;
    int32_t pci_device;
    int32_t pci_function;
    uint32_t has_uuid;
    uint8_t uuid[16];
    uint64_t buffer_max; /* bytes of the largest buffer; 0: no limit besides memory */
    /* Buffers begin at multiples of this: a power of two from 256 to 1 MiB. A plugin may
     * report less, or 0; the library then uses and reports 256. */
    uint32_t buffer_alignment;
    uint32_t reserved;
};

/* One row of a device's kernel table: a kernel that implements an op. */
struct hw_kernel_info {
    uint32_t size; /* set by the caller */
    /* 1: this device can run it; 0: the plugin has it, but for other devices */
    uint32_t eligible;
    char name[64];   /* as in HW_KERNEL and in logs: "matmul_sm90", "rmsnorm" */
    char needs[128]; /* what the row requires of the device and the operands, as text */
};

enum hw_log_level { HW_LOG_ERROR = 1, HW_LOG_WARN = 2, HW_LOG_INFO = 3, HW_LOG_DEBUG = 4 };

enum hw_queue_flag {
    /* for debugging: every call waits for its own work and returns that work's errors */
    HW_QUEUE_SYNCHRONOUS = 1,
    HW_QUEUE_TIMING = 2 /* events with HW_EVENT_TIMING can time work on this queue */
};

enum hw_event_flag {
    HW_EVENT_TIMING = 1 /* the event takes a time stamp on a queue with HW_QUEUE_TIMING */
};

/* Memory to import: the `bytes` bytes that begin `offset` bytes into the object named by
 * `handle`. `kind` says what the handle is: "host" for a host address, such as a mapped
 * file's, or "<plugin>.<what>" ("cuda.memory", "opencl.mem"), as listed in the plugin's
 * documentation. */
struct hw_import {
    uint32_t size;
    uint32_t flags; /* HW_BUFFER_READ_ONLY, HW_BUFFER_WRITE_ONLY */
    const char *kind;
    void *handle;
    uint64_t offset;
    uint64_t bytes;
};

/* An argument of an extension op or a user kernel. */
enum hw_arg_kind { HW_ARG_TENSOR = 1, HW_ARG_INT = 2, HW_ARG_FLOAT = 3 };

struct hw_arg {
    uint32_t kind; /* enum hw_arg_kind: which of the three fields below is used */
    uint32_t reserved;
    const struct hw_tensor *tensor;
    int64_t i;
    double f;
};

/* A kernel written by the application: either source text in the backend's language, or a binary
 * for it. A backend may take one of the two, or none: its documentation says so. */
struct hw_user_kernel {
    uint32_t size;
    uint32_t group; /* work-items per group, in the first dimension */
    const char *name;
    /* One letter per argument, at most 64: t input tensor, o output tensor, x tensor that
     * is both, i integer, f float. */
    const char *signature;
    const char *source;  /* NULL if there is a blob */
    const void *blob;    /* NULL if there is source text */
    uint64_t blob_bytes; /* must not be 0 if there is a blob */
    /* work-items per group in the second and the third dimension; 0 means 1 */
    uint32_t group_y, group_z;
};

#define HW_STATIC_ASSERT_(name, condition)                                                 \
    typedef char hw_assert_##name[(condition) ? 1 : -1]
#if UINTPTR_MAX == UINT64_MAX
HW_STATIC_ASSERT_(tensor_is_frozen, sizeof(struct hw_tensor) == 112);
HW_STATIC_ASSERT_(device_info_is_packed, sizeof(struct hw_device_info) == 408);
HW_STATIC_ASSERT_(arg_is_packed, sizeof(struct hw_arg) == 32);
HW_STATIC_ASSERT_(import_is_packed, sizeof(struct hw_import) == 40);
HW_STATIC_ASSERT_(kernel_info_is_packed, sizeof(struct hw_kernel_info) == 200);
#endif

#ifdef __cplusplus
}
#endif
#endif
