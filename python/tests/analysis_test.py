# SPDX-License-Identifier: BSD-3-Clause
"""What the report computes from traces."""

from __future__ import annotations

import tempfile
import time
import unittest
from pathlib import Path

from made_run import MadePe, rounds, write_trace

from headway_report.compare import Ratio, median_bounds, ratio_of_means, ratio_of_spreads
from headway_report.trace_analysis import TraceAnalysis, analyse
from headway_report.trace_file import Kind, open_folder


class Analysis(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def of(self, pes: list[MadePe], **more: int) -> TraceAnalysis:
        return analyse(open_folder(write_trace(self.folder / "trace", pes, **more)))

    def chain(self) -> list[MadePe]:
        """PE 0 works 100, PE 1 waits for its frame and works 10, PE 2 waits for the frame of PE 1."""
        first, second, third = MadePe(0), MadePe(1), MadePe(2)
        first.post(100, 1)
        first.end(100)
        second.wait(5, 120, 0, handles=4)
        second.post(130, 2)
        second.end(130)
        third.wait(3, 150, 1, handles=2)
        third.end(160)
        return [first, second, third]

    def test_the_parts_of_time_sum_up_to_the_time_of_the_pe(self) -> None:
        found = self.of(self.chain())
        self.assertEqual(found.times[1], {"program": 5 + 6, "handlers": 4, "communication": 0, "waiting": 115})
        for pe, times in zip(found.pes, found.times):
            self.assertEqual(sum(times.values()), pe.end - pe.begin)

    def test_waits_are_charged_to_the_pe_whose_frame_ended_them(self) -> None:
        charges = self.of(self.chain()).charges
        self.assertEqual(charges.direct[1, 0], [95, 0, 20])
        self.assertEqual(charges.direct[2, 1], [2 + 10, 115, 20])

    def test_a_wait_is_followed_through_the_waits_of_its_cause(self) -> None:
        charges = self.of(self.chain()).charges
        self.assertEqual(charges.computed, {0: 95 + 95, 1: 12})
        self.assertEqual(charges.network, {(0, 1): 20 + 20, (1, 2): 20})
        self.assertEqual(charges.total, 115 + 147)

    def test_all_waiting_time_is_charged(self) -> None:
        for work in ([1000, 5000, 2000], [3000] * 5, [100, 20_000]):
            found = self.of(rounds(work))
            waited = sum(times["waiting"] for times in found.times)
            self.assertAlmostEqual(found.charges.total, waited)
            self.assertEqual(found.charges.not_followed, 0)

    def test_the_critical_path_takes_the_run_time(self) -> None:
        path = self.of(self.chain()).path
        self.assertEqual(
            path.parts, {"program": 100 + 6 + 8, "handlers": 6, "communication": 0, "waiting": 0, "network": 40}
        )
        self.assertEqual((path.total, path.frames, path.work), (160, 2, {0: 100, 1: 10, 2: 10}))
        steps = [(step.sender, step.pe, step.begin, step.end) for step in path.steps]
        self.assertEqual(
            steps, [(-1, 0, 0, 100), (0, 1, 100, 120), (-1, 1, 120, 130), (1, 2, 130, 150), (-1, 2, 150, 160)]
        )
        for work in ([1000, 5000, 2000], [3000] * 5):
            found = self.of(rounds(work))
            self.assertEqual(found.path.total, found.run_ns)

    def test_a_wait_without_a_frame_is_no_cause(self) -> None:
        alone, other = MadePe(0), MadePe(1)
        alone.add(10, Kind.WAIT_BEGINS, phase=2)
        alone.add(10, Kind.FOUND_NONE, phase=2)
        alone.post(60, 1, phase=2)  # after a timeout
        alone.add(61, Kind.WAIT_ENDS)
        alone.end(70)
        other.end(5)
        found = self.of([alone, other])
        self.assertEqual(found.charges.not_followed, 50)
        self.assertEqual(found.path.parts["waiting"], 50)
        self.assertEqual([(one.sender, one.receiver, one.frames) for one in found.undelivered], [(0, 1, 1)])

    def test_latencies_of_first_and_last_messages(self) -> None:
        sender, receiver = MadePe(0), MadePe(1)
        for at, age in ((100, 40), (200, 0)):
            sender.post(at, 1, reason=1, age=age)
        sender.end(300)
        receiver.wait(0, 130, 0)
        receiver.wait(140, 260, 0)
        receiver.end(300)
        found = self.of([sender, receiver])
        self.assertEqual(found.network_ns, [30, 60])
        self.assertEqual(found.first_message_ns, [60, 70])
        self.assertEqual(found.flushes[1].by_reason, [0, 2, 0, 0])

    def test_clocks_of_hosts_are_aligned(self) -> None:
        apart = 1_000_000
        first, second = MadePe(0), MadePe(1, begin=apart, host=1)
        first.post(100, 1)
        first.wait(110, 400, 1)
        first.end(500)
        second.wait(apart + 1, apart + 200, 0)
        second.post(apart + 300, 0)
        second.end(apart + 310)
        found = self.of([first, second])
        self.assertEqual(found.network_ns, [100, 100])
        self.assertEqual((found.residual_ns, found.run_ns), (100, 500))

    def test_frames_of_shared_buffers_are_not_matched(self) -> None:
        pes = self.chain()
        pes[0].post(100, 1, foreign=1)
        found = self.of(pes)
        self.assertTrue(found.unmatched)
        self.assertEqual(found.charges.not_followed, found.charges.total)

    def test_a_run_without_an_end_is_read(self) -> None:
        pes = self.chain()
        pes[2].records.pop()
        found = self.of(pes)
        self.assertFalse(found.ended)
        self.assertEqual(found.pes[2].end, 152)
        self.assertEqual(self.of([MadePe(0)]).run_ns, 0)

    def test_a_million_records_take_few_seconds(self) -> None:
        pes = rounds([3000, 3100, 2900, 3050], steps=6_000)
        records = sum(len(pe.records) for pe in pes)
        self.assertGreater(records, 1_000_000 / 4)
        folder = open_folder(write_trace(self.folder / "trace", pes))
        began = time.process_time()
        analyse(folder)
        self.assertLess((time.process_time() - began) * 1_000_000 / records, 15)  # 5 s on a quiet core


class Comparison(unittest.TestCase):
    def test_ratios_of_means_have_intervals(self) -> None:
        first, second = [10.0, 11, 9, 10, 10.5, 9.5], [20.0, 22, 18, 20, 21, 19]
        ratio = ratio_of_means(first, second)
        assert ratio is not None and ratio.low is not None and ratio.high is not None
        self.assertAlmostEqual(ratio.value, 2)
        self.assertLessEqual(ratio.low, 2)
        self.assertGreaterEqual(ratio.high, 2)
        self.assertEqual(ratio_of_means(first, first), Ratio(1, 1, 1, 0, 6))
        self.assertIsNone(ratio_of_means([0.0, 0], [1.0, 2]))
        self.assertEqual(ratio_of_means([1.0, 2], [2.0, 4]), Ratio(2))

    def test_verdicts_follow_the_interval(self) -> None:
        self.assertEqual(Ratio(1.5, 1.2, 1.8).verdict, "20 % to 80 % more")
        self.assertEqual(Ratio(0.5, 0.4, 0.6).verdict, "40 % to 60 % less")
        self.assertEqual(Ratio(1, 0.9, 1.1).verdict, "not told apart")
        self.assertEqual(Ratio(1, 0.9, 1.1, 3, 8).verdict, "PEs differ: less at 3 of 8")
        self.assertEqual(Ratio(2).verdict, "one value each")

    def test_ratios_of_spreads_reach_from_extreme_to_extreme(self) -> None:
        first, second = {"median": 2, "min": 1, "max": 4}, {"median": 3, "min": 2, "max": 5}
        self.assertEqual(ratio_of_spreads(first, second), Ratio(1.5, 0.5, 5))
        self.assertIsNone(ratio_of_spreads(first, {"median": 3}))

    def test_bounds_of_a_median(self) -> None:
        self.assertEqual(median_bounds(list(range(101))), (50, 40, 60))
        self.assertEqual(median_bounds([7]), (7, 7, 7))


if __name__ == "__main__":
    unittest.main()
