"""The choice of an engine of explicit buffers for a device."""

from __future__ import annotations

import numpy as np

from plltool.constants import MASK_STATES
from plltool.engine.base import EngineData
from plltool.engine.buffers import BufferEngine, NumpyBuffers
from plltool.engine.layout_choice import DataShape, choose_layout
from plltool.engine.opencl.device import Device


def open_buffers(
    device: Device | None,
    shape: tuple[int, int, int, int],
    n_slots: int,
    n_matrices: int,
    precision: str = "double",
    vw: int | None = None,
    threads: int | None = None,
) -> BufferEngine:
    """An engine of explicit buffers on a device, None for numpy; its tips have any state.

    Raises DeviceError if the device fails or does not hold them.

    shape : states, components, tips, patterns
    n_slots, n_matrices : CLAs and matrices to hold
    """
    n_states, n_components, n_tips, n_patterns = shape
    many = n_states > MASK_STATES
    data_shape = DataShape(n_states, n_components, n_tips, (n_patterns,), n_states if many else 0)
    layout = choose_layout(device, data_shape, precision, vw)
    codes = np.zeros((n_tips, n_patterns), dtype=np.int64) if many else np.full((n_tips, n_patterns), 1)
    data = EngineData(codes, np.ones(n_patterns), np.eye(n_states, dtype=np.uint8) if many else None)
    engine: BufferEngine
    if device is None:
        engine = NumpyBuffers(layout, n_slots, data)
    else:
        from plltool.engine.opencl.buffers import OpenCLBuffers

        engine = OpenCLBuffers(layout, n_slots, data, device, device.usable_threads(threads))
    engine.prepare_buffers(n_matrices)
    any_state = np.full(n_patterns, layout.padding_code)
    for tip in range(n_tips):
        engine.set_codes(tip, any_state)
    return engine
