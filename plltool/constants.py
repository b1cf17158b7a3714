"""Every bound, default and tolerance of plltool, with its unit and the reason for its value."""

VERSION = "0.1.0"  # of plltool
NO_NODE = -1  # where an array of nodes holds none
ROOT_NAME = "(root)"  # of the tip that stands for the root of a tree; no taxon is called so, with parentheses
STDIN = "-"  # the name that stands for standard input wherever a file is read
PARTIAL_ENDING = ".partial"  # of a temporary file, which replaces its target once it is whole

# --- data -----------------------------------------------------------------------------------------------
MIN_OWN_STATES, MAX_OWN_STATES = 2, 128  # of a user's state space
MASK_STATES = 8  # states up to which a code is a bit mask: one byte, and each of the 2^8 sets has a code

# --- branch lengths, in expected substitutions per site -------------------------------------------------
MIN_BRANCH_LENGTH = 1e-6  # RAxML-NG's bound; shorter lengths do not change lnL in double precision
MAX_BRANCH_LENGTH = 100.0  # RAxML-NG's bound; far beyond saturation
ERROR_STEP = 1e-5  # relative change of a length for second derivatives, whose relative errors are about as large
DEFAULT_BRANCH_LENGTH = 0.1  # for branches without a length in the start tree (RAxML-NG, IQ-TREE)

# --- model parameters -----------------------------------------------------------------------------------
MIN_EXCHANGEABILITY = 1e-3  # relative to the last rate of the matrix (RAxML-NG's bounds)
MAX_EXCHANGEABILITY = 1e3
NEGLIGIBLE_EXCHANGEABILITY = 1e-12  # for 0: P of many small steps would be rounding noise, of either sign, without it
MIN_DOUBLET_RATE = 1e-6  # the same of S16, where that of a rare pair is the last one (RAxML's bounds: 1e-4 and 1e6)
MAX_DOUBLET_RATE = 1e6
MAX_LIE_WEIGHT = 0.999  # of a Lie Markov basis matrix, as given; at 1 a rate is 0
RAY_DIGITS = 9  # of rates of mean 1, by which rays are told apart
MIN_RAY_WEIGHT = 1e-8  # over that of the last ray; many estimates have rates of 0, of which 1e-3 costs several lnL
MAX_RAY_WEIGHT = 1e8
MIN_OMEGA = 1e-6  # nonsynonymous to synonymous rate (PAML's bounds are 1e-6 and 999)
MAX_OMEGA = 1e3
MIN_FREQUENCY = 1e-3  # of an optimised base frequency
MIN_ALPHA = 0.02  # shape of the gamma distribution; below it categories underflow (RAxML)
MAX_ALPHA = 1e10  # one rate: with 100 the lnL of 65,536 patterns without variation was 480 too low
EVEN_DEVIATION = 0.1  # of rates; below it the optimiser's steps are proportional to the deviation, which may end at 0
DEFAULT_ALPHA = 1.0
MIN_PINV = 1e-10  # share of invariable sites; each site may lose as much lnL
RARE_ODDS = 0.1  # of invariable sites; below them the optimiser's steps are proportional to pinv, likewise
MAX_PINV = 0.99  # RAxML-NG's bound
DEFAULT_PINV = 0.1
MIN_SWITCH_RATE, MAX_SWITCH_RATE = 1e-3, 1e3  # of +COV, per expected substitution
MIN_FREE_RATIO = 1e-7  # of free rates and their weights, relative to the last one; 1e-5 is too much for saturated sites
MAX_FREE_RATIO = 1e7
MIN_SCALER = 1e-6  # of a part's branch lengths relative to those of the tree; constant parts gain from it
MAX_SCALER = 100.0  # RAxML-NG's bound
START_ALPHAS = (0.2, 0.5, 1.0, 2.0)  # shapes to try with +I or +R, which may have more than one optimum
START_PINVS = (0.01, 0.1, 0.3, 0.6)
DEFAULT_RATE_CATEGORIES = 4  # Yang 1994, and the default of all other programs
MAX_RATE_CATEGORIES = 64
DEFAULT_SITE_CATEGORIES = 25  # of +PSR, as in RAxML
MIN_SITE_RATE = 2.0**-10  # of +PSR, relative to the mean; a lower one changes lnL only on trees of 1,000 substitutions
MAX_SITE_RATE = 2.0**5

