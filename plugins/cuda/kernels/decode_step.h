/* SPDX-License-Identifier: MIT */
/* decode_step.h - a decoding step of one token as one launch of attention_decode.cu: rope of q
 * and k, storing k and v, and attention. Follows rotate.h and attention_decode.cu's group. */
#ifndef CUDA_KERNELS_DECODE_STEP_H
#define CUDA_KERNELS_DECODE_STEP_H

/* For 9.0 alone, where heads are rotated by tuned kernels. The hash of the sources counts it. */
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900

/* Pieces of 64 pairs of a head. */
#define PIECES_OF(dim) (((dim) / 2 + 63) / 64)

/* What a lane has of the rows of q that its warp rotates; of k or v, that the first warps do. */
template <int TYPE, int DIM> struct rotated {
    enum { WARPS = DECODE_WARPS(TYPE, DIM), ROWS = DECODE_ROWS / WARPS };
    enum { PIECES = PIECES_OF(DIM) };
    struct four q[ROWS][PIECES], fresh[PIECES];
    struct angles angles[PIECES];
};

template <int TYPE, int DIM>
FUNC void find_angles(struct rotated<TYPE, DIM> &my, const struct heads_job &job)
{
    const i64 position = position_of(job, 0);
    UNROLL for (int p = 0; p < my.PIECES; p++)
        my.angles[p] = angles_of(job, position, local_id() % 32 * 2 % (DIM / 2) + p * 64);
}

/* Angles that a launch keeps for those behind it: of each lane, one piece after the other. */
FUNC u64 kept_angles(u64 all, int piece)
{
    return all + (u64)(piece * 32 + local_id() % 32) * sizeof(struct angles);
}

template <int TYPE, int DIM> FUNC void load_angles(struct rotated<TYPE, DIM> &my, u64 from)
{
    UNROLL for (int p = 0; p < my.PIECES; p++)
    {
        const struct quad v = load_quad(kept_angles(from, p));
        my.angles[p] = { { f32_of_bits(v.v[0]), f32_of_bits(v.v[1]) },
                         { f32_of_bits(v.v[2]), f32_of_bits(v.v[3]) } };
    }
}

template <int TYPE, int DIM>
FUNC void keep_angles(const struct rotated<TYPE, DIM> &my, u64 to)
{
    UNROLL for (int p = 0; p < my.PIECES; p++)
    {
        const struct angles &a = my.angles[p];
        store_quad(kept_angles(to, p),
                   { { bits_of_f32(a.cosine[0]), bits_of_f32(a.cosine[1]),
                       bits_of_f32(a.sine[0]), bits_of_f32(a.sine[1]) } });
    }
}

/* A head of a row of x; zeros behind its end. */
template <int DIM>
FUNC void load_head(struct four *to, const struct heads_job &job, int head)
{
    UNROLL for (int p = 0; p < PIECES_OF(DIM); p++)
    {
        const int i = local_id() % 32 * 2 + p * 64;
        to[p] = { { 0.0f } };
        if (i < DIM / 2)
            to[p] = load_four(job.x + (u64)(head * job.rope.x.stride[2]), job.type, i,
                              DIM / 2);
    }
}

/* Of k and v it may be too late, which are rotated in place: only a group that stores them uses
 * what it has loaded, and no other writes there. */
template <int TYPE, int DIM>
FUNC void load_heads(struct rotated<TYPE, DIM> &my, const struct decode_step_args &s,
                     const struct run &run)
{
    const int warp = local_id() / 32;
    UNROLL for (int n = 0; n < my.ROWS; n++)
    {
        const int row = n * my.WARPS + warp;
        const int head = run.kv_head * s.decode.heads_each + row;
        UNROLL for (int p = 0; p < my.PIECES; p++) my.q[n][p] = { { 0.0f } };
        if (row < run.rows)
            load_head<DIM>(my.q[n], s.q, head);
    }
    if (warp < 2)
        load_head<DIM>(my.fresh, warp ? s.v : s.k, run.kv_head);
}

/* Rotates the rows of q, and puts scale q into shared memory. */
template <int TYPE, int DIM>
FUNC void rotate_q(struct rotated<TYPE, DIM> &my, struct quad *query,
                   const struct decode_step_args &s)
{
    enum { HALF = DIM / 2 };
    const int lane = local_id() % 32, warp = local_id() / 32;
    UNROLL for (int n = 0; n < my.ROWS; n++) UNROLL for (int p = 0; p < my.PIECES; p++)
    {
        const int row = n * my.WARPS + warp, i = lane * 2 + p * 64;
        struct four &x = my.q[n][p];
        rotate_four(x, my.angles[p], s.q.rope.interleaved);
        UNROLL for (int e = 0; e < 4 && i < HALF; e++)
            put_q<TYPE>(query, row, i + e % 2 + e / 2 * HALF,
                        s.decode.a.scale * rounded(x.v[e], s.q.type));
    }
}

