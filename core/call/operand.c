/* SPDX-License-Identifier: MIT */
/* operand.c - the check of one tensor that a device is to use. */
#include "call/operand.h"

#include "base/likely.h"
#include "memory/buffer.h"

/* Only the device knows the layout of a packed tensor, so the tensor can only be used whole, as
 * hw_tensor_pack() made it. */
static bool packed_fits(const struct use *use, const struct hw_tensor *t,
                        struct byte_range *where)
{
    const struct hw_buffer *buffer = t->buffer;
    if (!use->reads_packed || !buffer || buffer->device != use->device->impl ||
        (t->reserved[0] | t->reserved[1] | t->reserved[2]))
        return false;
    const struct hw_tensor *made = &buffer_of(buffer)->packed;
    if (made->layout != t->layout || made->dtype != t->dtype || t->offset ||
        !equal_extents(made, t))
        return false;
    const uint64_t begin = (uint64_t)(uintptr_t)buffer->host;
    *where = (struct byte_range){ buffer->host ? NULL : buffer, begin,
                                  begin + buffer->bytes };
    return true;
}

static bool other_device_fault(const struct use *use, const struct hw_tensor *t,
                               char why[FAULT_SIZE])
{
    const struct hw_device *owner = buffer_of(t->buffer)->owner;
    if (owner->context != use->device->context)
        return faulty(why, "it is in a buffer of another context; copy it to host memory "
                           "on a queue of that context");
    return faulty(
        why, "it is in a buffer of %s, but the queue is on %s; use hw_copy() to move it",
        owner->name, use->device->name);
}

bool use_fault(const struct use *use, const struct hw_tensor *t, struct byte_range *where,
               char why[FAULT_SIZE])
{
    char names[DESCRIBE_SIZE];
    if (unlikely(!t->layout && shape_fault(t, why)))
        return true;
    if (unlikely((uint32_t)t->dtype >= HW_DTYPE_END || !(use->dtypes >> t->dtype & 1)))
        return faulty(why, "its dtype must be %s", describe_dtypes(use->dtypes, names));
    if (unlikely(t->buffer && t->buffer->device != use->device->impl))
        return other_device_fault(use, t, why);
    if (unlikely(t->buffer && use->writes && !use->fills &&
                 t->buffer->flags & HW_BUFFER_READ_ONLY))
        return faulty(why, "it is an output, but its buffer is read-only");
    if (likely(!t->layout))
        return bytes_fault(t, use->writes, where, why);
    return !packed_fits(use, t, where) &&
           faulty(
               why,
               "it is packed (layout %u); only weights may be packed, and only whole, as "
               "hw_tensor_pack() made them",
               (unsigned)t->layout);
}
