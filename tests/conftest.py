"""Settings of the whole suite. (Standing here, this file also puts tests/ on the import path: `import problems`.)"""

import os

from hypothesis import HealthCheck, settings

# The same examples on every run and no deadline: a slow machine must not make a test fail.
settings.register_profile(
    "coterie",
    deadline=None,
    derandomize=True,
    max_examples=40,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("quick", settings.get_profile("coterie"), max_examples=5)  # `make check`
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "coterie"))
