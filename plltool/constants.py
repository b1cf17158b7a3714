"""Every bound, default and tolerance of plltool, with its unit and the reason for its value."""

# --- branch lengths, in expected substitutions per site -------------------------------------------------
MIN_BRANCH_LENGTH = 1e-6  # RAxML-NG's bound; shorter lengths do not change lnL in double precision
MAX_BRANCH_LENGTH = 100.0  # RAxML-NG's bound; far beyond saturation
DEFAULT_BRANCH_LENGTH = 0.1  # where a start tree gives none (RAxML-NG, IQ-TREE)

# --- model parameters -----------------------------------------------------------------------------------
MIN_EXCHANGEABILITY = 1e-3  # relative to the last rate of the matrix (RAxML-NG's bounds)
MAX_EXCHANGEABILITY = 1e3
MIN_FREQUENCY = 1e-3  # a base frequency that is optimised
MIN_ALPHA = 0.02  # shape of the gamma distribution; below it categories underflow (RAxML)
MAX_ALPHA = 100.0  # practically one rate
DEFAULT_ALPHA = 1.0
DEFAULT_RATE_CATEGORIES = 4  # Yang 1994, and every rival's default
MAX_RATE_CATEGORIES = 64

# --- optimisation ---------------------------------------------------------------------------------------
MAX_LENGTH_FACTOR = 16.0  # a branch length changes at most by this factor in one step
MAX_SMOOTHING_ROUNDS = 100  # all-branch rounds; typical 5 to 15
SMOOTHING_EPSILON = 0.01  # lnL that a full Newton step may still promise when branch lengths count as converged
DAMPING_GROWTH = 1.5  # of a damped length whose derivative kept its sign
MODEL_EPSILON = 0.01  # lnL gained by an iteration of L-BFGS-B below which model parameters count as converged
MAX_MODEL_ITERATIONS = 50
DIFFERENCE_STEP = 1e-4  # of a parameter's logarithm; balances the step's own error and rounding of lnL near 1e6
