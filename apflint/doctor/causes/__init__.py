"""Causes of waits and rejections: from the metrics and dumps of API servers to a verdict and causes, worst first."""

from apflint.doctor.causes.conclude import conclude
from apflint.doctor.causes.model import Conclusion, OverloadCause

__all__ = ["Conclusion", "OverloadCause", "conclude"]
