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
from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Final

from wavecast.launch import gpu
from wavecast.runtimes.devices import DeviceFacts
from wavecast.runtimes.patching import Patches
from wavecast.runtimes.torch_cpu import flex
from wavecast.runtimes.torch_cpu.cuda_api import properties
from wavecast.runtimes.torch_cpu.mode import on_cpu

if TYPE_CHECKING:
    from wavecast.runtimes.library_calls import Heard

_SETTINGS: Final = {
    "cpu_backend": "triton",
    "compile_threads": 1,  # other processes would not know the emulated device
    "fx_graph_cache": False,  # names tensors of the CPU by their processor, not by this device
    "use_static_triton_launcher": False,
    "trace.provenance_tracking_level": 1,  # launches are shown with their lines in the model
}


def install(patches: Patches, facts: DeviceFacts, heard: Heard | None = None) -> None:
    """Prepare dynamo and inductor once a program needs them: they take seconds to import. To be
    called before anything else is replaced: it forgets once that is back. `heard` gets the calls
    of libraries by generated code."""
    import torch

    cleanup = ExitStack()
    patches.callback(cleanup.close)
    trace = functools.cache(lambda: _prepare_dynamo(patches, cleanup))
    generate = functools.cache(lambda: _prepare_inductor(patches, facts, heard))
    inductor: Any = torch._TorchCompileInductorWrapper
    patches.attribute(torch, "compile", _after(trace, torch.compile))
    compiled = inductor.__call__

    @functools.wraps(compiled)
    def on_the_cpu(self: Any, model: Any, inputs: Any, **options: Any) -> Any:
        generate()
        _move_to_cpu(model)
        return compiled(self, model, inputs, **options)

    patches.attribute(inductor, "__call__", on_the_cpu)
    if "torch._dynamo.eval_frame" in sys.modules:
        trace()


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


def _prepare_dynamo(patches: Patches, cleanup: ExitStack) -> None:
    """Have traced tensors say what others say (`mode.CudaOnCpu`). Whatever is compiled is to be
    forgotten when all is `cleanup`."""
    import torch
    import torch._dynamo
    from torch._dynamo.variables.ctx_manager import CUDADeviceVariable
    from torch._dynamo.variables.tensor import TensorVariable
    from torch._dynamo.variables.torch import TorchInGraphFunctionVariable
    from torch.utils import _triton as triton

    def saying(name: str, value: Any) -> None:
        method = f"method_attr_{name}"
        original = getattr(TensorVariable, method, None)

        def answer(variable: Any, tx: Any) -> Any:
            if variable.device is not None and variable.device.type == "cpu":
                return TensorVariable.build(tx, value)
            return None if original is None else original(variable, tx)

        patches.attribute(TensorVariable, method, answer)

    # Functions of `torch.cuda`, gathered as they are at the time, and what Triton can do here.
    answered = [member for member in vars(triton).values() if hasattr(member, "cache_clear")]
    for function in (TorchInGraphFunctionVariable._get_handlers, *answered):
        function.cache_clear()
        cleanup.callback(function.cache_clear)
    for name in ("_exchange_fn", "_maybe_exchange_fn"):
        patches.attribute(CUDADeviceVariable, name, staticmethod(_only_device))
    saying("device", torch.device("cuda", 0))
    saying("is_cuda", True)
    saying("is_cpu", False)
    convert_frame: Any = torch._dynamo.convert_frame
    forget = functools.cache(lambda: cleanup.callback(torch._dynamo.reset))
    patches.attribute(convert_frame, "_compile", _after(forget, convert_frame._compile))


def _prepare_inductor(patches: Patches, facts: DeviceFacts, heard: Heard | None) -> None:
    """Have inductor compile Triton kernels for the device, launch them on it, and choose between
    them by predicted times, as timers give them meanwhile."""
    import triton.testing
    from torch._dynamo import device_interface
    from torch._functorch import config as autograd
    from torch._inductor import config, utils
    from torch._inductor.codegen.cpu_device_op_overrides import CpuDeviceOpOverrides
    from torch._inductor.fx_passes import joint_graph
    from torch._inductor.graph import GraphLowering
    from torch._inductor.runtime import benchmarking, hints, triton_helpers, triton_heuristics

    from wavecast.runtimes import library_calls

    utils.clear_caches()
    patches.callback(utils.clear_caches)
    for settings in (config.patch(_SETTINGS), autograd.patch(enable_autograd_cache=False)):
        settings.__enter__()
        patches.callback(settings.__exit__, None, None, None)

    # The wrapper's own definition is of several lines, which templates put after an indent.
    patches.attribute(
        CpuDeviceOpOverrides,
        "import_get_raw_stream_as",
        lambda _, name: f"from torch._C import _cuda_getCurrentRawStream as {name}",
    )
    flex.install(patches)
    patches.attribute(joint_graph, "lazy_init", _with_device(joint_graph.lazy_init))
    patches.attribute(GraphLowering, "compile_to_module", _remember_modules(GraphLowering, heard))
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


def _remember_modules(lowering: Any, heard: Heard | None) -> Callable[..., Any]:
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


def _only_device(_index: Any) -> int:
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
