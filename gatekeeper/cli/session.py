"""The commands for sessions on disk: what each asks `gatekeeper.store` and prints."""

from __future__ import annotations

import sys
import time
from typing import Any

import click

import gatekeeper
from gatekeeper.cli.options import OPTIONS, SETTINGS, Run, sharing, stdin
from gatekeeper.cli.output import Cell
from gatekeeper.errors import ChatFileError
from gatekeeper.printable import printable
from gatekeeper.store import files
from gatekeeper.store.files import json_line

command = sharing(OPTIONS[:2])  # --json and --color
STRICT = OPTIONS[2]
FILE = click.argument("file", type=click.Path())
SESSION = click.option("--session", "name", default="default", show_default=True, help="Name of the session.")
USER = click.option("--user", default="default", show_default=True, help="Whose session; no other user's is read.")
BUDGET = click.option("--budget", "token_budget", type=click.IntRange(min=1), metavar="N",
                      help="Tokens of the whole prompt.  [default: the session's]")  # fmt: skip
KIND = click.option("--settings", "kind", type=click.Choice(list(SETTINGS)),
                    help="minimal or thorough.  [default: the session's]")  # fmt: skip


@click.group()
def session() -> None:
    """Keep conversations in a file.

    FILE is a SQLite file that any number of processes may use at a time. A session in it is named by --session and
    --user.

    \b
    Example:
      gatekeeper session import chats.db chat.jsonl --session demo
      gatekeeper session add chats.db "what is a redis ttl?" "A time to live." --session demo
      echo "redis ttl" | gatekeeper chat chats.db --session demo
    """


@session.command(name="list")
@FILE
@click.option("--user", default="default", show_default=True, help="Whose sessions.")
@click.option("--all-users", is_flag=True, help="The sessions of every user: for who keeps the file.")
@command
def list_sessions(run: Run, file: str, user: str, *, all_users: bool) -> None:
    """List the sessions of a user.

    \b
    Example:
      gatekeeper session list chats.db --user alice
    """
    sessions = files.list_sessions(file, user=None if all_users else user)
    if run.as_json:
        run.output.json({"sessions": sessions})
    elif not sessions:
        run.output.line(("no session", "warn"))
    else:
        rows = [(item["user"], (item["session"], "highlight"), f"{item['n_turns']}", clock(item["created"]),
                 clock(item["updated"])) for item in sessions]  # fmt: skip
        run.output.table(("<user", "<session", "turns", "<created", "<updated"), rows)


@session.command()
@FILE
@SESSION
@USER
@command
def show(run: Run, file: str, name: str, user: str) -> None:
    """Print a session: its budget, constraints and turns.

    \b
    Example:
      gatekeeper session show chats.db --session demo
    """
    header, turns = files.read_session(file, session=name, user=user)
    listed = [{"turn_id": i, "user": turn[0] if turn else "", "assistant": turn[1] if turn else "",
               "forgotten": turn is None} for i, turn in enumerate(turns)]  # fmt: skip
    if run.as_json:
        run.output.json({**header, "turns": listed})
        return
    run.output.line((f"session {name!r} of user {user!r}", "highlight"),
                    (f"  turns {len(turns)}  budget {header['token_budget']}", "debug"))
    constraints = header["constraints"]
    for key, value in [*constraints["values"].items(), *(("forbidden", item) for item in constraints["forbidden"])]:
        run.output.line((f"{key}: ", "debug"), value)
    for turn in listed:
        run.output.line(f"\nturn {turn['turn_id']}", ("  forgotten" if turn["forgotten"] else "", "warn"))
        for side in ("user", "assistant"):
            if turn[side]:
                run.output.line((f"{side}: ", "debug"), str(turn[side]))


@session.command()
@FILE
@click.argument("user_text")
@click.argument("assistant_text")
@SESSION
@USER
@command
def add(run: Run, file: str, user_text: str, assistant_text: str, name: str, user: str) -> None:
    """Add a turn and print its id.

    - as ASSISTANT_TEXT is stdin. The turn is on disk when the command ends. FILE and session are made if they do not
    exist.

    \b
    Example:
      gatekeeper session add chats.db "what is a redis ttl?" "A time to live." --session demo
      my-model "$QUESTION" | gatekeeper session add chats.db "$QUESTION" - --session demo
    """
    if assistant_text == "-":
        assistant_text = decoded(stdin().read())
    with gatekeeper.open(file, session=name, user=user) as gate:
        turn_id = gate.add_turn(user_text, assistant_text)
    if run.as_json:
        run.output.json({"session": name, "user": user, "turn_id": turn_id})
    else:
        run.output.line(f"turn {turn_id}")


@session.command(name="export")
@FILE
@SESSION
@USER
@sharing(())
def export_session(run: Run, file: str, name: str, user: str) -> None:
    """Print a session as JSON lines.

    A header, then one line a turn: a chat file for every other command.

    \b
    Example:
      gatekeeper session export chats.db --session demo > demo.jsonl
    """
    for line in files.export_session(file, session=name, user=user):
        run.output.raw(line)