template <int DIM>
FUNC void store_head(const struct four *x, const struct heads_job &job, int head)
{
    const u64 y = job.y + (u64)(head * job.rope.y.stride[2]);
    UNROLL for (int p = 0; p < PIECES_OF(DIM); p++)
    {
        const int i = local_id() % 32 * 2 + p * 64;
        if (i < DIM / 2) {
            store_pair(y, job.type, i, x[p].v);
            store_pair(y, job.type, i + DIM / 2, x[p].v + 2);
        }
    }
}

/* Stores what rotate_q() has rotated. All groups of the run have read what may lie there. */
template <int TYPE, int DIM>
FUNC void store_q(const struct rotated<TYPE, DIM> &my, const struct decode_step_args &s,
                  const struct share &share)
{
    UNROLL for (int n = 0; n < my.ROWS; n++)
    {
        const int row = n * my.WARPS + local_id() / 32;
        if (row < share.run.rows)
            store_head<DIM>(my.q[n], s.q, share.run.kv_head * s.decode.heads_each + row);
    }
}

/* A warp puts a head of k or v into shared memory as the cache stores it, and stores it in a row; k
 * is rotated before. Row -1: nowhere. */
template <int TYPE, int DIM>
FUNC void make_fresh(u8 *fresh, struct rotated<TYPE, DIM> &my, const struct heads_job &job,
                     const struct cache &cache, i64 row)
{
    const int lane = local_id() % 32;
    UNROLL for (int p = 0; p < my.PIECES; p++)
    {
        if (job.y)
            rotate_four(my.fresh[p], my.angles[p], job.rope.interleaved);
        if (lane * 2 + p * 64 < DIM / 2)
            store_four(job, (u64)fresh, lane * 2 + p * 64, my.fresh[p], DIM / 2, lane);
    }
    warp_barrier();
    LOOP for (int i = lane; row >= 0 && i < cache.bytes / 2; i += 32)(
        (u16 *)(cache.from + row * cache.stride))[i] = ((const u16 *)fresh)[i];
}

/* Member by member: an address would keep both out of registers. */
template <int TYPE, int DIM>
FUNC struct cache cache_of(const struct part<TYPE, DIM> &part, bool is_k)
{
    return { is_k ? part.k.from : part.v.from, is_k ? part.k.stride : part.v.stride,
             is_k ? part.k.bytes : part.v.bytes };
}

/* The group that stores a key is the one that sees it, or else the first. */
FUNC bool does_store(const struct share &my, i64 row)
{
    const bool seen = row >= my.all.first && row < my.all.end;
    return seen ? row >= my.keys.first && row < my.keys.end : my.split == 0;
}

/* A group: a split, a head of k and v. */
template <int TYPE, int DIM> FUNC void decode_step(const struct decode_step_args &s)
{
    extern SHARED struct quad memory[];
    u8 *k = (u8 *)memory + DECODE_Q(DIM) + DECODE_PITCH(TYPE, DIM);
    u8 *v = k + DECODE_PITCH(TYPE, DIM);
    struct rotated<TYPE, DIM> my;
    launch_next_if_first();
    if (!s.decode.constant) {
        wait_for_previous();
        load_heads(my, s, own_run(s.decode));
    }
    const struct share share = share_of(s.decode);
    struct part<TYPE, DIM> part = part_of<TYPE, DIM>((u8 *)memory, s.decode, share);
    const i64 row = row_number(s.k, 0);
    if (share.split >= share.splits)
        return;
    const bool stores = does_store(share, row), is_k = local_id() / 32 == 0;
    const bool early = !s.decode.constant || share.splits == 1;
    if (early)
        begin_part(part, (u8 *)memory);
    if (!s.angles_there)
        find_angles(my, s.q);
    if (s.decode.constant) {
        wait_for_previous();
        load_heads(my, s, share.run);
    }
    if (s.angles_there)
        load_angles(my, s.angles);
    else if (s.angles && share.split == 0 && share.run.kv_head == 0 && is_k)
        keep_angles(my, s.angles);
    if (!early)
        begin_part(part, (u8 *)memory);
    rotate_q<TYPE>(my, memory, s);
    if (stores && local_id() / 32 < 2)
        make_fresh(is_k ? k : v, my, is_k ? s.k : s.v, cache_of(part, is_k), row);
    if (stores && is_k)
        store_head<DIM>(my.fresh, s.k, share.run.kv_head);
    const bool is_seen = stores && row >= 0 && row < share.keys.end;
    if (attend((u8 *)memory, s.decode, share, part, { is_seen ? (int)row : -1, k, v }))
        store_q(my, s, share);
}

#endif

#endif
