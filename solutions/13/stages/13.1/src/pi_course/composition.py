"""The forms of `RuntimeImpl.__init__` and `create_runtime` between Labs 13.1 and 13.3."""
# ruff: noqa: F821 - the names are those of the file that these forms become part of


class RuntimeImpl:
    """The Runtime that `create_runtime` returns."""

    def __init__(self, agent: Agent, path: list[SessionEntry], deps: RuntimeDeps) -> None:
        self.control = RuntimeControl(agent)
        self.session = deps.session
        self.resources = deps.resources
        self.extensions = deps.extension_host
        self._agent = agent
        self._path = path
        self._deps = deps


async def create_runtime(config: RuntimeConfig, deps: RuntimeDeps) -> Runtime:
    """Restore the chosen branch of the session and create one Agent with its messages.

    Raises SessionTreeError where `active_leaf_id` is not one of the entries, or None although there are some.
    (Chapter 13, Labs 13.1 and 13.3)
    """
    path = clone(_select_path(await deps.session.entries(), config.active_leaf_id))
    # TODO(13.3): the model, the system prompt and the tool executor that the Agent really works with.
    agent = Agent(
        model=deps.model,
        tools=deps.tools,
        system_prompt=config.system_prompt,
        max_steps=config.max_steps,
        initial_messages=_messages_on(path),
    )
    return RuntimeImpl(agent, path, deps)