@session.command(name="import")
@FILE
@click.argument("chat_file", metavar="CHAT", type=click.Path())
@SESSION
@USER
@BUDGET
@KIND
@STRICT
@command
def import_session(run: Run, file: str, chat_file: str, name: str, user: str, token_budget: int | None,
                   kind: str | None) -> None:
    """Append the turns of a chat file.

    CHAT is an export or any chat file (- is stdin). All of its turns are appended, or on an error none. A broken line
    is named on stderr and the rest is used; with --strict it is an error. --budget and --settings are for a session
    that does not exist yet.

    \b
    Example:
      gatekeeper session import chats.db chat.jsonl --session demo
    """
    from gatekeeper.chat_file import open_chat_file

    with stdin() if chat_file == "-" else open_chat_file(chat_file) as stream:
        ids = files.import_session(
            file, stream, name="<stdin>" if chat_file == "-" else chat_file, session=name, user=user,
            token_budget=token_budget, settings=SETTINGS[kind]() if kind else None, strict=run.strict,
            on_warning=run.warn)  # fmt: skip
    if run.as_json:
        run.output.json({"session": name, "user": user, "first_turn": ids.start, "n_turns": len(ids)})
    else:
        run.output.line(f"{len(ids)} turns, from turn {ids.start}")


@session.command()
@FILE
@SESSION
@USER
@click.option("--turn", "turn_ids", type=click.IntRange(min=0), multiple=True, metavar="N", help="A turn; repeatable.")
@click.option("--all", "whole", is_flag=True, help="The whole session.")
@command
def forget(run: Run, file: str, name: str, user: str, turn_ids: tuple[int, ...], *, whole: bool) -> None:
    """Remove turns or a whole session.

    When the command ends with 0 the text is in no byte of the file and of its log. The file is written anew, which
    takes time with its size.

    \b
    Example:
      gatekeeper session forget chats.db --session demo --turn 3 --turn 4
      gatekeeper session forget chats.db --session demo --all
    """
    if bool(turn_ids) == whole:
        raise click.UsageError("give either --turn N or --all")
    files.forget_session(file, session=name, user=user, turn_ids=None if whole else turn_ids)
    if run.as_json:
        run.output.json({"session": name, "user": user, "forgotten": "all" if whole else list(turn_ids)})
    else:
        run.output.line("forgotten: " + ("the whole session" if whole else ", ".join(f"turn {i}" for i in turn_ids)))


@session.command()
@FILE
@click.argument("new", type=click.Path())
@command
def recover(run: Run, file: str, new: str) -> None:
    """Save what a damaged FILE still holds.

    It goes into the new file NEW; FILE is only read. Each turn is held to its checksum; a lost one stays as a forgotten
    turn. Exit code 1 when a turn was lost or nothing was found.

    \b
    Example:
      gatekeeper session recover chats.db saved.db
    """
    from gatekeeper.store.recovery import recover as recovered

    report = recovered(file, new)
    n_lost = sum(len(item["lost_turns"]) for item in report)
    if run.as_json:
        run.output.json({"sessions": report, "n_lost": n_lost})
    elif report:
        rows = [(item["user"], (item["session"], "highlight"), f"{item['n_saved']}", lost_cell(item["lost_turns"]))
                for item in report]  # fmt: skip
        run.output.table(("<user", "<session", "saved", "<lost turns"), rows)
    else:
        run.output.line(("nothing was found", "warn"))
    if n_lost or not report:
        raise click.exceptions.Exit(1)


def lost_cell(lost: list[int]) -> Cell:
    """The lost turns, the first ten by number."""
    shown = ", ".join(map(str, lost[:10]))
    return (f"{len(lost)}: {shown}{', ...' if len(lost) > 10 else ''}", "error") if lost else "none"


@click.command()
@FILE
@SESSION
@USER
@BUDGET
@command
def chat(run: Run, file: str, name: str, user: str, token_budget: int | None) -> None:
    """Print the prompt for each query on stdin.

    A line is a query. Each prompt is written at once and followed by an empty line; with --json each is one line.
    Nothing is added to the session: send the prompt to a model, then add the turn with `gatekeeper session add`.

    \b
    Example:
      echo "redis ttl" | gatekeeper chat chats.db --session demo
    """
    files.require_session(file, session=name, user=user)
    stream = stdin()
    if stream.isatty():
        run.output.message("debug", "one query a line; Ctrl-D ends")
    with gatekeeper.open(file, session=name, user=user, token_budget=token_budget) as gate:
        for line in stream:
            query = decoded(line).rstrip("\r\n")
            if query:
                print_prompt(run, gate.explain(query))
                if not run.output.flush():
                    return


def print_prompt(run: Run, explained: dict[str, Any]) -> None:
    """A prompt as it is, to a terminal without what could steer it."""
    if run.as_json:
        run.output.raw(json_line({key: explained[key] for key in ("query", "prompt", "tokens")}))
    else:
        text = explained["prompt"]
        run.output.raw((printable(text) if sys.stdout and sys.stdout.isatty() else text) + "\n\n")


def decoded(data: bytes) -> str:
    """Text from standard input. Raises ChatFileError unless it is UTF-8."""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        byte = error.object[error.start]
        raise ChatFileError(f"<stdin>: expected UTF-8 text, got the byte 0x{byte:02x}") from None


def clock(seconds: int) -> str:
    """A time as local date and time."""
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds))
