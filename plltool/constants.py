"""Every bound, default and tolerance of plltool, with its unit and the reason for its value."""

VERSION = "0.1.0"  # of plltool

# --- branch lengths, in expected substitutions per site -------------------------------------------------
MIN_BRANCH_LENGTH = 1e-6  # RAxML-NG's bound; shorter lengths do not change lnL in double precision
MAX_BRANCH_LENGTH = 100.0  # RAxML-NG's bound; far beyond saturation
ERROR_STEP = 1e-5  # share of a length by which it is moved for second derivatives, whose relative errors are about that
COARSE_ERROR_STEP = 1e-2  # the same where slopes are of 24 bits
LEAST_INFORMATION = 1e-5  # in any direction, each length having 1 alone; less cannot be told from the steps' errors
DEFAULT_BRANCH_LENGTH = 0.1  # where a start tree gives none (RAxML-NG, IQ-TREE)

# --- model parameters -----------------------------------------------------------------------------------
MIN_EXCHANGEABILITY = 1e-3  # relative to the last rate of the matrix (RAxML-NG's bounds)
MAX_EXCHANGEABILITY = 1e3
MIN_FREQUENCY = 1e-3  # a base frequency that is optimised
MIN_ALPHA = 0.02  # shape of the gamma distribution; below it categories underflow (RAxML)
MAX_ALPHA = 100.0  # practically one rate
DEFAULT_ALPHA = 1.0
MIN_PINV = 1e-6  # share of invariable sites: none, as far as lnL can tell
MAX_PINV = 0.99  # RAxML-NG's bound
DEFAULT_PINV = 0.1
MIN_FREE_RATIO = 1e-5  # of free rates, and of their weights, to the last one
MAX_FREE_RATIO = 1e5
MIN_SCALER = 0.01  # of a part's branch lengths, to those of the tree (RAxML-NG's bounds)
MAX_SCALER = 100.0
START_ALPHAS = (0.2, 0.5, 1.0, 2.0)  # shapes that are tried where +I or +R have more than one optimum
START_PINVS = (0.01, 0.1, 0.3, 0.6)
DEFAULT_RATE_CATEGORIES = 4  # Yang 1994, and every rival's default
MAX_RATE_CATEGORIES = 64

# --- optimisation ---------------------------------------------------------------------------------------
MAX_LENGTH_FACTOR = 16.0  # a branch length changes at most by this factor in one step
FLAT_SLOPE = 1e-8  # lnL per unit of length, less of which is rounding: nothing is known of the length
MAX_SMOOTHING_ROUNDS = 100  # all-branch rounds; typical 5 to 15
SMOOTHING_EPSILON = 0.01  # lnL that a full Newton step may still promise when branch lengths count as converged
DAMPING_GROWTH = 1.5  # of a damped length whose derivative kept its sign
MODEL_EPSILON = 0.01  # lnL gained by an iteration below which model parameters count as converged
MAX_MODEL_ITERATIONS = 50
CURVATURE_PAIRS = 10  # of steps and changes of the gradient, that tell an optimiser of the Hessian
SUFFICIENT_DECREASE = 1e-4  # share of what the gradient promises that a step must gain (Armijo)
MAX_BACKTRACKS = 10  # along one direction; each takes at most half of the last step
MAX_LOG_SCALE = 1.0  # of the factor of all branch lengths that is optimised together with the model
DIFFERENCE_STEP = 1e-5  # of a parameter's logarithm, for the slopes of rate matrices and category rates
POLISH_GAIN = 0.01  # lnL gained by a round of lengths and model below which both count as optimised
POLISH_PRECISION = 0.001  # of either within a round; with 0.01 primates stop 0.06 below the optimum, with this 0.02
MAX_POLISH_ROUNDS = 50  # of lengths and model in turn; typical 3 to 8

