"""The report page of a run on a sphere has maps and globes."""

from types import SimpleNamespace

import numpy as np
import torch

from ssno.data.trajectories import Trajectories
from ssno.pde.geometry import SPHERE
from ssno.report import page


def test_the_still_of_a_sphere_is_drawn_as_maps_and_globes(monkeypatch, as_users_call_it) -> None:
    state = torch.randn(1, 4, 3, 8, 16)
    seen = SimpleNamespace(
        truth=state,
        forecast=state[:, 1:],
        indices=(0,),
        input_frames=1,
        times=range(4),
        predicted_times=(1.0, 2.0, 3.0),
    )
    data = Trajectories.from_array(state, fields=("geopotential", "vorticity", "divergence"))
    data = data.__class__(**{**vars(data), "geometry": SPHERE})
    drawn = []
    monkeypatch.setattr(page, "picture", lambda draw, title, **_: drawn.append(draw()))
    monkeypatch.setattr(page, "player_data", lambda *_: {})
    page.forecasts(SimpleNamespace(run=SimpleNamespace(name="run"), examples=seen, data=data, labels={0: "median"}))
    (figure,) = drawn
    assert len(figure.axes) == 3 * 4 + 3
    assert np.isfinite(figure.get_size_inches()).all()
