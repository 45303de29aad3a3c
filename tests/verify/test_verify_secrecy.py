"""The claims that nothing a learner gets holds an answer."""

from __future__ import annotations

import shutil
import textwrap

import pytest

from course.verify.answers import find_answers

STARTER = "starters/02/src/findex/index.py"
HINTS = "labs/02/hints.toml"
SCAFFOLD = 'raise NotImplementedError("Lab 02.2 phrases 尚未实现")'
ANSWER = "return [name for name in self.find(text) if self._follow(name, words)]"
HIDES = "generated practice hides every answer (en)"
BODY = '''
    def anything(self, text: str) -> list[str]:
        """Do anything."""
        words = tokenize(text)
        return [name for name in self.find(text) if self._follow(name, words)]
'''

LEAKS = {
    "a line of it": (f"{SCAFFOLD}\n        {ANSWER}", f"holds an answer line: {ANSWER}"),
    "a line in another spelling": (
        f"{SCAFFOLD}\n        return [name for name in self.find(text)\n            if self._follow(name, words)]",
        f"holds an answer line: {ANSWER}",
    ),
    "a line in a comment": (f"# {ANSWER}\n        {SCAFFOLD}", f"holds an answer line: {ANSWER}"),
    "a line behind the scaffold": (f"{SCAFFOLD}  # {ANSWER}", f"holds an answer line: {ANSWER}"),
    "a line in a string": (f'"""Say: {ANSWER}"""\n        {SCAFFOLD}', f"holds an answer line: {ANSWER}"),
}  # fmt: skip


@pytest.mark.parametrize("case", LEAKS)
def test_starter_with_an_answer_line(case, gate):
    """A line of the reference gives an answer away wherever it stands in the starter, however it is wrapped."""
    new, told = LEAKS[case]
    gate.change(STARTER, (SCAFFOLD, new))
    assert gate.false("02", "starter holds no answer") == f"src/findex/index.py {told}"
    gate.true("01", "starter holds no answer")
    gate.true("02", "hints hold no answer")


def test_starter_with_a_solved_body_of_another_name(gate):
    """A body is an answer under whatever name, even where none of its lines alone is one."""
    pair = """\
    def _pair(self) -> tuple[int, int]:
        first, second = self.one(), self.two()
        return first + second, first * second
"""
    apart = '''\
    def _one(self) -> int:
        """Do one thing."""
        first, second = self.one(), self.two()
        return second

    def _two(self, first: int, second: int) -> tuple[int, int]:
        """Do another."""
        return first + second, first * second
'''
    for place, text in (
        ("solutions/02/src/findex/index.py", pair),
        ("starters/02/src/findex/index.py", pair),
    ):
        gate.change(place, ("    def _holding(", f"{text}\n    def _holding("))
    gate.change(STARTER, ("_pair", "_couple"))
    gate.change("solutions/01/src/findex/index.py", ("    def _holding(", f"{apart}\n    def _holding("))
    assert gate.false("02", "starter holds no answer") == "src/findex/index.py holds the solved body of _pair"


def test_solution_that_adds_nothing(gate):
    """Where the reference has nothing new there is no answer to look for: that can't pass for hidden."""
    solution = "solutions/02/src/findex/index.py"
    (gate.folder / solution).write_bytes((gate.folder / "solutions/01/src/findex/index.py").read_bytes())
    assert gate.false("02", "starter holds no answer") == (
        "there is no answer at all: the solution adds nothing to the parent"
    )


def test_solution_that_cannot_be_parsed(gate):
    """What the answers are can't be said of a solution with a syntax error: BROKEN."""
    gate.change("solutions/02/src/findex/index.py", ("import re\n", "import re re\n"))
    told = "the solution can't be parsed: "
    assert gate.broken("02", "starter holds no answer").startswith(told)
    assert gate.broken("02", "hints hold no answer").startswith(told)


def test_hint_with_an_answer(gate):
    """A hint spells out no line of the reference, nor a longer piece of one set as code."""
    gate.change(HINTS, ("A word may occur more than once;", f"Write `{ANSWER}`;"))
    assert gate.false("02", "hints hold no answer") == (
        f"hint 3 of Lab 02.2 spells out an answer line: {ANSWER}"
    )
    gate.true("02", "starter holds no answer")


def test_hint_with_a_piece_of_an_answer(gate):
    """In Chinese too, and a piece is enough."""
    gate.change(HINTS, ("一个词可以出现多次", "想想 `if self._follow(name, words)`，一个词可以出现多次"))
    assert gate.false("02", "hints hold no answer") == (
        "hint 3 of Lab 02.2 spells out a part of an answer line: if self._follow(name, words)"
    )


