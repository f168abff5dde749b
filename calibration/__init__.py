"""Commands that fit the model's coefficients to published measurements.

`python -m calibration.<family> DATA_DIR` refits one file of `wavecast/perfmodel/coefficients`,
prints errors in sample and left out, and writes the values. The measurements are not part of the
project.
"""
