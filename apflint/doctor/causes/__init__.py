"""Causes of waits and rejections.

The package concludes a verdict and the causes from metrics and dumps of API servers.
"""

from apflint.doctor.causes.conclusion import Conclusion, OverloadCause
from apflint.doctor.causes.find_causes import conclude

__all__ = ["Conclusion", "OverloadCause", "conclude"]
