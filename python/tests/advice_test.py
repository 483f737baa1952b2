# SPDX-License-Identifier: BSD-3-Clause
"""Each rule: a run in which it finds something, and one in which it does not."""

from __future__ import annotations

import tempfile
import unittest
from pathlib import Path

from made_run import MadePe, counts, facts, rounds, write_json, write_trace

from headway_report import advice
from headway_report.advice import Advice, Rule, advise
from headway_report.sections import TOPICS


class Rules(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def of_counts(self, rule: Rule, value: dict) -> list[Advice]:
        return rule(facts(write_json(self.folder / "counts.json", value)))

    def of_trace(self, rule: Rule, pes: list[MadePe], dials: str = "", **more: tuple) -> list[Advice]:
        return rule(facts(write_trace(self.folder / "trace", pes, dials, **more)))

    def the_one(self, found: list[Advice], *words: str) -> Advice:
        self.assertEqual(len(found), 1)
        for word in words:
            self.assertIn(word, f"{found[0].action} {found[0].evidence}")
        return found[0]

    def test_a_run_without_an_end_names_the_pe_that_stopped(self) -> None:
        first, second = MadePe(0), MadePe(1)
        first.post(100, 1)
        second.post(150, 0)
        first.post(900_000, 1)
        self.the_one(self.of_trace(advice.no_end, [first, second]), "PE 1 stopped", "900 us before", "2 frames to it")
        second.post(890_000, 0)
        found = self.of_trace(advice.no_end, [first, second])
        self.the_one(found, "why the run did not come to its end", "2 PEs of 2", "from PE")
        first.end(900_100)
        second.end(900_100)
        self.assertEqual(self.of_trace(advice.no_end, [first, second]), [])

    def test_imbalance_names_the_pe_with_most_work(self) -> None:
        value = counts(pes=8)
        for pe in value["per_pe"]:
            pe["waiting_ns"] = 60_000_000
        value["per_pe"][5]["waiting_ns"] = 0
        found = self.of_counts(advice.imbalance, value)
        self.the_one(found, "PE 5", "100 ms", "2.1 times the mean of 47.5 ms", "52 %")
        found = self.of_trace(advice.imbalance, rounds([10_000, 10_000, 30_000, 10_000]))
        self.the_one(found, "PE 2", "2 times the mean", "in program")

    def test_imbalance_is_silent_about_even_work(self) -> None:
        self.assertEqual(self.of_counts(advice.imbalance, counts(pes=8)), [])
        self.assertEqual(self.of_trace(advice.imbalance, rounds([10_000, 11_000, 9_000, 10_500])), [])

    def test_imbalance_is_silent_if_the_work_is_a_small_part_of_the_run(self) -> None:
        pes = rounds([100, 100, 300, 100], latency=50_000)
        self.assertEqual(self.of_trace(advice.imbalance, pes), [])

    def test_late_pe_names_the_cause_and_its_longest_work(self) -> None:
        pes = rounds([10_000] * 8, steps=60, latency=200, late=(3, 10, 70_000))
        found = self.of_trace(advice.late_pe, pes)
        self.the_one(found, "PE 3", "80 us")
        pes = rounds([10_000] * 8, steps=60, latency=200)
        self.assertEqual(self.of_trace(advice.late_pe, pes), [])

    def test_late_pe_is_silent_if_imbalance_says_it(self) -> None:
        pes = rounds([10_000, 10_000, 30_000, 10_000])
        self.assertEqual(self.of_trace(advice.late_pe, pes), [])

    def test_late_arrivals_name_the_pe_that_takes_frames_late(self) -> None:
        sender, receiver = MadePe(0), MadePe(1)
        for step in range(40):
            now = step * 10_000
            sender.post(now + 5000, 1)
            late = 300_000 if step == 39 else 0
            receiver.wait(now + 1000, now + 7000 + late, 0)
        sender.end(400_000)
        receiver.end(700_000)
        found = self.of_trace(advice.late_arrivals, [sender, receiver])
        self.the_one(found, "PE 1 takes frames late", "302 us", "from 395 us on", "median is 2 us", "1 frame of")
        self.assertEqual(self.of_trace(advice.slow_wire, [sender, receiver]), [])
        self.assertEqual(self.of_trace(advice.late_arrivals, rounds([10_000] * 4, latency=50_000)), [])

    def test_slow_wire_names_the_latency_on_the_critical_path(self) -> None:
        pes = rounds([10_000] * 4, latency=50_000)
        found = self.of_trace(advice.slow_wire, pes, "L=48us")
        self.the_one(found, "network's L", "L of 50 us", "83 % of the critical path")

    def test_slow_wire_names_the_overhead(self) -> None:
        pes = rounds([10_000] * 4, latency=50_000)
        found = self.of_trace(advice.slow_wire, pes, "o=20us")
        self.the_one(found, "network's o", "o of 40.4 us")

    def test_slow_wire_names_the_time_of_bytes(self) -> None:
        pes = rounds([10_000] * 4, latency=50_000, size=400)
        found = self.of_trace(advice.slow_wire, pes, "G=100ns")
        self.the_one(found, "network's G", "100 ns a byte")

    def test_slow_wire_names_queues_if_the_costs_explain_little(self) -> None:
        found = self.of_trace(advice.slow_wire, rounds([10_000] * 4, latency=50_000))
        self.the_one(found, "Queues", "beyond o, L and G")

    def test_slow_wire_names_a_gap_that_keeps_the_network_busy(self) -> None:
        pes = rounds([10_000] * 4, latency=2_000)
        found = self.of_trace(advice.slow_wire, pes, "g=3us")
        self.the_one(found, "network's g", "3 us")

    def test_slow_wire_names_an_overhead_that_keeps_a_pe_busy(self) -> None:
        pes = rounds([10_000] * 4, latency=2_000)
        self.the_one(self.of_trace(advice.slow_wire, pes, "o=1.2us"), "network's o", "PE")

    def test_slow_wire_uses_slopes_and_measured_costs_without_a_trace(self) -> None:
        slopes = {
            "command": ["./made"],
            "pes": 4,
            "traced_seconds": 1e-3,
            "path": {},
            "slopes": [{"parameter": "L", "slope": 200}, {"parameter": "o", "slope": 400}],
        }
        probe = {
            "records": [
                {
                    "bench": "probe",
                    "transport": "mpi",
                    "pair": "host",
                    "o_send_ns": {"value": 300, "low": 200, "high": 400},
                    "latency_ns": {"value": 2000, "low": 1900, "high": 2100},
                }
            ]
        }
        paths = [write_json(self.folder / "slopes", slopes), write_json(self.folder / "probe", probe)]
        self.the_one(advice.slow_wire(facts(*paths)), "network's L", "200 times", "40 %")
        slopes["traced_seconds"] = 1e-2
        write_json(paths[0], slopes)
        self.assertEqual(advice.slow_wire(facts(*paths)), [])

    def test_slow_wire_is_silent_if_work_has_most_of_the_path(self) -> None:
        self.assertEqual(self.of_trace(advice.slow_wire, rounds([10_000] * 4)), [])

    def aggregated(self, reason: int, size: int, pes: int = 16, frames: int = 1000) -> list[MadePe]:
        """Each PE sends frames to all others in turn; the first one to each is full."""
        made = [MadePe(pe) for pe in range(pes)]
        for pe in made:
            pe.names.append((2, 1, "edges"))
            others = [other for other in range(pes) if other != pe.pe]
            for i in range(max(frames // pes, len(others))):
                full = i < max(len(others) // 4, 1)
                pe.post(
                    1000 * i,
                    others[i % len(others)],
                    4096 if full else size,
                    100,
                    reason=0 if full else reason,
                    age=50_000,
                )
            pe.end(1000 * frames)
        return made

    def test_frames_that_leave_by_timeout_get_a_grid_if_there_are_many_receivers(self) -> None:
        found = self.of_trace(advice.frames_leave_early, self.aggregated(1, 200))
        self.the_one(found, "`edges`", "left by timeout, ", "grid(2)", "60 % fewer frames", "6 buffers instead of 15")

    def test_frames_that_leave_by_timeout_get_a_longer_one_if_there_are_few_receivers(self) -> None:
        found = self.of_trace(advice.frames_leave_early, self.aggregated(1, 1000, pes=4))
        self.the_one(found, "timeout 4 times as long", "now 50 us")

    def test_frames_that_leave_idle_pes(self) -> None:
        found = self.of_trace(advice.frames_leave_early, self.aggregated(2, 400, pes=4))
        self.the_one(found, "the PE was idle", "independent work")

    def test_frames_of_a_barrier_get_a_grid_if_there_are_many_receivers(self) -> None:
        found = self.of_trace(advice.frames_leave_early, self.aggregated(3, 100))
        self.the_one(found, "left at a flush or barrier", "grid(2)")
        self.assertEqual(self.of_trace(advice.frames_leave_early, self.aggregated(3, 100, pes=4)), [])

    def test_full_frames_are_not_early(self) -> None:
        self.assertEqual(self.of_trace(advice.frames_leave_early, self.aggregated(0, 4096)), [])

    def test_filled_frames_may_leave_by_timeout(self) -> None:
        self.assertEqual(self.of_trace(advice.frames_leave_early, self.aggregated(1, 3000)), [])

    def test_the_last_frames_before_barriers_are_not_early(self) -> None:
        few = counts(pes=8, full=10, idle=90, messages_in_frames=900, bytes_sent=200_000, receivers=7, barriers=3)
        self.assertEqual(self.of_counts(advice.frames_leave_early, few), [])
        many = counts(pes=8, full=10, idle=900, messages_in_frames=900, bytes_sent=200_000, receivers=7, barriers=3)
        self.the_one(self.of_counts(advice.frames_leave_early, many), "all aggregators", "96 %")

    def test_few_receivers(self) -> None:
        value = counts(pes=16, waiting_ns=30_000_000, bytes_received=1000)
        for pe in (2, 7):
            value["per_pe"][pe]["bytes_received"] = 1_000_000
        self.the_one(self.of_counts(advice.few_receivers, value), "2 of 16 PEs", "PE 2 and 7")
        self.assertEqual(self.of_counts(advice.few_receivers, counts(pes=16, waiting_ns=30_000_000)), [])

    def test_direct_mode_with_small_messages(self) -> None:
        value = counts(messages_in_frames=950, bytes_sent=48_000, frames_sent=1000)
        self.the_one(self.of_counts(advice.direct_small_messages, value), "Aggregate", "1 message each", "48 B")
        self.assertEqual(self.of_counts(advice.direct_small_messages, counts()), [])
        waits = counts(messages_in_frames=950, bytes_sent=48_000, frames_sent=1000, turns=900)
        self.assertEqual(self.of_counts(advice.direct_small_messages, waits), [])

    def test_reads_that_wait(self) -> None:
        value = counts(reads=300, waits=400, waiting_ns=40_000_000)
        self.the_one(self.of_counts(advice.reads_that_wait, value), "1\u202f200 requests", "30 %", "100 us each")
        self.assertEqual(self.of_counts(advice.reads_that_wait, counts(reads=300, waits=400)), [])
        self.assertEqual(self.of_counts(advice.reads_that_wait, counts(waits=400, waiting_ns=40_000_000)), [])

    def test_spill(self) -> None:
        value = counts(spilled_frames=20, spilled_bytes_peak=1 << 20)
        self.the_one(self.of_counts(advice.spilled, value), "HEADWAY_BUDGET", "80 frames", "16 MiB", "1 MiB")
        self.assertEqual(self.of_counts(advice.spilled, counts(spilled_frames=2)), [])

    def test_more_pes_than_cores(self) -> None:
        self.the_one(self.of_counts(advice.shared_cores, counts(cpu_ns=40_000_000)), "fewer PEs than 4", "42 %")
        self.assertEqual(self.of_counts(advice.shared_cores, counts()), [])
        self.assertEqual(self.of_counts(advice.shared_cores, counts(simulated=True, cpu_ns=0)), [])

    def test_large_messages_in_small_buffers(self) -> None:
        value = counts(messages=5000, payload_bytes=20_000_000, alone=4000)
        self.the_one(self.of_counts(advice.large_messages, value), "send_buffer", "3.91 KiB", "80 %")
        self.assertEqual(self.of_counts(advice.large_messages, counts()), [])

    def test_healthy_runs_get_no_advice(self) -> None:
        runs = [
            rounds([100_000, 99_000, 101_000, 100_000]),
            rounds([100_000] * 2),
            rounds([100_000 + 500 * pe for pe in range(16)]),
        ]
        for place, pes in enumerate(runs):
            trace = write_trace(self.folder / f"trace-{place}", pes)
            value = counts(pes=len(pes), simulated=True)
            found = advise(facts(trace, write_json(self.folder / "counts", value)), set(TOPICS))
            self.assertEqual(found, [], f"run {place}")

    def test_every_rule_is_in_the_list_and_topics_choose(self) -> None:
        trace = write_trace(self.folder / "trace", rounds([10_000, 10_000, 30_000, 10_000], latency=90_000), "L=88us")
        value = facts(trace, write_json(self.folder / "counts", counts(spilled_frames=20)))
        self.assertEqual([one.rule for one in advise(value, set(TOPICS))], ["slow wire", "imbalance", "spill"])
        self.assertEqual([one.rule for one in advise(value, {"network"})], ["slow wire"])


if __name__ == "__main__":
    unittest.main()
