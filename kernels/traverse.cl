/* traverse: takes each tile through a list of instructions.
 *
 * Work: a work-group takes a span of consecutive tiles, all of one group, through the instructions of a track in order. Spans
 * and tracks share nothing: there is a work-group for each span of each track, or one takes several, one after another. Tracks
 * are pieces of the program that do not need each other, or the same program under several models. A group may be cut into
 * spans that come in launches one after another; each adds to the sums where the last one left them.
 *
 * Instruction (INSTRUCTION_WORDS ints): opcode, result, a, pa, b, pb, c, pc.
 *   Where processes are not reversible (REVERSIBLE 0), DERIVATIVE takes lnL and its derivatives from P b, P' b and P'' b, and
 *   RATE_MATRIX_GRADIENT makes the sums of four tables F, see pmatrices.cl.
 *   a, b, c: slot >= 0, or ~taxon for a tip.   pa, pb, pc: branch, an index into matrices, slopes and decays.
 *   PROPAGATE   CLA[result] = Pa a
 *   NEWVIEW     CLA[result] = (Pa a) * (Pb b)                                  Felsenstein 1981, eq. 2
 *               result may be the slot of a or b: a component is read before it is written
 *   EVALUATE    values[result]     = lnL = sum_p w_p log sum_ci m_ci a_ci (Pb b)_ci
 *   DERIVATIVE  values[result..+2] = lnL (0 if c is 1), d lnL/dt, d2 lnL/dt2 on the branch pb between a and b; PLL's sumGAMMA and
 *               coreDerivative in one: in the eigenbasis s_k = (U^T m a)_k (U^-1 b)_k,
 *               L = sum_i m_i a_i b_i + sum_k s_k expm1(l_k t), which does not cancel near t = 0
 *   INSERT      values[result]     = lnL of joining Pa a, Pb b and c at one node (c is already propagated)
 *   TRIPLET     values[result..+9] = lnL, its gradient (a, b, c) and its Hessian (aa, bb, cc, ab, ac, bc) in the
 *               three branch lengths around the node that joins a, b and c
 *   RATE_MATRIX_GRADIENT
 *               values[result..] += for each component: sum_p (w_p / L) (U^T m a)_k F_kl (U^-1 b)_l, S x S values, where a is
 *               on the side of the root: d lnL / d(Q rate) in the eigenbasis through this branch. The sum begins where c is 1
 *   MASS_GRADIENT
 *               values[result..] = for each component and state i: sum_p (w_p / L) m_i a_i (Pb b)_i = d lnL / d log m_i with
 *               the root at a
 * where m_ci = component weight * frequency. Values are sums over the group's patterns: partial[group][value].
 *
 * The arguments, their types, shapes and order are those of plltool/engine/contract.py; the words of instructions, spans and
 * tracks as well.
 *   matrices            REAL [pset][branch][component][i][j]     P(t), and its table for tips (layout.h); with many states
 *                       [j][i] and a column more
 *   slopes              REAL [pset][branch][2][component][i][j]  P'(t), P''(t), without tables; read by TRIPLET only
 *   decays              REAL [pset][branch][component][3][k]     expm1(l t), l exp(l t), l^2 exp(l t); read by DERIVATIVE and
 *                       the gradients only
 *   divided_differences REAL [pset][branch][table][component][k][l]     F(t) of pmatrices.cl; read by RATE_MATRIX_GRADIENT only
 *   model               REAL [pset][component][ m_i: N_STATES | m_i U_ik as [k][i] | U^-1 as [k][j] | rate ], its matrices
 *                       stored like slopes
 * Twin: plltool/engine/numpy_engine.py. Tests: tests/engine.
 */

/* What a work-group has to do: the tiles of a span, the instructions of a track, and the tables of their P set. On a GPU it is in
 * local memory, like the job. */
typedef struct {
    __global REAL *clas;
    __global int *scales;
    const __global CODE *tips;
    const __global REAL *state_sets;
    const __global WIDE *weights;
    const __global REAL *model, *matrices, *slopes, *decays, *differences;      /* of the P set */
    const __global int *program, *track, *span, *used_blocks;
    __global WIDE_SUM *sums;                    /* of the group, from the track's first value on */
    __global int *bad_pattern;
    __global WIDE *site;                        /* 0 unless wanted */
    int want_site, keep, first_shifted, n_taxa, tile_blocks;
    int has_zero_rates;                         /* whether a component has rate 0 */
    size_t n_lanes, tile_stride, slot_stride;
} Task;

#if SHARED_STATES
typedef char jobs_have_at_most_job_bytes[sizeof(Job) + sizeof(Output) + sizeof(Task) <= JOB_BYTES ? 1 : -1];
#endif

/* Whether a component has rate 0. */
INLINE int find_zero_rates(const __global REAL *model)
{
    int found = 0;
    for (int c = 0; c < N_COMPONENTS; c++)
        found |= model[(c + 1) * MODEL_VALUES - 1] == 0;
    return found;
}

