"""Which of a workload's declared targets hold in what was measured. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from benchmarks.stats import Sample, Spread, ratio, summary
from benchmarks.workload import OURS, Target

# case -> library -> its runs
Samples = Mapping[str, Mapping[str, Sequence[Sample]]]


@dataclass(frozen=True)
class Verdict:
    """One target on one case (and one peer): what was asked for and what was seen. ``seen`` None: not measured."""

    claim: str
    seen: Spread | None
    holds: bool


def check(targets: Sequence[Target], samples: Samples, peers: Sequence[str]) -> list[Verdict]:
    """All verdicts, in the order of the targets.

    Where the run left out a case or a peer by choice, or the peer cannot do the case, there is no verdict; where ours
    gave no figure the target is missed.
    """
    verdicts = []
    for target in targets:
        for case in samples:
            if fnmatchcase(case, target.case):
                verdicts.extend(_of_case(target, case, samples, peers))
    return verdicts


def _of_case(target: Target, case: str, samples: Samples, peers: Sequence[str]) -> list[Verdict]:
    ours = samples[case].get(OURS, ())
    if not target.peer:
        return [_verdict(target, f"{case}: {target.metric}", summary(ours, target.metric))]
    verdicts = []
    other = target.peer_case or case
    for peer in peers:
        if not fnmatchcase(peer, target.peer) or (peer == OURS and other == case) or other not in samples:
            continue
        if peer not in samples[other]:
            continue  # the peer cannot do this case: nothing to be held against
        seen = ratio(samples[other][peer], ours, target.metric)
        what = f"{case}: {target.metric} of {peer}" + (f" on {other}" if target.peer_case else "") + " / ours"
        verdicts.append(_verdict(target, what, seen))
    return verdicts


def _verdict(target: Target, what: str, seen: Spread | None) -> Verdict:
    bounds = []
    holds = seen is not None
    if target.at_least is not None:
        bounds.append(f">= {target.at_least:g}")
        holds = seen is not None and holds and seen.mid >= target.at_least
    if target.at_most is not None:
        bounds.append(f"<= {target.at_most:g}")
        holds = seen is not None and holds and seen.mid <= target.at_most
    return Verdict(f"{what} {' and '.join(bounds)}", seen, holds)