# --- optimisation ---------------------------------------------------------------------------------------
MAX_BACKTRACKS = 10  # along one direction; each at least halves the step
LENGTHS_PRECISION = 2e-4  # lnL, of the lengths likewise; with 0.001 two lengths of dna354 stop halfway, 0.013 too low
MAX_POLISH_ROUNDS = 50  # of lengths and model in turn; typical 3 to 8

# --- choice of a model ------------------------------------------------------------------------------------
CRITERIA = ("BIC", "AIC", "AICc")  # the first is the default, as in ModelFinder
SELECTION_MAX_RATES = 10  # categories of free rates among the candidates, unless others are asked for
SELECTION_PRECISION = 0.5  # lnL, of a model that may yet prove to be out of the question
SIGNIFICANCE = 0.05  # of tests of data
MERGE_ALGORITHMS = GREEDY, RCLUSTER, RCLUSTERF = "greedy", "rcluster", "rclusterf"
DEFAULT_CLUSTER_PERCENT = 10.0  # of the pairs of parts that relaxed clustering tries, as in PartitionFinder 2
SELECTION_TOLERANCE = 0.005  # lnL by which a model may be below a special case of it; else it is optimised again

# --- search ---------------------------------------------------------------------------------------------
SCAN_VALUES_PER_LAUNCH = 8_000_000  # partial sums of work-groups that the device holds at once (64 MB)
START_EPSILON = 5.0  # lnL precision of lengths and model on the start tree
BASES = b"ACGT"
CONSTANT_SITES = "numbers of constant sites with A, C, G and T: four whole numbers from 0 on, such as 310,190,205,295"
MAX_CONSTANT_SITES = 10**15  # their sum; doubles count exactly far beyond
NAME_KINDS = WHOLE, FIRST_WORD = "whole", "first-word"  # what of a FASTA header is the name of its taxon
START_KINDS = ("parsimony", "random")  # kinds of start trees that a search makes
MAX_RADIUS = 28  # SPR radius, in branches: a path takes two bits per branch of one int64
PRECISIONS = ("double", "mixed", "single")  # of the arithmetic on a device
EFFORT_NAMES = ("fast", "default", "thorough")  # presets, see tree_search/effort.py
DEFAULT_EFFORT = "default"
STOP_RULES = ("epsilon", "rf", "kh")  # see tree_search/state.py
PERTURB = "perturb"  # the stage of the ratchet
FUSE = "fuse"  # the stage that fuses the climbs from several start trees
GENE_STAGE = "gene trees"  # the stage whose rounds are the trees of genes
REPLICATE_STAGE = "bootstrap"  # the stage whose rounds are bootstrap replicates
ULTRAFAST_STAGE = "ufboot"  # the stage whose rounds are excursions of the ultrafast bootstrap

# --- analyses of a finished tree -------------------------------------------------------------------------
ALRT_REPLICATES = 1000  # Guindon et al. 2010
PLACE_HEURISTIC = 0.99999  # of the likelihood weights of the scores of branches: those that have it are optimised
FILTER_WEIGHT = 0.99999  # of all likelihood weights: that of the places that are reported (EPA-NG's name and number)
SURE_WEIGHT = 0.95  # likelihood weight of a place from which it is called sure
FILTER_MOST = 7  # places of a query that are reported at most (EPA-NG, RAxML)
NODE = "Node"  # begins the names of inner nodes, before a number from 1
DATE_ROOTS = ("best", "min-dev", "oldest")  # of trees in time: ways in which TreeTime finds the root
CLOCKS = STRICT, RELAXED = ("strict", "relaxed")  # of trees in time that are sampled
TREE_PRIORS = ("constant", "exponential", "skygrid", "yule", "birth-death")  # of these
DATE_COALESCENTS = ("const", "skyline")  # priors on the times of nodes, TreeTime's names
DATE_LENGTHS = ("auto", "input", "joint", "marginal")  # how branch lengths enter, TreeTime's names
TEST_REPLICATES = 10_000  # of topology tests; the same number at each scale of AU
TEST_LEVEL = 0.05  # trees with smaller p-values are rejected; the weights of ELW's set sum to 1 minus this