/* The slot that a track uses in place of the one that an instruction names. */
INLINE size_t find_slot(int slot, int first_shifted, int shift)
{
    return (size_t)(slot < first_shifted ? slot : slot + shift);
}

/* The slot or tip that an instruction names, for the tile whose storage begins at block `storage`. A tip gets the CLA of
 * `spare`, a slot that no other work-item writes: it is read, since there are no branches, and not used. */
INLINE Operand find_operand(const JOB_SPACE Task *task, int index, int spare, int shift, const __global CODE *tile_tips, size_t storage,
    int tile_blocks)
{
    const size_t at = storage + find_slot(index < 0 ? spare : index, task->first_shifted, shift) * task->slot_stride;
    Operand operand;
    operand.is_tip = index < 0;
    operand.lane = (uint)LANE;
    operand.cla = task->clas + at * BLOCK_REALS * VW;
    operand.scale = task->scales + at * N_COMPONENTS * VW;
    operand.state_sets = task->state_sets;
    operand.code = tile_tips + (index < 0 ? (size_t)(~index) : 0) * tile_blocks * VW;
    return operand;
}

/* Write what instruction n of the program has to do with tile t of the span. */
INLINE void prepare_job(const JOB_SPACE Task *task, int t, int n, JOB_SPACE Job *job, JOB_SPACE Output *output)
{
    const __global int *span = task->span, *word = task->program + (size_t)n * INSTRUCTION_WORDS;
    const int shift = task->track[TRACK_SLOT_SHIFT], first_shifted = task->first_shifted;
    const int blocks = MOST_BLOCKS == 1 ? 1 : task->tile_blocks;        /* a constant costs a GPU no registers */
    const int tile = span[SPAN_FIRST_TILE] + t;
    const size_t storage = (size_t)(span[SPAN_PLACE] + (task->keep ? t : 0)) * task->tile_stride;   /* in blocks */
    const size_t lanes = (size_t)tile * blocks * VW;                   /* before this tile */
    const __global CODE *tile_tips = task->tips + lanes * task->n_taxa;
    const int op = word[INSTRUCTION_OPCODE], result = word[INSTRUCTION_RESULT];
    const int a = word[INSTRUCTION_A], b = word[INSTRUCTION_B], c = word[INSTRUCTION_C];
    const int pa = word[INSTRUCTION_PA], pb = word[INSTRUCTION_PB], pc = word[INSTRUCTION_PC];
    const int spare = op < EVALUATE ? result : max(max(a, b), max(c, 0));      /* its own, or one that it reads */
    const size_t made = storage + find_slot(result, first_shifted, shift) * task->slot_stride;  /* of a CLA */
    output->op = op;
    output->begins = span[SPAN_BEGINS] && t == 0 && (op != RATE_MATRIX_GRADIENT || c);
    output->cla = task->clas + made * BLOCK_REALS * VW;
    output->scale = task->scales + made * N_COMPONENTS * VW;
    output->partial = task->sums + result;
    job->model = task->model;
    job->bad_pattern = task->bad_pattern;
    job->slopes_only = op == DERIVATIVE && c;
    job->has_zero_rates = task->has_zero_rates;
    job->lane = (uint)LANE;
    job->n_blocks = task->used_blocks[tile];
    job->first_pattern = (int)lanes;
    job->weights = task->weights + lanes;
    job->site = task->want_site ? task->site + (size_t)result * task->n_lanes + lanes : 0;
    job->a = find_operand(task, a, spare, shift, tile_tips, storage, blocks);
    job->b = find_operand(task, b, spare, shift, tile_tips, storage, blocks);
    job->c = find_operand(task, c, spare, shift, tile_tips, storage, blocks);
    job->pa = task->matrices + (size_t)pa * BRANCH_VALUES;
    job->pb = task->matrices + (size_t)pb * BRANCH_VALUES;
    job->pc = task->matrices + (size_t)pc * BRANCH_VALUES;
    job->qa = task->slopes + (size_t)pa * 2 * MATRIX_REALS;
    job->qb = task->slopes + (size_t)pb * 2 * MATRIX_REALS;
    job->qc = task->slopes + (size_t)pc * 2 * MATRIX_REALS;
    job->decay = task->decays + (size_t)pb * DECAY_REALS;
    job->differences = task->differences + (size_t)pb * DIFFERENCE_REALS;
}

/* Take the tiles of a span through the instructions of a track; `job`, `output` and `shared` are room for an instruction. Where states are
 * shared an instruction ends with a barrier. Tiles and instructions are one loop: Intel's compiler for GPUs (IGC 1.0.12504) crashes on two. */
