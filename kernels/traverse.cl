/* traverse: takes each tile through a whole list of instructions.
 *
 * Work: one work-group owns the consecutive tiles of a span, all of one group, and runs the instructions of a track on them
 * in order; nothing is shared between work-groups. Tracks are pieces of the program that do not need each other, or the
 * same program under several models. A group may be cut into spans that come in launches one after another: each adds to
 * the sums where the last one left them. See layout.h for the arrays.
 *
 * Instruction (8 ints, plltool/engine/program.py): opcode, result, a, pa, b, pb, c, pc.
 *   a, b, c: slot >= 0, or ~taxon for a tip.   pa, pb, pc: branch, an index into matrices, slopes and decays.
 *   PROPAGATE   CLA[result] = Pa a
 *   NEWVIEW     CLA[result] = (Pa a) * (Pb b)                                  Felsenstein 1981, eq. 2
 *               result may be the slot of a or b: a component is read before it is written
 *   EVALUATE    values[result..]   = lnL = sum_p w_p log sum_ci m_ci a_ci (Pb b)_ci, for each weight set asked for
 *   DERIVATIVE  values[result..+2] = lnL, d lnL/dt, d2 lnL/dt2 on the branch pb between a and b; the fusion of
 *               sumGAMMA and coreDerivative: in the eigenbasis s_k = (U^T m a)_k (U^-1 b)_k,
 *               L = sum_i m_i a_i b_i + sum_k s_k expm1(l_k t), which does not cancel near t = 0
 *   INSERT      values[result]     = lnL of joining Pa a, Pb b and c at one node (c is already propagated)
 *   TRIPLET     values[result..+9] = lnL, its gradient (a, b, c) and its Hessian (aa, bb, cc, ab, ac, bc) in the
 *               three branch lengths around the node that joins a, b and c
 *   GRADIENT    values[result..] += per component: sum_p (w_p / L) (U^T m a)_k F_kl (U^-1 b)_l, S x S values, where a is
 *               on the root's side: how lnL answers to d(Q rate) in the eigenbasis, by way of this branch
 *   ROOT        values[result..] = per component and state i: sum_p (w_p / L) m_i a_i (Pb b)_i: how lnL answers to relative
 *               changes of the weights and of the frequencies at the root
 * where m_ci = component weight * frequency. Values are sums over the group's patterns: partial[group][value].
 *
 * Buffers:
 *   matrices REAL [pset][branch][component][i][j]        P(t), and its table for tips (layout.h); [j][i] and a column more
 *            where states are many
 *   slopes   REAL [pset][branch][2][component][i][j]     P'(t), P''(t), without tables; read by TRIPLET only
 *   decays   REAL [pset][branch][component][3][k]        expm1(l t), l exp(l t), l^2 exp(l t); read by DERIVATIVE, GRADIENT
 *            and ROOT only
 *   responses REAL [pset][branch][component][k][l]       F(t); read by GRADIENT only
 *   model    REAL [pset][component][ m_i: N_STATES | m_i U_ik as [k][i] | U^-1 as [k][j] | rate ], the matrices like P's slopes
 * Twin: plltool/engine/numpy_engine.py. Tests: tests/engine.
 */

/* Where a track keeps the slot that an instruction names. */
static inline size_t find_slot(int slot, int first_shifted, int shift)
{
    return (size_t)(slot < first_shifted ? slot : slot + shift);
}

/* The slot or tip that an instruction names, for the tile whose storage begins at block `storage`. */
static inline Operand find_operand(
    int index, int first_shifted, int shift, const __global REAL *clas, const __global int *scales, const __global CODE *tile_tips,
    const __global uchar *state_sets, size_t storage, size_t slot_stride)
{
    const size_t at = storage + (index < 0 ? 0 : find_slot(index, first_shifted, shift)) * slot_stride;
    Operand operand;
    operand.is_tip = index < 0;
    operand.cla = clas + at * BLOCK_REALS * VW;
    operand.scale = scales + at * N_COMPONENTS * VW;
    operand.state_sets = state_sets;
    operand.code = tile_tips + (index < 0 ? (size_t)(~index) : 0) * TILE_BLOCKS * VW;
    return operand;
}

/* The hint keeps Intel's compiler from making a second version of the kernel with vectors of vectors, which takes longer
 * than all the rest: 15 times with 20 states. */