# --- runs -----------------------------------------------------------------------------------------------
DEFAULT_MODEL = "GTR+F+G4"  # the usual choice for DNA
DEFAULT_PROTEIN_MODEL = "LG+G4"  # for proteins
DEFAULT_DOUBLET_MODEL = "S16+F+G4"  # for pairs of columns without a model, as RAxML's -A S16 beside GTRGAMMA
DEFAULT_GENOTYPE_MODEL = "GT10+FO"  # for genotypes in VCF files: the phase is mostly unknown
DEFAULT_CODON_MODEL = "GY+F3X4"  # for codons: the usual choice of PAML's users
DEFAULT_MULTISTATE_MODEL = "MK+G4"  # for binary and multistate data: nothing but the number of states is known of them
DEFAULT_MODELS = {  # by the name of the data, without the number of a genetic code
    "DNA": DEFAULT_MODEL,
    "protein": DEFAULT_PROTEIN_MODEL,
    "codon": DEFAULT_CODON_MODEL,
    "genotype": DEFAULT_GENOTYPE_MODEL,
    "multistate": DEFAULT_MULTISTATE_MODEL,
}
STANDARD_CODE = 1
GENETIC_CODES = (1, 2, 3, 4, 5, 6, 9, 10, 11, 12, 13, 14, 15, 16, *range(21, 34))  # their numbers, as NCBI counts
LINKAGES = LINKED, SCALED, UNLINKED = "linked", "scaled", "unlinked"  # how the branch lengths of parts are related
DEFAULT_LINKAGE = SCALED  # RAxML-NG's default
DEFAULT_SEED = 1  # so that a run without --seed can be repeated
MAX_SCRATCH_SLOTS = 256  # insertions that are optimised in one launch
COLLAPSE_LENGTH = 1.1 * MIN_BRANCH_LENGTH  # inner branches up to this length carry no information (RAxML-NG)
MAX_SHOWN_VALUES = 12  # of a list in a model that is shown to people: UNREST has as many; records have all
CHECKPOINT_PATIENCE = 100.0  # times the duration of the last write before the next one: writing takes 1 % at most
COMPARE_TOLERANCE = 0.01  # lnL by which two devices may differ after a search

# --- sets of trees and supports --------------------------------------------------------------------------
FBP, TBE, ROOTSTRAP, UFBOOT = "fbp", "tbe", "rootstrap", "ufboot"
SH_ALRT, ABAYES, LBP, SPRTA = "sh-alrt", "abayes", "lbp", "sprta"
SUPPORT_KINDS = FBP, TBE, ROOTSTRAP, UFBOOT, SH_ALRT, ABAYES, LBP, SPRTA
REPLICATE_KINDS = FBP, TBE, ROOTSTRAP  # supports by replicate trees
ALRT_KINDS = SH_ALRT, ABAYES  # what `alrt` computes unless it is asked for others
NEIGHBOUR_KINDS = *ALRT_KINDS, LBP  # supports by the likelihoods of the nearest-neighbour interchanges
MOVE_KINDS = *NEIGHBOUR_KINDS, SPRTA  # supports by the likelihoods of trees that a move makes
CONCORDANCE_KINDS = GCF, QCF, SCF, SCFL, IC, ICA = "gcf", "qcf", "scf", "scfl", "ic", "ica"
SITE_QUARTETS = 100  # drawn around each branch for its site concordance factor (Minh, Hahn & Lanfear 2020)
QUARTET_VALUES = 8_000_000  # numbers that the host holds at once when it counts quartets (64 MB)
MAJORITY = 0.5  # share of the trees above which splits cannot contradict each other
RAPID_CHAINS = 10  # chains of the rapid bootstrap, which can run at the same time
UFBOOT_SETS = 1000  # resampled alignments of the ultrafast bootstrap (Minh et al. 2013)

# --- sampling -------------------------------------------------------------------------------------------
DEFAULT_RUNS, DEFAULT_CHAINS, DEFAULT_TEMPERATURE = 2, 4, 0.1  # MrBayes' defaults
MAX_RUNS = 8
MOST_STEPS = 1000  # of stepping stones
SAMPLE_STAGE = "sample"  # the stage whose rounds are generations of chains
SAMPLE_EVERY = 20  # generations
DEFAULT_BURNIN = 0.25  # share of the samples (MrBayes)
ENOUGH_DEVIATION = 0.01  # of split frequencies between runs, at which they agree (MrBayes' manual)
ENOUGH_SIZE = 200  # effective samples of each number

# --- trees to look at ------------------------------------------------------------------------------------
ROOT_KINDS = MIDPOINT, MAD, OUTGROUP = "midpoint", "mad", "outgroup"
DRAWING_WIDTH = 900.0  # points of a picture of a tree
REPORT_ROWS = 200  # of a tree in a report; the smallest clades of larger ones are collapsed
