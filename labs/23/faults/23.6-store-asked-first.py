"""What the store knows goes before what the extensions say."""

from types import ModuleType
from typing import Any

MODULE = "pi_course.extensions.trust"


def inject(module: ModuleType) -> None:
    """Look into the store before anything else."""
    original = module.resolve_trust

    async def resolve_trust(*, cwd: Any, store: Any, **options: Any) -> Any:
        kept = store.get(cwd)
        return kept if kept is not None else await original(cwd=cwd, store=store, **options)

    module.resolve_trust = resolve_trust