# --- search ---------------------------------------------------------------------------------------------
HEALING_ROUNDS = 2  # evaluations of the branches that close the gaps of pruned subtrees, a Newton step between two
SCAN_VALUES_PER_LAUNCH = 8_000_000  # partial sums of groups that the device holds at once (64 MB)
SCAN_STEPS_PER_PRUNE = 11  # insertions that a launch has room for; of a subtree, 10.5 lie within 3 branches of the gap
TRIPLET_ROUNDS = 4  # evaluations of the three lengths at a candidate insertion, each but the last with a Newton step
NARROW_PER_PRUNE = 3  # insertions of a subtree whose lengths are optimised, best scores first
NARROW_CUTOFF = 0.7  # times the typical loss: insertions that lose more, lengths unoptimised, are not looked at
BROAD_PER_PRUNE = 10  # the same once narrow rounds have dried up: gained 3.5 and 9 lnL on 500 and 218 taxa
BROAD_CUTOFF = 2.0
NEAR_MISSES = 40  # moves that a broad round without gain tries singly; the last that gained on 218 taxa was the 37th
FORESIGHT = 2.0  # times the gain that Newton's method predicts: no more is expected of branch lengths
MIN_MOVE_GAIN = 1e-2  # lnL a move must promise
GAIN_GRID = 1e-4  # moves are ranked by gains rounded to this, so that devices agree; ties go by index
SEARCH_EPSILON = 0.1  # lnL gained by a round below which a climb ends
SEARCH_RADII = (5, 10, 20)  # of the SPR stages, as long as they gain: 20 won 9 to 30 lnL on 101 taxa, 31 on 218
START_EPSILON = 5.0  # lnL precision of lengths and model on the start tree
STAGE_EPSILON = 1.0  # lnL gained by an SPR round below which the next stage begins
NNI_EPSILON = 5.0  # lnL gained by an NNI round below which SPR rounds begin
NNI_SHARE = 1e-4  # the same as a share of lnL; the larger one counts
STAGE_SHARE = 1e-5  # likewise of an SPR round
TUNING_SHARE = 2e-4  # of lnL, gained by model and lengths, above which both are optimised once more
SCAN_PHASES = (3, 6, 10)  # depths at which a walk pauses to drop hopeless directions; a launch each
WALK_CUTOFF = 3.0  # times the typical loss: steps that lose more are not walked beyond, unless a scan is patient
RESCAN_DISTANCE = 4  # branches around a change within which subtrees are scanned again at once
RATCHET_PATIENCE = 20  # perturbations in a row without gain after which a tree counts as settled
RATCHET_SHARE = 0.25  # of the patterns whose weight is multiplied by RATCHET_FACTOR in a perturbation (Nixon 1999)
RATCHET_FACTOR = 2.0
RATCHET_RADIUS = 5  # of the moves that a perturbation makes
RATCHET_REGION = 500  # inner nodes whose subtrees a perturbation may move
RATCHET_EPSILON = 2.0  # lnL precision of branch lengths on reweighted sites
PLATEAU_DEPTH = 0.01  # lnL below the best that a tree may have for the search to go on from there
EFFORT_NAMES = ("fast", "default", "thorough")  # presets, see search/effort.py
DEFAULT_EFFORT = "default"
QUICK_TREES = 3  # parsimony trees whose disagreement tells how difficult an alignment is
ENOUGH_PATTERNS_PER_TAXON = 10.0  # below it an alignment counts as more difficult than its parsimony trees say
EASY = 0.5  # difficulty up to which a search does the least of its effort
SPARSE_WEIGHT = 0.1  # so much for each halving
ABANDON_STAGES = 3  # start, NNI, SPR at the first radius: after less no start tree is given up
ABANDON_FACTOR = 2.0  # times what the leader gained from a stage on: a start tree further behind there is given up
ABANDON_MARGIN = 5.0  # lnL that it may be behind besides
STOP_RULES = ("epsilon", "rf", "kh")  # see search/stopping.py
KH_QUANTILE = 1.645  # of the standard normal: a gain less likely than 5 % by chance counts
RF_SHARE = 0.01  # of the inner branches, changed by a stage of a climb (RAxML's -D)
LARGE_ALIGNMENT = 5_000_000  # taxa times patterns from which on gains must be significant unless told otherwise
PERTURB = "perturb"  # the stage of the ratchet
STAGE_COSTS = {  # CPU time on four alignments of 150 to 500 taxa, per cent of a default climb; for forecasts only
    "start": 10.0, "nni": 14.0, "spr": 17.0, "model": 3.0, "broad": 24.0, PERTURB: 20.0, "polish": 6.0,
}  # fmt: skip
MAX_REJECTED_MOVES = 5  # that a round tries alone in vain before it gives up
ROUND_EPSILON = 0.5  # lnL precision of branch lengths between two rounds

# --- what is asked of a tree once it is found ------------------------------------------------------------
RESAMPLED_VALUES = 16_000_000  # of site lnL, and of weights, that the host holds at once (128 MB each)
NEIGHBOUR_EPSILON = 0.001  # lnL gained by a sweep over both ends of a branch below which its lengths are optimised
MAX_NEIGHBOUR_SWEEPS = 20
ALRT_MARGIN = 0.05  # lnL by which a branch must exceed a replicate: less is what optimisation leaves open (IQ-TREE's)
ALRT_REPLICATES = 1000  # Guindon et al. 2010
TEST_REPLICATES = 10_000  # of tests of topologies, and at each scale of AU
TEST_LEVEL = 0.05  # p-values below it reject a tree; 1 less it is what ELW's set of trees adds up to
AU_TIE = 0.01  # lnL within which AU takes trees for equally good: less is what optimisation leaves open
AU_SCALES = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.3, 1.4)  # columns drawn, to those there are (Shimodaira 2002)
SUPPORT_KINDS = SH_ALRT, ABAYES = "sh-alrt", "abayes"

