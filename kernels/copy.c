/* SPDX-License-Identifier: MIT */
/* dst = src, with any steps and conversion: one group per ELEMENT_SPAN neighbours of a row. */

/* The distance between elements, the first one of this work-item, and the end. */
struct copy_span {
    i64 dst_step, src_step, first, end;
};

#define COPY_BITS(type)                                                                    \
    for (i64 i = s.first; i < s.end; i += GROUP)                                           \
    *(GLOBAL type *)(dst + i * s.dst_step) = *(GLOBAL const type *)(src + i * s.src_step)

/* Copies elements unchanged. */
FUNC void copy_bits(GLOBAL u8 *dst, GLOBAL const u8 *src, int type, struct copy_span s)
{
    switch (type) {
    case STORAGE_I8:
        COPY_BITS(u8);
        break;
    case STORAGE_I16:
        COPY_BITS(u16);
        break;
    case STORAGE_I32:
        COPY_BITS(u32);
        break;
    case STORAGE_I64:
        COPY_BITS(u64);
        break;
    }
}

FUNC int copy_is_bits(int type)
{
    return type == STORAGE_I16 || (type >= STORAGE_I8 && type <= STORAGE_I64);
}

/* Whether elements are neighbours: those of blocks always are. */
FUNC int copy_is_dense(int type, i64 step)
{
    return elements_of(type) > 1 || step == (type == STORAGE_F32 ? 4 : 2);
}

KERNEL(copy)(GLOBAL u8 *dst, GLOBAL const u8 *src, ARGS(struct copy_args) a GRID)
{
    const struct span whole = span_of(group_id(), a.n1, a.n2, a.cols);
    struct copy_span s;
    s.dst_step = a.dst_step;
    s.src_step = a.src_step;
    s.first = whole.first + local_id();
    s.end = whole.end;

    dst += row_at(a.dst, whole.at);
    src += row_at(a.src, whole.at);
    if (copy_is_bits(a.src_type))
        copy_bits(dst, src, a.src_type, s);
    else if (copy_is_dense(a.dst_type, a.dst_step) && copy_is_dense(a.src_type, a.src_step))
        convert_row(dst, a.dst_type, src, a.src_type, whole.first, whole.end - whole.first,
                    local_id());
    else
        for (i64 i = s.first; i < s.end; i += GROUP)
            store_any(dst + i * s.dst_step, a.dst_type, 0,
                      load_any(src + i * s.src_step, a.src_type, 0));
}
