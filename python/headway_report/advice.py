# SPDX-License-Identifier: BSD-3-Clause
"""Advice in words. Each rule looks at one thing, and names the numbers that it found."""

from __future__ import annotations

from math import ceil, sqrt

from .advice_base import (
    IMBALANCE_MIN,
    GAIN_MIN,
    WAITING_MIN,
    LATE_SHARE_MIN,
    EARLY_MIN,
    FILL_MAX,
    PARTIAL_PER_RECEIVER_MIN,
    FRAMES_MIN,
    HOT_SHARE,
    SMALL_BYTES,
    READS_MIN,
    CPU_MAX,
    Advice,
    Rule,
    median,
)
from .advice_end import no_end
from .advice_network import late_arrivals, slow_wire
from .facts import AggregatorFacts, Facts
from .trace_analysis import longest_silence
from .units import counted, duration, listed, number, percent, size


def imbalance(facts: Facts) -> list[Advice]:
    work = facts.work
    if len(work) < 2 or not facts.run_ns:
        return []
    mean, most = sum(work) / len(work), max(work)
    gain = (most - mean) / facts.run_ns
    if mean <= 0 or most < IMBALANCE_MIN * mean or gain < GAIN_MIN:
        return []
    slowest = work.index(most)
    heavy = [pe for pe, ns in enumerate(work) if ns >= IMBALANCE_MIN * mean]
    part = _largest_excess(facts, slowest)
    more = "" if len(heavy) == 1 else f" {counted(len(heavy), 'PE')} have at least {IMBALANCE_MIN} times the mean."
    return [
        Advice(
            "imbalance",
            "balance",
            f"Give PE {slowest} less work.",
            f"PE {slowest} works {duration(most)}, {most / mean:.2g} times the mean of "
            f"{duration(mean)}{part}. PEs wait "
            f"{percent(facts.waiting_share)} of their time.{more} With even work the run would take "
            f"up to {percent(gain)} "
            "less time.",
            gain,
        )
    ]


def _largest_excess(facts: Facts, slowest: int) -> str:
    """The part of its time in which the PE is furthest above the mean."""
    excess = {
        part: ns - sum(row[part] for row in facts.times) / len(facts.times)
        for part, ns in facts.times[slowest].items()
        if part not in ("waiting", "working")
    }
    if not excess:
        return ""
    part = max(excess, key=lambda one: excess[one])
    return f", {percent(excess[part], sum(max(one, 0) for one in excess.values()))} of the difference in {part}"


def late_pe(facts: Facts) -> list[Advice]:
    """One PE whose computation causes most of the waiting, although its work as a whole may be even."""
    analysis = facts.analysis
    if analysis is None or facts.pes is None or facts.pes < 2 or facts.waiting_share < WAITING_MIN:
        return []
    charges = analysis.charges
    if not charges.computed or charges.total <= 0:
        return []
    cause, charged = charges.computed.most_common(1)[0]
    computed = sum(charges.computed.values())
    # Of two PEs one is always the cause of most waiting; then it must cause nearly all.
    least = LATE_SHARE_MIN if facts.pes > 2 else 0.8
    work = facts.work
    gain = charged / (facts.pes - 1) / analysis.run_ns
    if charged < least * charges.total or charged < 2 * computed / facts.pes or gain < GAIN_MIN:
        return []
    if imbalance(facts) and work.index(max(work)) == cause:
        return []  # said already
    begin, silence = longest_silence(analysis.pes[cause])
    late = analysis.pes[cause].begin - analysis.begin
    began = f" It began {duration(late)} after the first PE." if late > GAIN_MIN * analysis.run_ns else ""
    return [
        Advice(
            "late PE",
            "waits",
            f"Find out why PE {cause} is late.",
            f"{percent(charged, charges.total)} of all waiting time ({duration(charged)}) passed "
            f"while PE {cause} computed. "
            f"Its longest work without a frame to others took {duration(silence)}, from "
            f"{duration(begin - analysis.begin)} "
            f"on.{began}",
            gain,
        )
    ]


def frames_leave_early(facts: Facts) -> list[Advice]:
    result = []
    for one in facts.aggregators:
        fill = one.fill
        if one.frames < FRAMES_MIN or fill is None or fill > FILL_MAX or one.share("full") > 1 - EARLY_MIN:
            continue
        reason = max(("timeout", "idle", "requested"), key=lambda name: one.by_reason[name])
        cure = _cure_of_early(facts, one, fill)
        if cure is None:
            continue
        peers = ""
        if one.early_by_peer and len(one.early_by_peer) > 2:
            needed = _peers_with(one.early_by_peer, HOT_SHARE)
            if needed < len(one.early_by_peer):
                peers = f"; {needed} of {counted(len(one.early_by_peer), 'peer')} receive {percent(HOT_SHARE)} of them"
        words = {"timeout": "by timeout", "idle": "because the PE was idle", "requested": "at a flush or barrier"}[
            reason
        ]
        result.append(
            Advice(
                "frames leave early",
                "aggregation",
                cure[0],
                f"{percent(one.by_reason[reason], one.frames)} of the {number(one.frames)} frames of `{one.name}` left "
                f"{words}, {percent(one.share('full'))} full{peers}. A frame is filled to {percent(fill)}, with "
                f"{number(one.messages / one.frames)} messages. {cure[1]}",
            )
        )
    return result