def test_readme_template_with_an_answer(gate):
    """What the template of the project files says reaches the practice, and is read there."""
    with (gate.folder / "starters/_project/README.md.jinja").open("a", encoding="utf-8") as file:
        file.write(f"\nThe trick is {ANSWER}.\n")
    assert gate.false("02", HIDES) == f"README.md spells out an answer line: {ANSWER}"
    gate.true("02", "starter holds no answer")
    gate.true("01", HIDES)


@pytest.mark.parametrize(
    ("added", "told"),
    [
        (f"\n\n# {ANSWER}\n", f"holds an answer line: {ANSWER}"),
        (f"\n\nclass Helper:\n{BODY}", "holds the solved body of phrase"),
    ],
    ids=["comment", "body"],
)
def test_lab_test_with_an_answer(added, told, gate):
    """Tests go to learners too: no answer in a comment, no solved body as a helper."""
    name = "labs/02/test_02_search.py"
    text = (gate.folder / name).read_text("utf-8")
    gate.write(name, text + added)
    assert gate.false("02", HIDES) == f"tests/test_02_search.py {told}"
    gate.true("02", "starter holds no answer")


def practice_leaks(gate, git, case):
    """Put an answer into the practice of chapter 02 that the claims will judge; give what is told."""
    root, target = gate.practice("02"), gate.bench.target(gate.bench.course.chapter("02"))
    reference = target / "src/findex/index.py"
    (blob,) = git(root, "hash-object", str(reference))
    match case:
        case "loose object":
            git(root, "hash-object", "-w", str(reference))
            return f"the starter does not reach the git object {blob[:12]}"
        case "branch":
            git(
                root,
                "fetch",
                "--quiet",
                str(gate.bench.history.repository),
                "refs/heads/main:refs/heads/answer",
            )
            return f"refs/heads/answer leads to {gate.bench.history.checkpoints['02'][:12]}, which is not the starter"
        case "tag":
            (parent,) = git(root, "rev-parse", "HEAD~1")
            git(root, "tag", "parent", parent)
            return f"refs/tags/parent leads to {parent[:12]}, which is not the starter"
        case "history":
            shutil.copyfile(reference, root / "src/findex/index.py")
            git(root, "commit", "--quiet", "--all", "--message=solved")
            git(root, "update-ref", "refs/course/start", "HEAD")
            return "src/findex/index.py is a file of the reference"
        case "borrowed objects":
            (root / ".git/objects/info/alternates").write_text(f"{gate.bench.history.repository}/objects\n")
            return "the starter does not reach the git object "
        case "bytecode":
            folder = root / "src/findex/__pycache__"
            folder.mkdir()
            (folder / "index.cpython-311.pyc").write_bytes(b"")
            return "src/findex/__pycache__/index.cpython-311.pyc is bytecode"
        case "hidden copy":
            shutil.copyfile(reference, root / ".vscode" / "old.bak")
            return ".vscode/old.bak is a file of the reference"
        case "note":
            (root / ".course" / "notes.txt").write_text(f"{ANSWER}\n", "utf-8")
            return f".course/notes.txt spells out an answer line: {ANSWER}"


@pytest.mark.parametrize(
    "case",
    ["loose object", "branch", "tag", "history", "borrowed objects", "bytecode", "hidden copy", "note"],
)
def test_practice_that_leaks(case, gate, git):
    """No file, ref or object of a practice, reachable or not, hidden or not, leads to the reference."""
    told = practice_leaks(gate, git, case)
    assert gate.false("02", HIDES).startswith(told)
    gate.true("02", "generated practice hides every answer (zh)")


def test_repository_that_borrows_nothing_yet(gate, tmp_path):
    """A repository that borrows objects is refused even where the other one holds none."""
    (tmp_path / "empty").mkdir()
    root = gate.practice("02")
    (root / ".git/objects/info/alternates").write_text(f"{tmp_path / 'empty'}\n")
    assert gate.false("02", HIDES) == "the repository borrows objects from another one"


def test_intermediate_form_in_the_history(gate, git):
    """What only a stage has is found in an older commit too, though the tree shows nothing of it."""
    root = gate.practice("02")
    name = "src/findex/index.py"
    starter = (root / name).read_text("utf-8")
    (root / name).write_text(starter.replace(SCAFFOLD, f"words = tokenize(text)\n        {ANSWER}"), "utf-8")
    git(root, "commit", "--quiet", "--all", "--message=Try")
    (root / name).write_text(starter, "utf-8")
    git(root, "commit", "--quiet", "--all", "--message=Back")
    git(root, "update-ref", "refs/course/start", "HEAD")
    assert gate.false("02", HIDES) == f"{name} holds an answer line: {ANSWER}"