__attribute__((vec_type_hint(DOUBLEV)))
#if SHARED_STATES
__attribute__((reqd_work_group_size(GROUP_ITEMS, 1, 1)))       /* so that the registers of so many items are there */
#endif
__kernel void traverse(
    __global REAL *clas,
    __global int *scales,
    const __global CODE *tips,
    const __global uchar *state_sets,       /* [code][state] 0 or 1; read where states are many */
    const __global double *weights,
    const __global REAL *model,
    const __global REAL *matrices,
    const __global REAL *slopes,
    const __global REAL *decays,
    const __global REAL *responses,
    const __global int *program,            /* [n_instructions][8] */
    const __global int *tracks,             /* [track][5], plltool/engine/opencl/tracks.py */
    const __global int *spans,              /* [span][6], plltool/engine/storage.py, Storage.runs */
    const __global int *tile_blocks,        /* [tile] blocks in use */
    __global double *partial,               /* [group][n_values] */
    __global int *bad_pattern,
    __global double *site,                  /* [value][pattern], written by EVALUATE where want_site */
    const int want_site,
    const int first_set,                    /* weight sets: EVALUATE takes n_sets of them, the others the first one */
    const int n_sets,
    const int keep,                         /* 1: every tile has its slots, 0: the tiles of a span use the same ones */
    const int first_span,                   /* of this launch */
    const int first_track,                  /* likewise */
    const int first_shifted,                /* slots from here on are the track's own */
    const int n_values,
    const int n_taxa,
    const int n_branches,
    const ulong n_lanes,
    const ulong tile_stride,                /* of clas, in blocks */
    const ulong slot_stride)                /* likewise */
{
    const __global int *span = spans + 6 * (first_span + get_group_id(0));
    const __global int *track = tracks + 5 * (first_track + get_group_id(1));
    const int group = span[0], pset = span[3] + track[3], begins = span[5], shift = track[2];
    const __global REAL *p_base = matrices + (size_t)pset * n_branches * BRANCH_SIZE;
    const __global REAL *q_base = slopes + (size_t)pset * n_branches * 2 * MATRIX_REALS;
    const __global REAL *f_base = responses + (size_t)pset * n_branches * RESPONSE_REALS;
    const __global REAL *d_base = decays + (size_t)pset * n_branches * DECAY_REALS;
    __local double shared[SHARED_DOUBLES];
    for (int t = 0; t < span[2]; t++) {
        const int tile = span[1] + t;
        const size_t storage = (size_t)(span[4] + (keep ? t : 0)) * tile_stride;        /* in blocks */
        const size_t lanes = (size_t)tile * TILE_BLOCKS * VW;              /* before this tile */

        for (int n = track[0]; n < track[1]; n++) {
            const __global int *word = program + (size_t)n * 8;
            const int op = word[0], result = word[1];
            Job job;
            job.model = model + (size_t)pset * MODEL_REALS;
            job.bad_pattern = bad_pattern;
            job.n_blocks = tile_blocks[tile];
            job.first_pattern = (int)lanes;
            job.weights = weights + first_set * n_lanes + lanes;
            job.n_lanes = n_lanes;
            job.site = want_site ? site + (size_t)result * n_lanes + lanes : 0;
            job.a = find_operand(word[2], first_shifted, shift, clas, scales, tips + lanes * n_taxa, state_sets, storage, slot_stride);
            job.b = find_operand(word[4], first_shifted, shift, clas, scales, tips + lanes * n_taxa, state_sets, storage, slot_stride);
            job.c = find_operand(word[6], first_shifted, shift, clas, scales, tips + lanes * n_taxa, state_sets, storage, slot_stride);
            job.pa = p_base + (size_t)word[3] * BRANCH_SIZE;
            job.pb = p_base + (size_t)word[5] * BRANCH_SIZE;
            job.pc = p_base + (size_t)word[7] * BRANCH_SIZE;
            job.qa = q_base + (size_t)word[3] * 2 * MATRIX_REALS;
            job.qb = q_base + (size_t)word[5] * 2 * MATRIX_REALS;
            job.qc = q_base + (size_t)word[7] * 2 * MATRIX_REALS;
            job.decay = d_base + (size_t)word[5] * DECAY_REALS;
            job.response = f_base + (size_t)word[5] * RESPONSE_REALS;
            const size_t made = storage + find_slot(result, first_shifted, shift) * slot_stride;   /* of a CLA */
            const int first = begins && t == 0 && (op != GRADIENT || word[6]);     /* of the values' sums */
            run_instruction(
                &job, op, clas + made * BLOCK_REALS * VW, scales + made * N_COMPONENTS * VW,
                partial + (size_t)group * n_values + track[4] + result, n_sets, first, shared);
        }
    }
}
