"""The four tools as an MCP server over standard input and output, by the official Python SDK."""

from __future__ import annotations

import json
import logging

import anyio
from jsonschema import Draft202012Validator
from mcp.server import Server
from mcp.server.stdio import stdio_server
from mcp.types import CallToolRequestParams, CallToolResult, ListToolsResult, TextContent, Tool

from gatekeeper import __version__
from gatekeeper.errors import GatekeeperError
from gatekeeper.spec.schemas import TOOLS
from gatekeeper.spec.tools import SpecTools

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

logger = logging.getLogger("gatekeeper.spec.mcp")


def make_server(tools: SpecTools) -> Server[Any]:
    """A server of the four tools; what they answer is what `SpecTools` answers."""
    validators = {tool.name: Draft202012Validator(tool.input_schema) for tool in TOOLS}
    text_fields = {tool.name: tool.text_field for tool in TOOLS}
    listed = [Tool(name=tool.name, description=tool.description, input_schema=tool.input_schema,
                   output_schema=tool.output_schema) for tool in TOOLS]  # fmt: skip

    async def list_tools(context: Any, params: Any) -> ListToolsResult:
        return ListToolsResult(tools=listed)

    async def call_tool(context: Any, params: CallToolRequestParams) -> CallToolResult:
        validator = validators.get(params.name)
        if validator is None:
            return _failed(f"unknown tool {params.name!r:.60}; there are {', '.join(validators)}")
        arguments = params.arguments or {}
        wrong = [f"{'.'.join(map(str, error.path)) or 'arguments'}: {error.message}"
                 for error in validator.iter_errors(arguments)]  # fmt: skip
        if wrong:
            return _failed("; ".join(wrong)[:1000])
        try:
            answer = _whole(await anyio.to_thread.run_sync(lambda: tools.call(params.name, arguments)))
        except (GatekeeperError, OSError) as error:
            logger.warning("%s: %s", params.name, error)
            return _failed(str(error))
        text = answer[text_fields[params.name]]
        if answer.get("notice"):
            text += f"\n\n{answer['notice']}"
        return CallToolResult(content=[_content(text)], structured_content=answer)

    return Server("gatekeeper", version=__version__, on_list_tools=list_tools, on_call_tool=call_tool)


def run(cwd: str) -> None:
    """Serve until the client closes the connection. Standard output belongs to the protocol; logs go to stderr."""
    logging.basicConfig(level=logging.WARNING, format="%(name)s: %(message)s")
    tools = SpecTools(cwd)
    for warning in tools.library.config.warnings:
        logger.warning("%s", warning)

    async def serve() -> None:
        server = make_server(tools)
        async with stdio_server() as (received, sent):
            await server.run(received, sent, server.create_initialization_options())

    anyio.run(serve)


def _content(text: str) -> TextContent:
    return TextContent(type="text", text=_whole(text))


def _failed(message: str) -> CallToolResult:
    return CallToolResult(content=[_content(message)], is_error=True)


def _whole(value: Any) -> Any:
    """A value that UTF-8 can hold: lone surrogates replaced."""
    text = json.dumps(value, ensure_ascii=False)
    return json.loads(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))
