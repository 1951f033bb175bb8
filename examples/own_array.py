"""Train on an array of your own, forecast, plot.

The array here is synthetic (travelling, decaying waves); replace it with yours. Its axes are (batch, time, channel, x).
"""

import numpy as np

from ssno import SSNO, SSNOConfig, Trajectories, rollout, train
from ssno.plots import forecast_panels, save

rng = np.random.default_rng(0)
x, t = np.arange(64) / 64, 0.05 * np.arange(20)[:, None]
wave, phase = rng.integers(1, 5, (200, 1, 1)), rng.uniform(0, 2 * np.pi, (200, 1, 1))
array = np.exp(-0.2 * wave * t) * np.sin(2 * np.pi * wave * (x - t) + phase)  # batch, time, x

data = Trajectories.from_array(array[:, :, None].astype(np.float32), lengths=[1.0], dt=0.05)
model = SSNO(SSNOConfig.tiny(boundary="periodic"))
forecaster = train(model, data.select(indices=range(180)), epochs=10, learning_rate=1e-2)

truth = data.read([190]).state
forecast = rollout(forecaster, truth[:, :4], steps=16)
error = float((forecast - truth[:, 4:]).norm() / truth[:, 4:].norm())
print(f"relative error over 16 predicted frames: {error:.3f}")
picture = forecast_panels(truth[0, :, 0].numpy(), forecast[0, :, 0].numpy(), times=data.times.tolist(), length=1.0)
print("picture:", save(picture, "own_array.png"))
