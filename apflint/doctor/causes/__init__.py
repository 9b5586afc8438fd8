"""Causes of waits and rejections: from the metrics and dumps of API servers to a verdict and causes, worst first."""

from apflint.doctor.causes.conclusion import Conclusion, OverloadCause
from apflint.doctor.causes.find_causes import conclude

__all__ = ["Conclusion", "OverloadCause", "conclude"]
