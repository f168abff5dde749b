"""`torch.compile` while a GPU is emulated: inductor writes Triton kernels over tensors of the CPU.

Dynamo traces the function mode that stands for the GPU (`mode.CudaOnCpu`) like any other, so that
graphs hold tensors of the CPU; what these say of their device it does not ask the mode. Inductor
has a setting for Triton kernels over such tensors and lacks the device they are compiled for.
What dynamo compiled is forgotten when the emulation ends, since code and constants are the
device's.
"""

from __future__ import annotations

import contextlib
import functools
import sys
import threading
from collections.abc import Callable
from contextlib import ExitStack, nullcontext
from typing import TYPE_CHECKING, Any, Final

from wavecast.launch import gpu
from wavecast.runtimes.devices import DeviceFacts
from wavecast.runtimes.patching import Patches
from wavecast.runtimes.torch_cpu import flex, gpus_compiling
from wavecast.runtimes.torch_cpu.cuda_api import properties
from wavecast.runtimes.torch_cpu.mode import CudaOnCpu, on_cpu

if TYPE_CHECKING:
    from wavecast.runtimes.library_calls import Heard
    from wavecast.runtimes.torch_cpu.gpus import Gpus

_SETTINGS: Final = {
    "cpu_backend": "triton",
    "compile_threads": 1,  # other processes would not know the emulated device
    "fx_graph_cache": False,  # names tensors of the CPU by their processor, not by this device
    "use_static_triton_launcher": False,
    "trace.provenance_tracking_level": 1,  # launches are shown with their lines in the model
}


def install(
    patches: Patches, facts: DeviceFacts, mode: CudaOnCpu, heard: Heard | None = None
) -> None:
    """Prepare dynamo and inductor once a program needs them: they take seconds to import. To be
    called before anything else is replaced: it forgets once that is back. `heard` gets the calls
    of libraries by generated code."""
    import torch

    cleanup = ExitStack()
    patches.callback(cleanup.close)
    trace = _once(lambda: _prepare_dynamo(patches, cleanup, mode))
    generate = _once(lambda: _prepare_inductor(patches, facts, heard, mode.gpus))
    settings = _Settings(mode.gpus.count if mode.gpus else 1)
    patches.callback(settings.put_back)
    inductor: Any = torch._TorchCompileInductorWrapper
    patches.attribute(torch, "compile", _after(trace, torch.compile))
    compiled = inductor.__call__

    @functools.wraps(compiled)
    def on_the_cpu(self: Any, model: Any, inputs: Any, **options: Any) -> Any:
        generate()
        settings.apply()
        _move_to_cpu(model)
        with mode.gpus.node.preparing() if mode.gpus else nullcontext():
            return compiled(self, model, inputs, **options)

    patches.attribute(inductor, "__call__", on_the_cpu)
    if "torch._dynamo.eval_frame" in sys.modules:
        trace()


class _Settings(threading.local):
    """The settings of inductor, which PyTorch keeps by thread."""

    def __init__(self, gpus: int) -> None:
        self._active: ExitStack | None = None
        self._gpus = gpus

    def apply(self) -> None:
        """Have the calling thread compile with them; the one that emulates gets its own back."""
        from torch._dynamo import config as dynamo
        from torch._functorch import config as autograd
        from torch._inductor import config

        if self._active is None:
            limits = ("recompile_limit", "accumulated_recompile_limit")
            each = {name: self._gpus * getattr(dynamo, name) for name in limits}
            self._active = ExitStack()
            self._active.enter_context(dynamo.patch(each))  # what is compiled is of one GPU
            self._active.enter_context(config.patch(_SETTINGS))
            self._active.enter_context(autograd.patch(enable_autograd_cache=False))

    def put_back(self) -> None:
        """Give the calling thread its own settings."""
        if self._active is not None:
            self._active.close()


def _once(prepare: Callable[[], object]) -> Callable[[], object]:
    """`prepare` called once, by whichever thread comes first; others wait until it is done."""
    lock, cached = threading.RLock(), functools.cache(prepare)

    def prepare_once() -> object:
        with lock:
            return cached()

    return prepare_once


