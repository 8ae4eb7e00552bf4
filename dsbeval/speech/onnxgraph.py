"""Show an inner tensor of an ONNX model as an output, without the ``onnx`` package.

Two serialised protobuf messages, one after the other, parse as their merge. So a tiny
``ModelProto{graph{output{...}}}`` behind the bytes of a model adds an output to its graph.

References
----------
Protocol Buffers, "Encoding: last one wins and merging"; ONNX IR specification, ``ModelProto.graph`` (field 7),
``GraphProto.output`` (field 12).
"""

from __future__ import annotations

from typing import Any


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def _field(number: int, body: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(body)) + body


def with_output(model: bytes, tensor: str) -> bytes:
    """Return the model with the float tensor named ``tensor`` as one more output, the last one."""
    float_tensor = _field(1, b"\x08\x01")
    value_info = _field(1, tensor.encode()) + _field(2, float_tensor)
    return model + _field(7, _field(12, value_info))


def open_session(model: bytes) -> Any:
    """Return an onnxruntime session with one thread (more threads change the samples of one of the models)."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(model, sess_options=options, providers=["CPUExecutionProvider"])
