"""How a site comes to its reply: its policy, then its files, then the work, then a line in its log.

The same for a resident site (`resident.py`) and behind a stock SuperNode (`client_app.py`). What is kept between two
messages only saves time: the same question gets the same reply, also after a restart. With differential privacy the
folder also holds a log of what was released (`release_log.py`).
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from flwr.app import RecordDict

from coterie.federation.audit import COUNTED, AuditLog
from coterie.federation.digest import data_digest
from coterie.federation.dp_mechanism import Privacy
from coterie.federation.messages import Introduction, ProxRequest
from coterie.federation.policy import QUESTIONS, Policy
from coterie.federation.refusals import Code, RefusedError
from coterie.federation.release_log import BudgetError, check_promise, noise_for
from coterie.federation.site import Site
from coterie.federation.site_files import BadSiteError, Settings, SiteFiles, write_weights
from coterie.federation.site_folder import POLICY, state_of
from coterie.federation.transport import records
from coterie.io.files import MissingExtraError
from coterie.solver.pace import expecting

ROUNDS = 10  # of a short run: what is not worth loading kernels for one question may be for so many
PREFIX = "query."  # of the kinds of messages that Flower hands to a ClientApp
CODES = (
    (BudgetError, Code.BUDGET),
    (BadSiteError, Code.FILES),
    (MissingExtraError, Code.EXTRA),
    (OSError, Code.DISK),
)
log = logging.getLogger(__name__)


class Responder:
    """Answers for one folder.

    Parameters
    ----------
    folder : Path
    name : str, optional
        What the site calls itself; the name of its folder if not given. A server that knows keys goes by these.
    certificate : str
        SHA-256 of the file through which the server is trusted; empty where that is not known, as behind a SuperNode.
    """

    def __init__(self, folder: Path, name: str | None = None, certificate: str = "") -> None:
        self.folder, self.name = folder.absolute(), name or folder.absolute().name
        self.certificate = certificate
        self.audit = AuditLog(self.folder)
        self._files: tuple[object, SiteFiles] | None = None
        self._site: tuple[object, Site] | None = None

    def rehearse(self) -> None:
        """Try, before anyone asks, what a reply needs: policy, files, a solve; what is wrong is for the site's screen.

        Raises
        ------
        RefusedError
        """
        policy = self._policy()
        try:
            settings = Settings.of({**vars(policy), "alpha": 0.0, "ridge": 0.0, "lam": 1.0})
            settings = replace(settings, row_privacy=policy.row_privacy)
            files = self._read(policy, settings)
            missing = sorted(policy.nodes - set(files.nodes))
            if missing:
                raise RefusedError(
                    Code.NODES, f"{POLICY} names node {missing[0]!r}, of which there is no row and no edge"
                )
            nodes = sorted(policy.nodes)
            v = np.zeros((len(nodes), files.problem.n_features))
            with expecting(ROUNDS):
                self._asked_about(files, nodes, policy).reply(ProxRequest(v, np.ones(len(nodes)), np.inf))
        except (BadSiteError, OSError) as error:
            raise RefusedError(Code.FILES, str(error)) from None

    def reply(self, run_id: int, kind: str, content: RecordDict) -> RecordDict:
        """Reply to a message, with what was asked for or with a code; nothing leaves that is not in the log."""
        kind = kind.removeprefix(PREFIX) if kind.removeprefix(PREFIX) in QUESTIONS else "unknown"
        refused = None
        try:
            with expecting(ROUNDS):
                reply = self._reply(run_id, kind, content)
        except Exception as error:
            refused = self._code(error)
            reply = records.error_reply(self.name, refused)
        try:
            sent = records.encoded(reply)
            self.audit.note(run_id, kind, _as_asked(kind, content), sent, "" if refused is None else refused.value)
        except Exception as error:
            return records.error_reply(self.name, self._code(error))
        return reply

    def _code(self, error: Exception) -> Code:
        """The code that may leave; what it is about goes to the site's own log."""
        known = (
            error.code if isinstance(error, RefusedError) else next((c for k, c in CODES if isinstance(error, k)), None)
        )
        if known is None:
            log.exception("%s could not reply", self.name)
            return Code.FAILED
        log.warning("%s refused (%s): %s", self.name, known.value, error)
        return known

    def _reply(self, run_id: int, kind: str, content: RecordDict) -> RecordDict:
        policy = self._policy()
        config, settings, privacy = _settings(content)
        policy.check_question(run_id, kind, config)
        policy.check_privacy(privacy, settings.row_privacy)
        check_promise(self.folder, privacy)
        if kind in COUNTED and not self.audit.allows(_as_asked(kind, content), policy.most):
            raise RefusedError(Code.ENOUGH)
        files = self._read(policy, settings)
        if kind == "introduce":
            return self._introduce(policy, files, privacy, content)
        request, nodes = _question(content)
        policy.check_nodes(nodes)
        site = self._asked_about(files, nodes, policy)
        if request.v.shape[1] != site.problem.n_features:
            raise RefusedError(Code.UNREADABLE, "a question about another number of features")
        if kind == "release":
            if privacy is None:
                raise RefusedError(Code.PRIVACY, "the run has no differential privacy: privacy-noise is 0")
            rng = noise_for(self.folder, privacy, files.problem, request, nodes, policy.round_to)
            return records.weights_reply(self.name, nodes, site.release(request, privacy, rng))
        if kind == "answer":
            if privacy is not None:
                raise RefusedError(Code.PRIVACY, "with differential privacy only noisy weights leave a site")
            return records.prox_reply(self.name, site.reply(request))
        w = site.weights(request)
        write_weights(self.folder / "weights.csv", files.nodes, files.weight_names, w)
        shared = bool(config.get("share-weights")) and privacy is None
        return records.weights_reply(self.name, files.nodes if shared else [], w if shared else w[:0])

    def _policy(self) -> Policy:
        policy = Policy.read(self.folder)
        policy.check_server(self.certificate)
        return policy

    def _introduce(self, policy: Policy, files: SiteFiles, privacy: Privacy | None, content: RecordDict) -> RecordDict:
        """Say who this is, which boundary nodes live here, and what the columns are."""
        here = policy.nodes & set(files.nodes)
        hosts = np.array([k for k, node in enumerate(_asked(content)) if node in here], dtype=np.int64)
        if privacy is not None:
            return records.introduction_reply(Introduction(self.name, hosts, files.columns))
        one = self._asked_about(files, [], policy).introduce(self.name, hosts, files.columns)
        return records.introduction_reply(replace(one, digest=data_digest(files.nodes, files.problem)))

    def _read(self, policy: Policy, settings: Settings) -> SiteFiles:
        """The folder, read again only where its files, the settings or the policy have changed."""
        state = (state_of(self.folder), settings, policy)
        if self._files is None or self._files[0] != state:
            files = SiteFiles.read(self.folder, settings, policy.features)
            policy.check_rows(files.rows)
            self._files, self._site = (state, files), None
        return self._files[1]

    def _asked_about(self, files: SiteFiles, nodes: Sequence[str], policy: Policy) -> Site:
        if self._site is None or self._site[0] != nodes:
            if not set(nodes) <= set(files.nodes) or len(set(nodes)) < len(nodes):
                raise RefusedError(Code.NODES, "a node that is asked about is not here, or named twice")
            self._site = (nodes, files.site(nodes, policy.round_to))
        return self._site[1]


def _as_asked(kind: str, content: RecordDict) -> bytes:
    """All that makes two questions different ones."""
    return kind.encode() + records.encoded(content)


def _settings(content: RecordDict) -> tuple[dict[str, Any], Settings, Privacy | None]:
    try:
        config = records.read_settings(content)
        return config, Settings.of(config), Privacy.of(config)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise RefusedError(Code.SETTINGS, f"settings that cannot be used: {error!r}") from None


def _asked(content: RecordDict) -> list[str]:
    try:
        return records.read_introduce_request(content)
    except (KeyError, TypeError, ValueError) as error:
        raise RefusedError(Code.UNREADABLE, f"a question that cannot be read: {error!r}") from None


def _question(content: RecordDict) -> tuple[ProxRequest, list[str]]:
    try:
        return records.read_prox_request(content)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise RefusedError(Code.UNREADABLE, f"a question that cannot be read: {error!r}") from None
