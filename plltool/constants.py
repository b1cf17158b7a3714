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