def _few_for_each(facts: Facts, one: AggregatorFacts) -> bool:
    """A few frames for each receiver between two barriers cannot be avoided."""
    counts = facts.run.counts
    if counts is None:
        return False
    rounds = counts.sum("receivers") * (1 + counts.mean("barriers"))
    return one.frames * one.share("timeout", "idle") < PARTIAL_PER_RECEIVER_MIN * rounds


def _cure_of_early(facts: Facts, one: AggregatorFacts, fill: float) -> tuple[str, str] | None:
    pes = facts.pes or 1
    receivers = _receivers(facts)
    # On a grid of two dimensions a PE has buffers for its row and its column alone.
    buffers = 2 * (ceil(sqrt(pes)) - 1)
    if pes >= 9 and receivers > 1.25 * buffers:
        return (
            f"Use grid(2) for `{one.name}` (HEADWAY_TOPOLOGY=2d).",
            f"Expected: {percent(1 - buffers / receivers)} fewer frames, because each PE fills {buffers} buffers "
            f"instead of {number(round(receivers))}.",
        )
    if one.share("timeout", "idle") < EARLY_MIN or _few_for_each(facts, one):
        return None
    factor = min(1 / max(fill, 0.01), 8.0)
    if one.by_reason["timeout"] >= one.by_reason["idle"]:
        age = f" (now {duration(median(one.ages_ns))})" if one.ages_ns else ""
        return (
            f"Give `{one.name}` a timeout {factor:.2g} times as long{age}, or join it with other aggregators.",
            f"Expected: {percent(1 - 1 / factor)} fewer frames, if messages may wait so long.",
        )
    return (
        f"Let PEs do more independent work before they wait for `{one.name}`, or set it to wait for full buffers.",
        f"An idle PE posts what it has: with full buffers there would be {percent(1 - fill)} fewer frames.",
    )


def _receivers(facts: Facts) -> float:
    """Of one PE, the mean."""
    if facts.run.counts is not None and facts.run.counts.sum("receivers"):
        return facts.run.counts.mean("receivers")
    if facts.analysis is not None:
        return sum(len(pe.frames_to) for pe in facts.analysis.pes) / len(facts.analysis.pes)
    return max((facts.pes or 1) - 1, 0)


def _peers_with(counts: dict[int, int], share: float) -> int:
    total, sum_ = sum(counts.values()), 0
    for place, value in enumerate(sorted(counts.values(), reverse=True), 1):
        sum_ += value
        if sum_ >= share * total:
            return place
    return len(counts)


def few_receivers(facts: Facts) -> list[Advice]:
    if facts.pes is None or facts.pes < 8:
        return []
    received: dict[int, int] = {}
    if facts.analysis is not None:
        for pe in facts.analysis.pes:
            for peer, messages in pe.messages_to.items():
                received[peer] = received.get(peer, 0) + messages
        what = "messages"
    elif facts.run.counts is not None:
        received = {pe: int(row.get("bytes_received", 0)) for pe, row in enumerate(facts.run.counts.per_pe)}
        what = "bytes"
    total = sum(received.values())
    if total < FRAMES_MIN:
        return []
    needed = _peers_with(received, HOT_SHARE)
    if needed > facts.pes // 4 or facts.waiting_share < WAITING_MIN:
        return []
    hot = sorted(sorted(received, key=lambda pe: -received[pe])[:needed])
    return [
        Advice(
            "few receivers",
            "aggregation",
            "Spread the data of the busiest receivers over more PEs.",
            f"{needed} of {facts.pes} PEs receive {percent(HOT_SHARE)} of all {what}: PE {listed(hot)}. PEs wait "
            f"{percent(facts.waiting_share)} of their time.",
        )
    ]


