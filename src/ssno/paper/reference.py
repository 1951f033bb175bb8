"""Numbers that the paper prints, and where. The resolution figure has none, only ratios in the text."""

PAPER = (
    "N. F. Koren and S. Lanthaler, Merging Memory and Space: A State Space Neural Operator, "
    "Transactions on Machine Learning Research, 2026"
)

ABLATION = {  # Table "state sizes and training settings", KS at 128 points: (states, setting): nu = 0.075, 0.1, 0.125
    (64, "All"): (0.0086, 0.0026, 0.0013),
    (64, "Damping only"): (0.0086, 0.0027, 0.0013),
    (64, "Frequency only"): (0.0110, 0.0030, 0.0014),
    (64, "Fixed"): (0.0116, 0.0033, 0.0016),
    (32, "All"): (0.0090, 0.0027, 0.0012),
    (32, "Damping only"): (0.0094, 0.0028, 0.0014),
    (32, "Frequency only"): (0.0137, 0.0038, 0.0018),
    (32, "Fixed"): (0.0158, 0.0042, 0.0020),
    (16, "All"): (0.0115, 0.0038, 0.0017),
    (16, "Damping only"): (0.0131, 0.0044, 0.0019),
    (16, "Frequency only"): (0.0198, 0.0069, 0.0031),
    (16, "Fixed"): (0.0227, 0.0068, 0.0031),
}
TEACHER_FORCING = {  # Table "1D benchmarks at varying resolutions": (points, forced): KS 0.075, 0.1, 0.125, Burgers
    (128, True): (0.0086, 0.0027, 0.0013, 0.0070),
    (128, False): (0.0076, 0.0034, 0.0019, 0.0070),
    (64, True): (0.0143, 0.0048, 0.0029, 0.0121),
    (64, False): (0.0135, 0.0042, 0.0023, 0.0114),
    (32, True): (0.0472, 0.0162, 0.0088, 0.0200),
    (32, False): (0.0358, 0.0135, 0.0071, 0.0171),
}
UNIDIRECTIONAL = {"ssno": 0.007, "ssno-uni": 0.075}  # text of the appendix, Burgers
MEAN_DAMPING = {  # text of the damping analysis: (nu, states, setting)
    (0.075, 64, "All"): 0.586,
    (0.075, 64, "Damping only"): 0.726,
    (0.125, 64, "All"): 0.514,
    (0.075, 16, "All"): 0.652,
}
FORCED_PROBLEMS = ("KS 0.075", "KS 0.1", "KS 0.125", "Burgers")
VISCOSITIES = (0.075, 0.1, 0.125)
LATENCIES = {  # Table "computational cost summary", ms on an A6000: 32, 64, 128, 256, 512 points
    "unet": (1.29, 1.24, 1.22, 1.25, 1.24),
    "gkt": (2.30, 2.26, 2.26, 2.25, 2.26),
    "factformer": (3.36, 3.39, 3.38, 3.43, 3.37),
    "ffno": (1.37, 1.35, 1.35, 1.35, 1.39),
    "ssno": (0.80, 0.81, 0.82, 0.81, 0.81),
}
GFLOPS = {
    "unet": (0.088, 0.176, 0.352, 0.704, 1.407),
    "gkt": (0.002, 0.004, 0.007, 0.015, 0.030),
    "factformer": (0.165, 0.330, 0.659, 1.319, 2.638),
    "ffno": (0.016, 0.033, 0.044, 0.067, 0.120),
    "ssno": (0.013, 0.026, 0.052, 0.104, 0.209),
}
AIRFRANS = {  # Table "AirfRANS": volume p, surface p (z-scored mean squares), relative error and rank of the lift
    "attention": (0.0037, 0.0142, 0.1030, 0.9978),
    "scan": (0.0017, 0.0046, 0.1098, 0.9973),
}
SPHERE = {  # Table "spherical shallow water": t = 20, 50, 100
    "SFNO": (6.56e-2, 5.99e-1, 2.82),
    "SS-NO": (2.63e-2, 2.54e-1, 1.28),
}
FNO_MODES_ON_TORUS_LI = 8  # appendix: all models keep all modes the grid has, except FNO on TorusLi
FLUID_PROBLEMS = ("TorusLi", "TorusVis", "TorusVisForce", "CE-RM", "GCE-RT")
FLUIDS = {  # Table "2D Navier-Stokes datasets": (model, problem)
    (model, problem): value
    for model, values in {
        "U-Net": (0.0611, 0.0474, 0.0558, 0.0644, 0.0300),
        "Factformer": (0.0628, 0.0337, 0.0395, 0.0642, 0.0315),
        "GKT": (0.0619, 0.0404, 0.0742, 0.0691, 0.0172),
        "FNO2D": (0.0452, 0.0466, 0.0444, 0.0717, 0.0155),
        "FFNO": (0.0409, 0.0231, 0.0326, 0.0688, 0.0196),
        "SS-NO": (0.0345, 0.0218, 0.0263, 0.0583, 0.0138),
    }.items()
    for problem, value in zip(FLUID_PROBLEMS, values, strict=True)
}
FACTORISED = {"SS-NO": 0.0345, "SS-NO-FF": 0.0403, "SS-NO-VM": 0.0495, "FNO2D-R": 0.0718}  # appendix, TorusLi
TEACHER_FORCING_2D = {  # appendix: (mode, problem)
    ("teacher forcing", "TorusLi"): 0.0345,
    ("teacher forcing", "TorusVis"): 0.0218,
    ("teacher forcing", "TorusVisForce"): 0.0263,
    ("unrolled", "TorusLi"): 0.0546,
    ("unrolled", "TorusVis"): 0.0385,
    ("unrolled", "TorusVisForce"): 0.0371,
}
CONTEXT = {  # text of the appendix; the figure prints no more numbers
    ("SS-NO, K = 4", "TorusVis, no context"): 0.0411,
    ("SS-NO, K = 0", "TorusVis, no context"): 0.1156,
}
PARAMETERS_2D = {  # the two tables of 2D results; FNO2D's count is that of CE-RM
    "ssno": 369_665,
    "ffno": 2_192_897,
    "fno": 67_197_700,
    "unet": 7_783_777,
    "gkt": 8_418_049,
    "factformer": 1_006_433,
    "ssno-vm": 402_945,
    "ssno-ff": 503_297,
    "fno-r": 1_115_841,
}
