"""How calls that worked in earlier versions go on working, with a warning that names their successor."""

import warnings
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


def keywords_once_positional(*names: str) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Decorate a method whose arguments after the first, `names`, were once positional."""

    def decorate(method: Callable[P, T]) -> Callable[P, T]:
        @wraps(method)
        def call(*arguments: P.args, **options: P.kwargs) -> T:
            late = dict(zip(names, arguments[2:]))
            if late:
                given = ", ".join(f"{name}=" for name in late)
                text = f"Give {given} by keyword: only the first argument of `{method.__name__}` is positional."
                warnings.warn(text, DeprecationWarning, stacklevel=2)
                if len(arguments) > 2 + len(names) or late.keys() & options.keys():
                    raise TypeError(text)
            return method(*arguments[:2], **options, **late)  # pyright: ignore[reportCallIssue]

        return call

    return decorate


def keyword_once_called(old: str, new: str) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Decorate a function whose keyword `new` was once called `old`."""

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        @wraps(function)
        def call(*arguments: P.args, **options: P.kwargs) -> T:
            if old in options:
                if new in options:
                    raise TypeError(f"Give `{new}` only: `{old}` is its former name.")
                warnings.warn(f"`{old}=` is now called `{new}=`.", DeprecationWarning, stacklevel=2)
                options[new] = options.pop(old)  # pyright: ignore[reportArgumentType]
            return function(*arguments, **options)

        return call

    return decorate
