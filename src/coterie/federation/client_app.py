"""The ClientApp: a site behind a SuperNode.

It keeps nothing between messages: all that it needs is in the message and in the site's folder. So a request may come
twice, or to a SuperNode that has just been started again. With differential privacy the folder also holds a log of
what was released (`release_log.py`).
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
from flwr.app import Context, Message, RecordDict
from flwr.clientapp import ClientApp

from coterie.federation.digest import data_digest
from coterie.federation.dp_mechanism import Privacy
from coterie.federation.messages import Introduction
from coterie.federation.release_log import BudgetError, check_promise, noise_for
from coterie.federation.site_files import BadSiteError, Settings, SiteFiles, write_weights
from coterie.federation.transport import records
from coterie.io.files import MissingExtraError

FOLDERS = re.compile(r"""(?<![\w.])/(?:[^/\s'":,;()]+/)*(?=[^/\s])""")  # of an absolute path

app = ClientApp()
log = logging.getLogger(__name__)


@app.query("introduce")
def introduce(message: Message, context: Context) -> Message:
    """Say who this is, which boundary nodes live here, and what the columns are."""

    def reply(files: SiteFiles) -> RecordDict:
        hosts = files.hosted([str(node) for node in message.content.config_records[records.FACTS]["nodes"]])
        if Privacy.of(context.run_config) is not None:
            return records.introduction_reply(Introduction(files.folder.name, hosts, files.columns))
        one = files.site([]).introduce(files.folder.name, hosts, files.columns)
        return records.introduction_reply(replace(one, digest=data_digest(files.nodes, files.problem)))

    return _reply(message, context, reply)


@app.query("answer")
def answer(message: Message, context: Context) -> Message:
    """Reply with boundary weights and scalars."""

    def reply(files: SiteFiles) -> RecordDict:
        if Privacy.of(context.run_config) is not None:
            raise BadSiteError("with differential privacy only noisy weights leave a site")
        request, nodes = records.read_prox_request(message.content)
        return records.prox_reply(files.folder.name, files.site(nodes).reply(request))

    return _reply(message, context, reply)


@app.query("release")
def release(message: Message, context: Context) -> Message:
    """Reply with noisy boundary weights and nothing else; the site keeps count."""

    def reply(files: SiteFiles) -> RecordDict:
        privacy = Privacy.of(context.run_config)
        if privacy is None:
            raise BadSiteError("the run has no differential privacy: privacy-noise is 0")
        request, nodes = records.read_prox_request(message.content)
        rng = noise_for(files.folder, privacy, files.problem, request, nodes)
        return records.weights_reply(files.folder.name, nodes, files.site(nodes).release(request, privacy, rng))

    return _reply(message, context, reply)


@app.query("finish")
def finish(message: Message, context: Context) -> Message:
    """Keep the weights of all nodes in the site's own folder; share them only where the app is configured so."""

    def reply(files: SiteFiles) -> RecordDict:
        request, nodes = records.read_prox_request(message.content)
        w = files.site(nodes).weights(request)
        write_weights(files.folder / "weights.csv", files.nodes, files.columns[:-1], w)
        if bool(context.run_config["share-weights"]) and Privacy.of(context.run_config) is None:
            return records.weights_reply(files.folder.name, files.nodes, w)
        return records.weights_reply(files.folder.name, [], np.empty((0, w.shape[1])))

    return _reply(message, context, reply)


def _reply(message: Message, context: Context, make: Callable[[SiteFiles], RecordDict]) -> Message:
    """Reply with what `make` makes of the site's files, or with one line that says why not.

    What was not foreseen goes to the log of the SuperNode; Flower tells the server of its kind only.
    """
    folder = Path(str(context.node_config["folder"])).absolute()
    try:
        check_promise(folder, Privacy.of(context.run_config))
        content = make(SiteFiles.read(folder, Settings.of(context.run_config)))
    except (BadSiteError, BudgetError, MissingExtraError) as error:
        content = records.error_reply(folder.name, without_paths(str(error), folder))
    except Exception as error:
        log.exception("%s could not reply", folder.name)
        raise RuntimeError(f"{folder.name}: {type(error).__name__}; the log of the SuperNode says more") from None
    return Message(content, reply_to=message)


def without_paths(text: str, folder: Path) -> str:
    """Leave of every path in a text the name of the file; `folder`, of the site, may have names with spaces."""
    for place in (folder, folder.resolve()):
        text = text.replace(f"{place}{os.sep}", "").replace(str(place), place.name)
    return FOLDERS.sub("", text)
