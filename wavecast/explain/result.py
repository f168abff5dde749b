from wavecast.pipeline.result import *  # noqa: F403
from wavecast.pipeline.result import Explanation, Failure, Report  # noqa: F401