INLINE void run_task(const JOB_SPACE Task *task, JOB_SPACE Job *job, JOB_SPACE Output *output, __local WIDE_SUM *shared)
{
    int t = 0, n = task->track[TRACK_BEGIN];
    while (t < task->span[SPAN_N_TILES] && n < task->track[TRACK_END]) {
#if LANE_PER_ITEM && !SHARED_STATES
        barrier(CLK_LOCAL_MEM_FENCE);           /* nobody still reads what the last instruction left in local memory */
#endif
        if (WRITES_JOB)
            prepare_job(task, t, n, job, output);
#if SHARED_JOB
        barrier(CLK_LOCAL_MEM_FENCE);
#endif
        run_instruction(job, output, shared);
        if (++n == task->track[TRACK_END]) {
            n = task->track[TRACK_BEGIN];
            t++;
        }
    }
}

#if !LANE_PER_ITEM
/* PoCL makes three copies of a kernel with what is inlined into it, but one of any other function. */
__attribute__((noinline)) static void run_alone(const Task *given)
{
    const Task task = *given;       /* a copy can stay in registers */
    Job job;
    Output output;
    run_task(&task, &job, &output, 0);
}
#endif

/* The hint keeps Intel's compiler from making a second version of the kernel with vectors of vectors, which takes longer to
 * compile than everything else: 15 times with 20 states. */
__attribute__((vec_type_hint(WIDEV)))
#if LANE_PER_ITEM
__attribute__((reqd_work_group_size(GROUP_ITEMS, 1, 1)))       /* so that there are registers for all items, and no barriers for one wave */
#endif
__kernel void traverse(
    __global REAL *clas,
    __global int *scales,
    const __global CODE *tips,
    const __global REAL *state_sets,        /* [code][state] likelihood, 0 or 1 for a set; read where states are many */
    const __global WIDE *weights,
    const __global REAL *model,
    const __global REAL *matrices,
    const __global REAL *slopes,
    const __global REAL *decays,
    const __global REAL *divided_differences,
    const __global int *program,            /* [instruction][INSTRUCTION_WORDS] */
    const __global int *tracks,             /* [track][TRACK_WORDS] */
    const __global int *spans,              /* [span][SPAN_WORDS] */
    const __global int *used_blocks,        /* [tile] blocks that hold patterns */
    __global WIDE_SUM *partial,             /* [group][value] */
    __global int *bad_pattern,
    __global WIDE *site,                    /* [value][lane] lnL of EVALUATE where want_site */
    const int want_site,
    const int keep,                         /* 1: every tile has slots of its own, 0: the tiles of a span share them */
    const int first_span,                   /* of this launch */
    const int launch_spans,                 /* their number */
    const int first_track,                  /* of this launch */
    const int launch_tracks,                /* their number */
    const int first_shifted,                /* from this slot on, slots are shifted by the track's SLOT_SHIFT */
    const int n_values,
    const int n_taxa,
    const int n_branches,
    const int tile_blocks,                  /* blocks of a tile, MOST_BLOCKS at most */
    const ulong n_lanes,
    const ulong tile_stride,                /* of clas, in blocks */
    const ulong slot_stride)                /* of clas, in blocks */
{
#if LANE_PER_ITEM
    __local WIDE_SUM shared[SHARED_DOUBLES];
    JOB_SPACE Task task;
    JOB_SPACE Job job;
    JOB_SPACE Output output;
#else
    Task task;
#endif
    FOR_OWN(k, 1, launch_tracks) FOR_OWN(s, 0, launch_spans) {
        const __global int *span = spans + SPAN_WORDS * (first_span + s);
        const __global int *track = tracks + TRACK_WORDS * (first_track + k);
        const size_t pset = span[SPAN_PART] + track[TRACK_PSET_SHIFT], branch = pset * n_branches;      /* its first */
        if (WRITES_JOB)
            task = (Task){
                .clas = clas,
                .scales = scales,
                .tips = tips,
                .state_sets = state_sets,
                .weights = weights,
                .model = model + pset * MODEL_REALS,
                .matrices = matrices + branch * BRANCH_VALUES,
                .slopes = slopes + branch * 2 * MATRIX_REALS,
                .decays = decays + branch * DECAY_REALS,
                .differences = divided_differences + branch * DIFFERENCE_REALS,
                .program = program,
                .track = track,
                .span = span,
                .used_blocks = used_blocks,
                .sums = partial + (size_t)span[SPAN_GROUP] * n_values + track[TRACK_VALUE_SHIFT],
                .bad_pattern = bad_pattern,
                .site = site,
                .want_site = want_site,
                .keep = keep,
                .first_shifted = first_shifted,
                .n_taxa = n_taxa,
                .tile_blocks = tile_blocks,
                .n_lanes = n_lanes,
                .tile_stride = tile_stride,
                .slot_stride = slot_stride,
                .has_zero_rates = find_zero_rates(model + pset * MODEL_REALS),
            };
#if LANE_PER_ITEM
#if SHARED_JOB
        barrier(CLK_LOCAL_MEM_FENCE);
#endif
        run_task(&task, &job, &output, shared);
#else
        run_alone(&task);
#endif
    }
}