def _after(prepare: Callable[[], object], original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def prepare_and_call(*args: Any, **kwargs: Any) -> Any:
        prepare()
        return original(*args, **kwargs)

    return prepare_and_call


def _move_to_cpu(model: Any) -> None:
    """Replace the devices in a graph. Bodies of higher-order operators, such as the functions that
    `flex_attention` takes, are traced without the mode that does so elsewhere."""
    for module in model.modules():
        for node in getattr(getattr(module, "graph", None), "nodes", ()):
            if "device" in node.kwargs:
                node.kwargs = {**node.kwargs, "device": on_cpu(node.kwargs["device"])}


def _prepare_dynamo(patches: Patches, cleanup: ExitStack, mode: CudaOnCpu) -> None:
    """Have traced tensors say what others say (`mode.CudaOnCpu`). Whatever is compiled is to be
    forgotten when all is `cleanup`."""
    import torch
    import torch._dynamo
    from torch._dynamo import device_interface
    from torch._dynamo.variables.ctx_manager import CUDADeviceVariable
    from torch._dynamo.variables.tensor import TensorVariable
    from torch._dynamo.variables.torch import TorchInGraphFunctionVariable
    from torch.utils import _triton as triton

    def saying(name: str, value: Callable[[], Any]) -> None:
        method = f"method_attr_{name}"
        original = getattr(TensorVariable, method, None)

        def answer(variable: Any, tx: Any) -> Any:
            if variable.device is not None and variable.device.type == "cpu":
                return TensorVariable.build(tx, value())
            return None if original is None else original(variable, tx)

        patches.attribute(TensorVariable, method, answer)

    # Functions of `torch.cuda`, gathered as they are at the time, and what Triton can do here.
    answered = [member for member in vars(triton).values() if hasattr(member, "cache_clear")]
    forgetting = [function.cache_clear for function in answered]
    forgetting.append(TorchInGraphFunctionVariable._get_handlers.cache_clear)
    forgetting.append(device_interface.caching_worker_device_properties.clear)
    for forget in forgetting:
        forget()
        cleanup.callback(forget)
    exchange: Any = _only_device
    gpus = mode.gpus
    if gpus is not None:
        gpus_compiling.install(patches, gpus)
        exchange = functools.partial(gpus_compiling.exchange_device, gpus)
    for name in ("_exchange_fn", "_maybe_exchange_fn"):
        patches.attribute(CUDADeviceVariable, name, staticmethod(exchange))
    saying("device", lambda: torch.device("cuda", gpus.current if gpus else 0))
    saying("is_cuda", lambda: True)
    saying("is_cpu", lambda: False)
    if torch.distributed.is_available():
        _wrap_on_cpu(patches, cleanup, mode)
    convert_frame: Any = torch._dynamo.convert_frame
    reset = functools.cache(lambda: cleanup.callback(torch._dynamo.reset))
    patches.attribute(convert_frame, "_compile", _after(reset, convert_frame._compile))


def _wrap_on_cpu(patches: Patches, cleanup: ExitStack, mode: CudaOnCpu) -> None:
    """Let tensors of traced code become those of a mesh of GPUs, which would move them there."""
    from torch._dynamo import trace_rules
    from torch._dynamo.variables.torch import TorchInGraphFunctionVariable
    from torch.distributed.tensor import DTensor

    from_local = DTensor.from_local

    @functools.wraps(from_local)
    def wrap(*args: Any, **kwargs: Any) -> Any:
        with mode.enter():
            return from_local(*args, **kwargs)

    patches.attribute(DTensor, "from_local", staticmethod(wrap))
    rules = trace_rules.get_torch_obj_rule_map()  # by function
    rules[wrap] = rules[from_local] = TorchInGraphFunctionVariable
    cleanup.callback(rules.pop, wrap)


def _prepare_inductor(
    patches: Patches, facts: DeviceFacts, heard: Heard | None, gpus: Gpus | None
) -> None:
    """Have inductor compile Triton kernels for the device, launch them on it, and choose between
    them by predicted times, as timers give them meanwhile."""
    import triton.testing
    from torch._dynamo import device_interface
    from torch._inductor import utils
    from torch._inductor.codegen.cpu_device_op_overrides import CpuDeviceOpOverrides
    from torch._inductor.fx_passes import joint_graph
    from torch._inductor.graph import GraphLowering
    from torch._inductor.runtime import benchmarking, hints, triton_helpers, triton_heuristics

    from wavecast.runtimes import library_calls

    utils.clear_caches()
    patches.callback(utils.clear_caches)
    # The wrapper's own definition is of several lines, which templates put after an indent.
    patches.attribute(
        CpuDeviceOpOverrides,
        "import_get_raw_stream_as",
        lambda _, name: f"from torch._C import _cuda_getCurrentRawStream as {name}",
    )
    if gpus is not None:
        gpus_compiling.separate_kernels(patches, gpus)
    flex.install(patches)
    patches.attribute(joint_graph, "lazy_init", _with_device(joint_graph.lazy_init))
    patches.attribute(
        GraphLowering, "compile_to_module", _remember_modules(GraphLowering, heard, gpus)
    )
    device_properties, here = _device_properties(hints.DeviceProperties, facts), _interface()
    cpu = device_interface.CpuInterface
    patches.attribute(cpu, "device", here.device)
    patches.attribute(hints.DeviceProperties, "create", lambda _: device_properties)
    autotuner = triton_heuristics.CachingAutotuner
    patches.attribute(autotuner, "get_device_interface", lambda _: here)
    for name in ("set_driver_to_cpu", "set_driver_to_gpu"):
        patches.attribute(triton_helpers, name, lambda: None)

    def benchmark(_: Any, fn: Callable[[], Any], *args: Any, **kwargs: Any) -> Any:
        del args, kwargs
        return triton.testing.do_bench(fn)

    patches.attribute(benchmarking.Benchmarker, "benchmark", benchmark)
    autotune = autotuner.autotune_to_one_config
    patches.attribute(autotuner, "autotune_to_one_config", library_calls.unheard(autotune))
    bench = autotuner.bench

    @functools.wraps(bench)
    def trial(self: Any, launcher: Any, *args: Any, **kwargs: Any) -> Any:
        with gpu.trying(launcher.config):
            return bench(self, launcher, *args, **kwargs)

    patches.attribute(autotuner, "bench", trial)


def _with_device(initialise: Callable[..., Any]) -> Callable[..., Any]:
    """Make the patterns of a pass from examples on the CPU. Inductor says no device where the first
    input of a graph is a size (`dynamic=True`), and would make them for the GPU it then asks for.
    Only for passes that Inductor calls with a device: patterns are kept by the arguments, and
    others may be made once.
    """
    import torch

    here = torch.device("cpu")

    @functools.wraps(initialise)
    def initialise_on_cpu(input_device: Any = None, *args: Any, **kwargs: Any) -> Any:
        return initialise(input_device or here, *args, **kwargs)

    return initialise_on_cpu


def _remember_modules(lowering: Any, heard: Heard | None, gpus: Gpus | None) -> Callable[..., Any]:
    """Write a module of generated code, remember which lines of the model its calls are of, and
    have its calls of libraries `heard`."""
    from torch._inductor import debug

    from wavecast.runtimes.library_calls import with_listener
    from wavecast.runtimes.model_lines import remember

    original = lowering.compile_to_module

    @functools.wraps(original)
    def compile_to_module(self: Any) -> Any:
        module = original(self)
        remember(module.__file__, debug._inductor_kernel_stack_trace)
        if heard is not None:
            module.call = with_listener(module.call, heard)
        if gpus is not None:
            gpus_compiling.run_graphs(module, self, gpus)
        return module

    return compile_to_module


def _device_properties(kind: Any, facts: DeviceFacts) -> Any:
    """The device as inductor describes it to Triton."""
    attributes = properties(facts)
    return kind(
        type="hip" if facts.is_amd else "cuda",
        index=0,
        cc=facts.target if facts.is_amd else 10 * attributes.major + attributes.minor,
        **{name: getattr(attributes, name) for name in kind._fields if name not in _NAMED},
    )


_NAMED = ("type", "index", "cc")


def _only_device(_: Any) -> int:
    """The device there was before another was chosen."""
    return 0


def _interface() -> Any:
    """What launches ask of the only device there is."""
    from torch._dynamo.device_interface import CpuInterface

    class Interface(CpuInterface):
        device: Any = contextlib.nullcontext
        exchange_device: Any = staticmethod(_only_device)
        maybe_exchange_device: Any = exchange_device

    return Interface
