# SPDX-License-Identifier: BSD-3-Clause
"""Rules about the network: slow wires, and frames that arrive late."""

from __future__ import annotations

from collections import Counter

from .advice_base import GAIN_MIN, NETWORK_SHARE_MIN, OUTLIER_MIN, SLOPE_MIN, Advice, median
from .facts import Facts
from .trace_analysis import Step, TraceAnalysis
from .units import counted, duration, number, percent, size


def slow_wire(facts: Facts) -> list[Advice]:
    """The network has most of the critical path, or a parameter of it has a large part of the run time."""
    return _wire_by_gaps(facts) or _wire_by_path(facts) or _wire_by_slopes(facts)


_CURES = {
    "o": "send fewer, larger frames: aggregate, or choose larger buffers",
    "L": "have more requests under way at a time, or do independent work before each wait",
    "G": "send fewer bytes, or combine messages of one receiver before they leave",
    "g": "send fewer, larger frames: aggregate, or choose larger buffers",
    "queues": "spread the frames over time and receivers: frames wait behind others of their sender or receiver",
}


def _wire_by_path(facts: Facts) -> list[Advice]:
    analysis = facts.analysis
    if analysis is None or analysis.path.total <= 0:
        return []
    path, costs = analysis.path, analysis.costs
    network = path.parts["network"] - sum(step.end - step.begin for step in _outliers_of_path(facts)[1])
    share = network / path.total
    if share < NETWORK_SHARE_MIN:
        return []
    parts = {
        "L": path.frames * costs.latency_ns,
        "G": path.bytes * costs.gap_per_byte_ns,
        "o": path.frames * costs.overhead_ns,
    }
    known = sum(parts.values())
    parts["queues"] = max(network - known, 0)
    name = max(parts, key=lambda part: parts[part])
    part = min(parts[name], network)
    numbers = {
        "L": f"L of {duration(costs.latency_ns)}",
        "G": f"G of {costs.gap_per_byte_ns:.3g} ns a byte",
        "o": f"o of {duration(costs.overhead_ns)}",
        "queues": "time beyond o, L and G",
    }[name]
    what = "Queues delay frames" if name == "queues" else f"The network's {name} sets the run time"
    return [
        Advice(
            "slow wire",
            "network",
            f"{what}: {_CURES[name]}.",
            f"{percent(share)} of the critical path ({duration(network)} of {duration(path.total)}) is network, in "
            f"{counted(path.frames, 'frame')} with {size(path.bytes)} one after the other. {percent(part, network)} of "
            f"that is {numbers}.",
            share,
        )
    ]


def _busiest_network(analysis: TraceAnalysis) -> tuple[float, str, int]:
    """Share of the run in which the frames of one PE keep its network or the PE busy; G, g or o, the cause; the PE."""
    best = (0.0, "", 0)
    for pe in analysis.pes:
        own = pe.pe
        size_sent = sum(size for peer, size in pe.bytes_to.items() if peer != own)
        frames = sum(frames for peer, frames in pe.frames_to.items() if peer != own)
        received = sum(len(taken.times) for (peer, _), taken in pe.taken.items() if peer != own)
        busy = (
            (size_sent * analysis.costs.gap_per_byte_ns, "G"),
            (frames * analysis.costs.gap_ns, "g"),
            ((frames + received) * analysis.costs.overhead_ns / 2, "o"),
        )
        for ns, name in busy:
            best = max(best, (ns / max(analysis.run_ns, 1), name, own))
    return best


def _wire_by_gaps(facts: Facts) -> list[Advice]:
    """The frames of one PE follow each other without a pause: only o, g or G sets their rate."""
    analysis = facts.analysis
    if analysis is None:
        return []
    share, name, pe = _busiest_network(analysis)
    if share < NETWORK_SHARE_MIN:
        return []
    costs = analysis.costs
    value = {
        "G": f"{costs.gap_per_byte_ns:.3g} ns a byte",
        "g": duration(costs.gap_ns),
        "o": f"{duration(costs.overhead_ns)} for sender and receiver together",
    }[name]
    article = "an" if name == "o" else "a"
    busy = f"keep PE {pe}" if name == "o" else "keep its network"
    return [
        Advice(
            "slow wire",
            "network",
            f"The network's {name} sets the run time: {_CURES[name]}.",
            f"With {article} {name} of {value} the frames of PE {pe} {busy} busy for {percent(min(share, 1))} of the "
            "run.",
            min(share, 1.0),
        )
    ]


def _wire_by_slopes(facts: Facts) -> list[Advice]:
    """Without a trace: slopes times the costs that `headway probe` measured."""
    slopes, probe = facts.run.slopes, facts.run.probe
    if facts.analysis is not None or slopes is None or not probe or not facts.run_ns:
        return []
    fields = {"L": "latency_ns", "G": "gap_per_byte_ns", "o": "o_send_ns", "g": "g_ns"}
    counts = {one["parameter"]: one["slope"] for one in slopes["slopes"]}
    worst: tuple[float, str, float] = (0, "", 0)
    for name, key in fields.items():
        cost = probe[0].get(key, {}).get("value") if isinstance(probe[0].get(key), dict) else None
        if isinstance(cost, (int, float)) and name in counts:
            worst = max(worst, (counts[name] * cost / facts.run_ns, name, cost))
    share, name, cost = worst
    if share < SLOPE_MIN:
        return []
    cure = _CURES.get(name, _CURES["o"])
    return [
        Advice(
            "slow wire",
            "network",
            f"The network's {name} sets the run time: {cure}.",
            f"The longest path has {name} {number(counts[name])} times, and headway probe measured "
            f"{cost:.3g} ns: together "
            f"{percent(share)} of the run time.",
            share,
        )
    ]


def late_arrivals(facts: Facts) -> list[Advice]:
    """Few frames of the critical path lie for a very long time before one PE takes them: it did not run."""
    pe, outliers = _outliers_of_path(facts)
    if not outliers or facts.analysis is None:
        return []
    late = sum(step.end - step.begin for step in outliers)
    longest = max(outliers, key=lambda step: step.end - step.begin)
    gain = late / facts.analysis.run_ns
    return [
        Advice(
            "late arrivals",
            "waits",
            f"Find out why PE {pe} takes frames late.",
            f"A frame from PE {longest.sender} took {duration(longest.end - longest.begin)}, from "
            f"{duration(longest.begin - facts.analysis.begin)} on, until PE {pe} had it; the median is "
            f"{duration(median(facts.analysis.network_ns))}. {counted(len(outliers), 'frame')} of the "
            f"critical path lay so, "
            f"{percent(gain)} of the run time: PE {pe} did not run, or the network held them.",
            gain,
        )
    ]


def _outliers_of_path(facts: Facts) -> tuple[int, list[Step]]:
    """The PE that takes nearly all late frames of the critical path, and these frames."""
    analysis = facts.analysis
    if analysis is None or not analysis.network_ns:
        return -1, []
    bound = max(OUTLIER_MIN * median(analysis.network_ns), 0.01 * analysis.run_ns)
    late = [step for step in analysis.path.steps if step.sender >= 0 and step.end - step.begin > bound]
    by_receiver: Counter = Counter()
    for step in late:
        by_receiver[step.pe] += step.end - step.begin
    if not by_receiver:
        return -1, []
    pe, ns = by_receiver.most_common(1)[0]
    if ns < GAIN_MIN * analysis.run_ns or ns < 0.8 * sum(by_receiver.values()):
        return -1, []
    return pe, [step for step in late if step.pe == pe]
