"""Risk that persons of a table are recognised by their values (k-anonymity, l-diversity, generalisation), exact answers next to
noisy ones, and values at which reading fails. For the owner.

Nothing here is differentially private: figures are exact, and about the rows themselves. No session imports this package, and
`Engine.exact_rows`, through which it reads, has no other caller (tests check both).
"""

from dpsql.disclosure.report import Generalisation, PersonRows, RiskReport, generalisations, measure_risk, plain_answer

__all__ = ["Generalisation", "PersonRows", "RiskReport", "generalisations", "measure_risk", "plain_answer"]
