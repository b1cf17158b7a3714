"""The public names of plltool: `plltool/__init__.py` reads this file and imports each when it is first used."""

from .alignment.alignment import Sequences as Sequences
from .analyses.alrt import SupportResult as SupportResult
from .analyses.alrt import alrt as alrt
from .analyses.ancestral import AncestralResult as AncestralResult
from .analyses.ancestral import ancestral_states as ancestral_states
from .analyses.bench.run import bench as bench
from .analyses.bootstrap import BootstrapResult as BootstrapResult
from .analyses.bootstrap import bootstrap as bootstrap
from .analyses.bootstrap import replicate_options as replicate_options
from .analyses.check import check as check
from .analyses.compare import Comparison as Comparison
from .analyses.compare import compare as compare
from .analyses.compare import compare_records as compare_records
from .analyses.devices import devices as devices
from .analyses.evaluate import evaluate as evaluate
from .analyses.likelihood import Likelihood as Likelihood
from .analyses.search import search as search
from .analyses.simulate import Simulation as Simulation
from .analyses.simulate import simulate as simulate
from .analyses.support import Supports as Supports
from .analyses.support import supports as supports
from .analyses.topology_tests import TopologyTestResult as TopologyTestResult
from .analyses.topology_tests import topology_tests as topology_tests
from .analyses.trees import consensus as consensus
from .analyses.trees import tree_distances as tree_distances
from .analyses.trees import write_consensus as write_consensus
from .analyses.ultrafast import ultrafast_bootstrap as ultrafast_bootstrap
from .errors import DeviceError as DeviceError
from .errors import InputError as InputError
from .errors import PlltoolError as PlltoolError
from .errors import PlltoolWarning as PlltoolWarning
from .hardware import Hardware as Hardware
from .io.alignment_reader import read_alignment as read_alignment
from .io.checkpoint import remove_checkpoint as remove_checkpoint
from .io.part_trees import read_tree as read_tree
from .io.record import read_record as read_record
from .io.record import write_record as write_record
from .io.tree_files import read_trees as read_trees
from .run.results import EvaluationResult as EvaluationResult
from .run.results import SearchResult as SearchResult
from .tree.topology import Tree as Tree
from .tree_search.effort import SearchOptions as SearchOptions
from .tree_search.progress import Progress as Progress
from .tree_search.progress import StopSearch as StopSearch

__version__: str