def direct_small_messages(facts: Facts) -> list[Advice]:
    counts = facts.run.counts
    if counts is None:
        return []
    frames = counts.sum("frames_sent") - counts.sum("control_frames")
    if frames < FRAMES_MIN:
        return []
    per_frame = counts.sum("messages_in_frames") / frames
    mean_bytes = counts.sum("bytes_sent") / counts.sum("frames_sent")
    turns, receivers = counts.sum("turns"), max(counts.mean("receivers"), 1)
    before_wait = frames / (turns or 1) / receivers
    if per_frame >= 1.5 or mean_bytes > SMALL_BYTES or before_wait < 2:
        return []
    return [
        Advice(
            "direct mode",
            "aggregation",
            "Aggregate the small messages (topology 1d instead of direct).",
            f"{number(frames)} frames carry {counted(round(per_frame, 1), 'message')} each, with "
            f"{size(mean_bytes)}. A PE sends "
            f"{before_wait:.2g} of them to each receiver before it waits, so as many would fit into one frame.",
        )
    ]


def reads_that_wait(facts: Facts) -> list[Advice]:
    counts = facts.run.counts
    if counts is None or facts.waiting_share < WAITING_MIN:
        return []
    frames, reads, waits = (counts.sum(name) for name in ("frames_sent", "reads", "waits"))
    if reads < READS_MIN * frames or reads < FRAMES_MIN / 5 or reads < 0.2 * waits:
        return []
    each = sum(facts.waiting) / waits if waits else 0
    return [
        Advice(
            "reads that wait",
            "waits",
            "Ask for several values before you wait for the first one.",
            f"PEs waited for the answer to {number(reads)} requests, {percent(reads, frames)} of all "
            f"frames, and waited "
            f"{percent(facts.waiting_share)} of their time: {duration(each)} each.",
            min(facts.waiting_share, reads / waits if waits else 0),
        )
    ]


def spilled(facts: Facts) -> list[Advice]:
    counts = facts.run.counts
    if counts is None:
        return []
    frames, peak = counts.sum("spilled_frames"), counts.max("spilled_bytes_peak")
    if frames == 0 or frames < 0.01 * counts.sum("frames_sent"):
        return []
    return [
        Advice(
            "spill",
            "aggregation",
            "Raise HEADWAY_BUDGET, or send less from handlers.",
            f"Handlers sent {number(frames)} frames beyond the budget of {size(counts.budget_bytes)}, at most "
            f"{size(peak)} of a PE at a time.",
        )
    ]


def shared_cores(facts: Facts) -> list[Advice]:
    counts = facts.run.counts
    if counts is None or counts.simulated:
        return []
    busy = [max(pe["run_ns"] - pe["waiting_ns"], 0) for pe in counts.per_pe]
    cpu = [pe.get("cpu_ns", 0) for pe in counts.per_pe]
    if sum(busy) <= 0 or sum(cpu) <= 0 or sum(busy) < 0.1 * counts.sum("run_ns"):
        return []
    share = sum(cpu) / sum(busy)
    if share > CPU_MAX:
        return []
    least = min(range(counts.pes), key=lambda pe: cpu[pe] / busy[pe] if busy[pe] else 1)
    return [
        Advice(
            "shared cores",
            "balance",
            f"Start fewer PEs than {counts.pes}, or free the cores of other work.",
            f"PEs got a core in {percent(share)} of the {duration(sum(busy) / counts.pes)} in which they had work; PE "
            f"{least} got {percent(cpu[least], busy[least])}. More PEs than cores take turns.",
            1 - share,
        )
    ]


def large_messages(facts: Facts) -> list[Advice]:
    counts = facts.run.counts
    if counts is None:
        return []
    messages, payload, buffer = (counts.sum("messages"), counts.sum("payload_bytes"), counts.max("buffer_bytes"))
    if messages < FRAMES_MIN or not buffer:
        return []
    mean = payload / messages
    alone = counts.sum("alone")
    if mean < 1024 or (mean < buffer / 4 and alone < 0.5 * messages):
        return []
    return [
        Advice(
            "large messages",
            "aggregation",
            "Send large content by send_buffer or get, which copy it once.",
            f"{number(messages)} messages have {size(mean)} in the mean, and a buffer has {size(buffer)}: "
            f"{percent(alone, messages)} of them went in a frame of their own, and the others fill a buffer with "
            f"{max(buffer / mean, 1):.2g} messages.",
        )
    ]


RULES: tuple[Rule, ...] = (
    no_end,
    imbalance,
    late_pe,
    late_arrivals,
    slow_wire,
    frames_leave_early,
    few_receivers,
    direct_small_messages,
    reads_that_wait,
    spilled,
    shared_cores,
    large_messages,
)


def has_numbers(facts: Facts) -> bool:
    """Whether most rules have what they need."""
    return facts.run.counts is not None or facts.analysis is not None


def advise(facts: Facts, topics: set[str]) -> list[Advice]:
    """Advice on these topics, largest gain first."""
    found = [advice for rule in RULES for advice in rule(facts) if advice.topic in topics]
    return sorted(found, key=lambda advice: -(advice.gain or 0))
