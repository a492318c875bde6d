"""Two optimizer steps, of which the second is what a training does from then on."""

import gc
import time
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

import torch

from dsgen.workers.simulation import model as models
from dsgen.workers.simulation.fake import simulation
from dsgen.workers.simulation.sites import Sites
from dsgen.workers.simulation.tracker import Tracker

Json = Mapping[str, Any]


def simulate(request: Json, framework: Any, layers: int) -> dict[str, Any]:
    """Peaks by site, what stays between steps, and the collectives of the second step."""
    start = time.monotonic()
    tracker = Tracker(request["logits"], request["expert_share"])
    sites = Sites(tracker, request["margin"])
    subject = framework(tracker, request)
    with ExitStack() as stack:
        stack.enter_context(subject.patches())
        stack.enter_context(models.kernels_of(request))
        stack.enter_context(simulation(tracker))
        with tracker.suspended():
            model = models.decoder(request, layers)
            sites.watch(model.layers, model.embed_tokens)
            tokens = torch.randint(0, model.config.vocab_size, (request["micro_batch"], request["sequence_length"]))
        subject.prepare(model)
        del model
        gc.collect()
        _step(request, subject, tracker, sites, tokens)
        tracker.peaks.clear()
        tracker.collectives.clear()
        _step(request, subject, tracker, sites, tokens)
        resident = tracker.total
        categories = {name: size for name, size in tracker.live.items() if size}
        sites.enter("")
    return {
        "layers": layers,
        "sites": {site: [peak.total, peak.categories] for site, peak in tracker.peaks.items()},
        "resident": resident,
        "resident_categories": categories,
        "collectives": dict(tracker.collectives),
        "seconds": time.monotonic() - start,
    }


def _step(request: Json, subject: Any, tracker: Tracker, sites: Sites, tokens: Any) -> None:
    micro_batches = request["accumulation"]
    for index in range(micro_batches):
        with subject.micro_batch(index == micro_batches - 1):
            sites.enter("forward", index)
            loss = subject.loss(tokens)
            sites.enter("backward", index)
            subject.backward(loss)
        del loss
        _name(subject, tracker)
    sites.enter("optimizer step")
    tracker.category = "temporaries"
    subject.step()
    tracker.category = "activations"
    subject.zero()
    _name(subject, tracker)


def _name(subject: Any, tracker: Tracker) -> None:
    for tensor, category in subject.states():
        tracker.retag(tensor, category)