# --- runs -----------------------------------------------------------------------------------------------
DEFAULT_MODEL = "GTR+F+G4"  # the usual choice for DNA
DEFAULT_PROTEIN_MODEL = "LG+G4"  # and for proteins
LINKAGES = LINKED, SCALED, UNLINKED = "linked", "scaled", "unlinked"  # how the branch lengths of parts hang together
DEFAULT_LINKAGE = SCALED  # RAxML-NG's default
DEFAULT_SEED = 1  # a run without --seed can be repeated, too
MIN_SCRATCH_SLOTS = 32  # CLAs of a search beyond those of the tree; the deepest scan takes 30
MAX_SCRATCH_SLOTS = 256  # insertions that are optimised in one launch
MAX_STREAMED_SCRATCH_SLOTS = 1024  # where each launch makes the tree's CLAs anew: 1.1 times faster on 150 taxa than 256
MAX_SCRATCH_BYTES = 1 << 30  # of those CLAs, above the least number, where they are held all at once
DEVICE_MEMORY_SHARE = 0.9  # of a device's own memory that is used unless told; drivers and displays take some
HOST_MEMORY_SHARE = 0.8  # likewise of the host's available memory: other programs run, too
CPU_GROUPS_PER_UNIT = 2  # work-groups of a launch that its pieces are spread over where there are few patterns
GPU_GROUPS_PER_UNIT = 16  # likewise: enough to hide the latency of memory; not measured yet
GPU_LEVEL_WIDTH = 2  # instructions per level, on average, from which launches by levels pay; not measured yet
COLLAPSE_LENGTH = 1.1 * MIN_BRANCH_LENGTH  # of inner branches that say nothing: at the least length (RAxML-NG)
HEARTBEAT_SECONDS = 30.0  # of silence after which a running command says that it lives
REDRAW_SECONDS = 1.0  # between two looks at the clock; on a terminal the bar is drawn anew each time
CONTENT_MEMORY_SHARE = 0.25  # of the free memory that a file's content may take: what is made of it takes more
MAX_GZIP_RATIO = 500  # of unpacked to packed size; real alignments reach 250, gzip's limit is 1,030
TRUSTED_CONTENT = 1 << 28  # unpacked bytes up to which no ratio is suspicious
CHECKPOINT_PATIENCE = 100.0  # times what writing took pass before the next state is written: 1 % of the time at most
COMPARE_TOLERANCE = 0.01  # lnL by which two devices may differ after a search

# --- sets of trees and supports --------------------------------------------------------------------------
MAJORITY = 0.5  # share of the trees above which splits cannot contradict each other
BOOTSTOP_STEP = 50  # replicates after which it is tested whether they are enough (RAxML)
BOOTSTOP_MOST = 1000  # replicates that are made where the test never says so (RAxML)
BOOTSTOP_CUTS = 100  # random halvings of a test (Pattengale et al. 2010)
BOOTSTOP_AGREEMENT = 0.99  # share of the halvings whose halves must agree (Pattengale et al. 2010)
BOOTSTOP_CORRELATION = 0.99  # of the frequencies of two halves that agree (Pattengale et al. 2010)
BOOTSTOP_WRF = 0.03  # weighted RF distance of two halves that agree (RAxML's cutoff)
REPLICATE_EFFORT = "fast"  # of a bootstrap replicate's search, unless told otherwise
REPLICATE_RADII = (5, 10)  # with these radii: nearer to a default search's supports than radius 5 alone, see README
REPLICATE_UNDECIDED = 0.1  # substitutions on a branch that say nothing: one that a single site speaks for has about 1
RAPID_CHAINS = 10  # chains of the rapid bootstrap; so many replicates can be made at the same time
RAPID_LENGTH = 10  # replicates of a chain until it begins anew (Stamatakis, Hoover & Rougemont 2008)
RAPID_RADII = (5,)  # of a rapid replicate's search
UFBOOT_SETS = 1000  # resampled alignments of the ultrafast bootstrap (Minh et al. 2013)
UFBOOT_STEP = 10  # excursions after which it is tested whether the supports still change
UFBOOT_LEAST = 20  # excursions that are made at least
UFBOOT_MOST = 200  # and at most
UFBOOT_CORRELATION = 0.99  # of the supports of two such steps, from which on they count as settled (Minh et al. 2013)
UFBOOT_DIFFERENCE = 0.015  # mean absolute, up to which they count as settled as well: a share of 1000 is no surer
UFBOOT_CANDIDATES = 5  # local optima that excursions set out from
UFBOOT_JUMPS = 3  # to as many resampled alignments in a row before the tree is climbed again
UFBOOT_RADIUS = 10  # of that climb
RELL_TIE = 0.5  # lnL within which trees are as good as each other (Hoang et al. 2018)
RELL_CHUNK = 4096  # patterns whose weights are turned into doubles at once
