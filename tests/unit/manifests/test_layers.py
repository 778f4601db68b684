"""What one environment lays over the manifests."""

from __future__ import annotations

import pytest

from reconciler.manifests.layers import NO_LAYERS, Layers


@pytest.mark.parametrize(
    ("layers", "folders"),
    [
        (NO_LAYERS, ()),
        (Layers(overlay="a"), ("a",)),
        (Layers(other_overlays=("b", "c")), ("b", "c")),
        (Layers(overlay="a", other_overlays=("b",)), ("a", "b")),
    ],
)
def test_the_overlays_of_all_environments(layers: Layers, folders: tuple[str, ...]) -> None:
    assert layers.overlays == folders
