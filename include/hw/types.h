/* SPDX-License-Identifier: MIT */
/* hw/types.h - the words that applications, the library and plugins share.
 *
 * Every struct here has a frozen layout: fixed-width fields, no implicit padding on 64-bit
 * targets (asserted at the end), growth only at the end of structs that begin with `size`. */
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

/* What every function answers. A value not listed here, from a newer plugin or library, is an
 * error like any other. X(NAME, value, text): append only, the values are ABI. */
#define HW_STATUSES(X)                                                                     \
    X(OK, 0, "success")                                                                    \
    X(INVALID, 1, "the caller broke the contract; nothing was touched")                    \
    X(UNSUPPORTED, 2, "nobody implements this combination")                                \
    X(NO_MEMORY, 3, "out of memory, or over the memory limit")                             \
    X(NO_DEVICE, 4, "no such backend or device")                                           \
    X(NOT_READY, 5, "the work asked about is not done yet")                                \
    X(ABI, 6, "library and plugin share no ABI version")                                   \
    X(DRIVER, 7, "the vendor's driver reported an error")                                  \
    X(LOST, 8, "the device is lost; close its queues and buffers")                         \
    X(FORKED, 9, "used in a child after fork(); open a context of its own")                \
    X(IO, 10, "a file could not be read or written")                                       \
    X(TIMEOUT, 11, "a deadline passed")                                                    \
    X(UNTRUSTED, 12, "a file or directory others may write to")                            \
    X(INTERNAL, 13, "a plugin or the library broke its own rules")                         \
    X(END, 14, "past the last of a list")

enum hw_status {
#define X(NAME, value, text) HW_##NAME = value,
    HW_STATUSES(X)
#undef X
};

/* What an element is. Block types are GGML's, bit for bit: rows of whole blocks, little endian.
 * X(NAME, value, name, elements per block, bytes per block): append only. */
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
    X(Q6_K, 11, "q6_K", 256, 210)

enum hw_dtype {
    HW_NONE = 0, /* an absent operand */
#define X(NAME, value, name, elements, bytes) HW_##NAME = value,
    HW_DTYPES(X)
#undef X
        HW_DTYPE_END /* one past the last this header knows */
};

/* Elements and bytes of one block of `dtype`; 1 and the element's size for plain types, 0 for
 * a value that is no dtype. */
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

/* A typed, strided view of a buffer or of host memory. A value: copy it freely; it owns nothing.
 *
 * Extents are outermost first; extent[i] and stride[i] count for i < rank, the rest is zero.
 * Strides are in bytes, explicit and never negative; 0 repeats (broadcasts) an input and is
 * invalid in an output. The innermost stride of a block type is the bytes of one block, and
 * its innermost extent, in elements, a multiple of the block. A scalar has rank 1, extent 1.
 *
 * The first element lies `offset` bytes into `buffer`, or, with `buffer` NULL, `offset` bytes
 * past the host address `data`. Constructors: hw_tensor_host() and hw_tensor_view() in hw.h. */
struct hw_tensor {
    struct hw_buffer *buffer;
    void *data;
    uint64_t offset;
    int32_t dtype; /* enum hw_dtype; HW_NONE: absent */
    int32_t rank;  /* 1 to HW_MAX_RANK */
    int64_t extent[HW_MAX_RANK];
    int64_t stride[HW_MAX_RANK];
    /* 0: as the strides say; else a device's own, made by hw_tensor_pack() */
    uint32_t layout;
    uint32_t reserved[3];
};

/* What a piece of memory is for. Zero is ordinary memory of the device. */
enum hw_buffer_flag {
    HW_BUFFER_HOST_VISIBLE = 1, /* hw_buffer_host() answers an address */
    HW_BUFFER_PINNED = 2,       /* host memory that the device reads and writes directly */
    HW_BUFFER_READ_ONLY = 4,    /* weights: no op writes it but copy; to a plugin, a hint */
    HW_BUFFER_WRITE_ONLY = 8,   /* a hint: kernels write it, and hardly ever read it */
    HW_BUFFER_ZEROED = 16       /* all bytes are zero at first */
};

