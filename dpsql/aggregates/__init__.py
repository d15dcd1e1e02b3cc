"""SQL aggregates, all with the same contract: spellings, arguments, noisy sums, formula, facts of the result.

Input: measures of `plan`. Output: formulas over noisy sums that `pricing` supplies. No parser, no data, no engine text.
Every module of this package is loaded here and registers its aggregates; a new aggregate needs only a new file.
"""

from importlib import import_module
from pkgutil import iter_modules

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")
