"""Rows that do not begin at multiples of 16 elements, so that accesses stay narrow."""

from __future__ import annotations

from collections.abc import Iterator

from wavecast.analyze.result import MemoryInstruction
from wavecast.compile.codeobject import Argument
from wavecast.dtypes import element_bytes, is_dtype
from wavecast.rules.accesses import AccessGroup, group, operation_of, stride_names
from wavecast.rules.finding import Finding, Rule, RuleInput
from wavecast.rules.fix import Fix, Recompiled
from wavecast.rules.loops import GLOBAL_SPACES, matters
from wavecast.rules.rates import peak_bandwidth
from wavecast.rules.specialise import DIVISOR, declare_divisible, multiple
from wavecast.rules.triton_slice import FunctionArgument, access
from wavecast.rules.triton_stages import module_slices, stage
from wavecast.rules.wording import count, join_names, size

NAME = "unaligned-stride"

NARROW_BYTES = 4
"""An access of at most this many bytes per lane is narrow; 16 is the widest."""

REPEATS = 2
"""Narrow instructions of one source line from which on the rule speaks."""

LINE_BYTES = 128
"""Padded rows begin at a multiple of this: the longest cache line of AMD's devices."""


def _check(subject: RuleInput) -> Iterator[Finding]:
    for access_group in group(subject.analysis.memory, _is_narrow):
        if access_group.count < REPEATS or not matters(subject, access_group.first):
            continue
        strides = _strides(subject, access_group)
        if strides:
            yield _finding(subject, access_group, strides)


def _is_narrow(item: MemoryInstruction) -> bool:
    return (
        item.space in GLOBAL_SPACES
        and item.kind in ("load", "store")
        and item.bytes_per_lane <= NARROW_BYTES
    )


def _strides(subject: RuleInput, access_group: AccessGroup) -> tuple[FunctionArgument, ...]:
    """The strides in the group's address that are, by their values, not multiples of 16; () where
    a pointer is not aligned either, or another number keeps it narrow."""
    operation, sliced = operation_of(subject, access_group), module_slices(subject, "ttir")
    if operation is None or sliced is None or subject.launch is None:
        return ()
    factors = sliced.factors(access(operation).address)
    unknown = [
        arg
        for arg in sliced.of(access(operation).address)
        if not arg.has("tt.divisibility") and (arg.is_pointer or arg.name in factors)
    ]
    values = subject.launch.scalars
    if any(arg.is_pointer or not isinstance(values.get(arg.name), int) for arg in unknown):
        return ()
    if not {arg.name for arg in unknown} <= stride_names(subject, access_group.first.argument):
        return ()
    return tuple(unknown)


def _finding(
    subject: RuleInput, access_group: AccessGroup, strides: tuple[FunctionArgument, ...]
) -> Finding:
    assert subject.launch is not None
    values = subject.launch.scalars
    tensor = _tensor(subject, access_group)
    names = join_names(f"{arg.name} = {values[arg.name]}" for arg in strides)
    width = _width(tensor, access_group)
    padded = {
        arg.name: multiple(int(values[arg.name]), max(DIVISOR, LINE_BYTES // width))
        for arg in strides
    }
    advice, once = _advice(subject, tensor, padded, width)
    change = Recompiled(
        declare_divisible(stage(subject, "ttir"), padded),
        scalars=padded,
        strides=_padded_strides(subject, padded),
    )
    about = access_group.about
    return Finding(
        rule=NAME,
        severity="warning",
        message=f"{about} move {count(access_group.widest, 'byte')} per lane: rows do not "
        f"begin at multiples of {DIVISOR} elements",
        evidence=f"{access_group.mnemonics} for {count(access_group.bytes_per_lane, 'byte')} per "
        "lane; "
        f"{count(-(-access_group.bytes_per_lane // 16), '16-byte instruction')} would do; its "
        "address "
        f"depends on {names}, not a multiple of {DIVISOR}",
        advice=advice,
        location=access_group.location,
        instruction=access_group.first.index,
        fixes=(Fix(advice, change, "padded rows", once),),
        about=about,
        covers=frozenset(item.index for item in access_group.instructions),
    )


def _tensor(subject: RuleInput, access_group: AccessGroup) -> Argument | None:
    launch = subject.launch
    for argument in launch.arguments if launch is not None else ():
        if argument.name == access_group.first.argument:
            return argument
    return None


def _width(tensor: Argument | None, access_group: AccessGroup) -> int:
    """Bytes of an element."""
    if tensor is not None and is_dtype(tensor.dtype):
        return max(1, int(element_bytes(tensor.dtype)))
    return max(1, min(item.bytes_per_lane for item in access_group.instructions))


def _advice(
    subject: RuleInput, tensor: Argument | None, padded: dict[str, int], width: int
) -> tuple[str, float]:
    """What to do, and the seconds a contiguous copy takes (0 where its size is not known)."""
    stride_text = join_names(f"{name} = {value}" for name, value in padded.items())
    text = f"Allocate the rows padded to a multiple of {DIVISOR} elements ({stride_text})"
    bandwidth = peak_bandwidth(subject.device)
    if tensor is None or not tensor.shape or not bandwidth:
        return f"{text}, or copy the tensor once into such rows.", 0.0
    elements = 1
    for extent in tensor.shape:
        elements *= extent
    copy_bytes = 2 * elements * width
    return (
        f"{text}, or copy {tensor.name} once into such rows ({size(copy_bytes)} to move).",
        copy_bytes / bandwidth,
    )


def _padded_strides(subject: RuleInput, padded: dict[str, int]) -> dict[str, tuple[int, ...]]:
    """The strides of the tensors that have one of the changed values as a stride."""
    assert subject.launch is not None
    values = {int(subject.launch.scalars[name]): new for name, new in padded.items()}
    new_strides = {}
    for argument in subject.launch.arguments:
        strides = tuple(values.get(step, step) for step in argument.strides)
        if strides != argument.strides:
            new_strides[argument.name] = strides
    return new_strides


RULE = Rule(
    name=NAME,
    severity="warning",
    title="Row strides that keep accesses narrow",
    explanation=f"""\
Triton makes an access wide where it can prove that every row begins at a multiple of {DIVISOR}
elements: from strides that are multiples of {DIVISOR}. With a stride such as 4098 each lane moves
its elements one by one, and the compiler does not pipeline loads that narrow.

Fires when one source line became at least {REPEATS} loads or stores of at most {NARROW_BYTES}
bytes per lane and a stride in its address is not a multiple of {DIVISOR}. The fix is predicted by
compiling the kernel again for rows padded to whole cache lines; the time of a contiguous copy gives
the number of launches after which it pays.""",
    check=_check,
)
