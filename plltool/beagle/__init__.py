"""The likelihood as BEAGLE offers it: an `Instance` of numbered buffers, for programs that know that library.

The calls are those of BEAGLE 4 in snake case, with its meaning of every index, but arrays come and go as numpy arrays,
results are returned, and an error is raised as `BeagleError` (Ayres et al. 2012, 2019).

    from plltool.beagle import Flag, Instance
    with Instance(tip_count=3, partials_buffer_count=2, ...) as instance:
        instance.set_tip_states(0, states)
        ...
        lnl = instance.calculate_root_log_likelihoods([4], [0], [0], [Instance.NONE])
"""

from plltool.beagle.codes import BeagleError as BeagleError
from plltool.beagle.codes import Code as Code
from plltool.beagle.codes import Flag as Flag
from plltool.beagle.codes import Resource as Resource
from plltool.beagle.codes import get_citation as get_citation
from plltool.beagle.codes import get_resource_list as get_resource_list
from plltool.beagle.codes import get_version as get_version
from plltool.beagle.instance import Instance as Instance