/* Sorted by preference where a backend has several. */
enum hw_device_kind {
    HW_DEVICE_OTHER = 0,
    HW_DEVICE_DISCRETE = 1,
    HW_DEVICE_INTEGRATED = 2,
    HW_DEVICE_CPU = 3,
    HW_DEVICE_SOFTWARE = 4 /* a GPU's API on a processor: llvmpipe, PoCL */
};

enum hw_device_feature {
    HW_FEATURE_UNIFIED_MEMORY = 1, /* shares physical memory with the host */
    HW_FEATURE_HOST_TENSORS =
        2,               /* kernels read and write any host address; nothing is staged */
    HW_FEATURE_F16 = 4,  /* f16 arithmetic in hardware */
    HW_FEATURE_BF16 = 8, /* bf16 arithmetic in hardware */
    HW_FEATURE_INT8_DOT = 16, /* 8-bit dot products in hardware */
    HW_FEATURE_MATRIX = 32    /* matrix units: tensor cores, MFMA, WMMA, AMX */
};

/* Facts of a device, read from the device: a fact that can not be read is zero, an empty string
 * or -1, never a guess. Strings are UTF-8 and always terminated. */
struct hw_device_info {
    uint32_t size; /* set by the caller: sizeof(struct hw_device_info) */
    int32_t kind;  /* enum hw_device_kind */
    char name[128];
    char vendor[64];
    char driver[64];       /* version of the vendor's driver */
    char arch[64];         /* "sm_90", "gfx942", "x86-64-v4" */
    uint64_t memory_total; /* bytes */
    uint64_t memory_free;  /* bytes, at the time of asking; 0: not known */
    uint64_t features;     /* bits of enum hw_device_feature */
    uint32_t units;        /* cores, multiprocessors, compute units */
    int32_t pci_domain;    /* -1: not a PCI device, or not known */
    int32_t pci_bus;
    int32_t pci_device;
    int32_t pci_function;
    uint32_t has_uuid;
    uint8_t uuid[16];
    uint64_t buffer_max; /* bytes of the largest buffer; 0: no limit of its own */
    /* buffers begin at multiples of it: a power of two, at most 1 MiB; the library
     * answers 256 for less, and for 0 */
    uint32_t buffer_alignment;
    uint32_t reserved;
};

/* One row of a device's kernel table. */
struct hw_kernel_info {
    uint32_t size; /* set by the caller */
    /* 1: this device can run it; 0: it is there, but not for this device */
    uint32_t eligible;
    char name[64];   /* what HW_KERNEL and logs call it: "matmul_sm90", "rmsnorm" */
    char needs[128]; /* in words, what the row asks of device and operands */
};

enum hw_log_level { HW_LOG_ERROR = 1, HW_LOG_WARN = 2, HW_LOG_INFO = 3, HW_LOG_DEBUG = 4 };

enum hw_queue_flag {
    HW_QUEUE_SYNCHRONOUS =
        1,              /* every call returns when its work is done, with its errors */
    HW_QUEUE_TIMING = 2 /* work on it can be timed by events that are made for that */
};

enum hw_event_flag {
    HW_EVENT_TIMING = 1 /* recorded on a queue with HW_QUEUE_TIMING, it keeps the time */
};

/* Memory that somebody else made: `bytes` bytes, `offset` bytes into what the handle stands
 * for. `kind` says what the handle is: "host", a host address, e.g. of a mapped file; else
 * "<plugin>.<what>" ("cuda.memory", "opencl.mem"), as the plugin's documentation lists them. */
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
    uint32_t kind; /* enum hw_arg_kind: says which of the three below counts */
    uint32_t reserved;
    const struct hw_tensor *tensor;
    int64_t i;
    double f;
};

/* A kernel that the user wrote: source in the kernel dialect, or one blob for this backend. */
struct hw_user_kernel {
    uint32_t size;
    uint32_t group; /* work-items per group */
    const char *name;
    /* one letter per argument, at most 64: t tensor in, o tensor out, x tensor in and
     * out, i integer, f float */
    const char *signature;
    const char *source;  /* or NULL */
    const void *blob;    /* or NULL */
    uint64_t blob_bytes; /* not 0 with a blob */
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