PARENT = """
def keep(self, path):
    return path.resolve().relative_to(self.root)
"""
SOLUTION = '''
import os
LIMIT = compute(the_limit_of_everything)
class Kept:
    name: str = "a text that is long enough to count"
    def __init__(self, path: str, root: str) -> None:
        """Keep a path under a root, as it was given."""
        super().__init__("kept", path, root)
        self.path = path
        self.root: str = root
        self.names = sorted(os.listdir(path), key=str.casefold)
    async def find(self, *, name: str) -> str | None:
        """Find it."""
        import fnmatch
        for found in (
            self.names_of_everything(name)
        ):
            if fnmatch.fnmatch(found, name): return found
        else:
            raise LookupError(f"{name} is nowhere to be found")
        try:
            x = 1
        except (OSError, ValueError):
            raise
        raise NotImplementedError("nothing here")
    def same(self, path):
        return path.resolve().relative_to(self.root)
'''


def test_what_an_answer_is():
    """Statements inside functions count, once a spelling; signatures, imports, types, keeping an argument, what
    the parent has and short ones don't.
    """
    answers = find_answers([textwrap.dedent(SOLUTION)], [PARENT])
    assert answers.lines == {
        "self.names = sorted(os.listdir(path), key=str.casefold)",
        "for found in self.names_of_everything(name):",
        "self.names_of_everything(name)",
        "if fnmatch.fnmatch(found, name):",
        "if fnmatch.fnmatch(found, name): return found",
        "raise LookupError(f'{name} is nowhere to be found')",
        'raise LookupError(f"{name} is nowhere to be found")',
    }
    assert sorted(answers.bodies.values()) == ["__init__", "find"]


def test_calling_a_function_is_no_answer_in_a_test():
    """A test may write the very call that the reference writes, in code; a comment may not."""
    answers = find_answers(["def run(x):\n    result = execute(the_call, with_context)\n"], [])
    call = "def test():\n    result = execute(the_call, with_context)\n    assert result.is_error\n"
    assert answers.in_test(call) == ""
    assert answers.in_code(call) == "holds an answer line: result = execute(the_call, with_context)"
    assert answers.in_test(f"# so: result = execute(the_call, with_context)\n{call}") != ""


def test_prose_may_name_what_is_short():
    """Naming a function or an argument in a text is no answer; a long piece of a line is one."""
    answers = find_answers(["def run(x):\n    result = execute(the_call, with_context)\n"], [])
    assert answers.in_prose("Call `execute` with `the_call`, then look at `result`.") == ""
    assert answers.in_prose("Call `execute(the_call, with_context)`.") == (
        "spells out a part of an answer line: execute(the_call, with_context)"
    )


@pytest.mark.parametrize(
    ("name", "told"),
    [
        (
            "labs/01/faults/01.2-any-word.py",
            "holds an answer line: return set(self._documents.get(word, ()))",
        ),
        ("labs/02/demo.py", "holds the solved body of _holding"),
        ("labs/02/handout.en.md", "spells out an answer line: return set(self._documents.get(word, ()))"),
        ("labs/02/test_02_search.py", "holds the solved body of _holding"),
    ],
)
def test_learners_edition_with_an_answer(name, told, gate):
    """Portable faults, demos, texts and tests travel in a learner's edition, later chapters' too."""
    text = (gate.folder / name).read_text("utf-8")
    body = "    return set(self._documents.get(word, ()))\n"
    gate.write(name, f"{text}\n\ndef _holding(self, word):\n{body}")
    assert gate.false("01", "learner's edition hides") == f"{name} {told}"


def test_learners_edition_leaves_a_grown_file_out(gate):
    """A later starter that holds this chapter's answers is no leak: the edition does not have it."""
    assert "without the starter of 02" in gate.true("01", "learner's edition hides")
    assert "without" not in gate.true("02", "learner's edition hides")


def test_line_alone_is_an_answer_only_in_its_own_chapter(gate):
    """A statement that chapter 01 needs may stand in another chapter's fault; in its own it gives it away."""
    line = "\n\ndef f(documents, name):\n    documents.discard(name)\n"
    for name in ("labs/02/faults/02.2-anywhere.py", "labs/01/faults/01.2-any-word.py"):
        gate.write(name, (gate.folder / name).read_text("utf-8") + line)
        if name.startswith("labs/02"):
            gate.true("01", "learner's edition hides")
    told = "labs/01/faults/01.2-any-word.py holds an answer line: documents.discard(name)"
    assert gate.false("01", "learner's edition hides") == told
