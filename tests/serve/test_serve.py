"""A server answers what ``molgraph predict`` writes, refuses politely what is too much, and loses nothing."""

from __future__ import annotations

import asyncio
import csv
import os
import signal
import time
from io import BytesIO
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import molgraph
from molgraph.base.errors import ConflictError, NotInstalledError, UnknownNameError
from molgraph.serve.limits import Limits, read_limits
from tests.serve.conftest import call, changed

pytest.importorskip("fastapi")
pytest.importorskip("httpx")
from molgraph.serve.calls import Call
from molgraph.serve.jobs import Jobs
from molgraph.serve.service import named_models

PREDICT, JSON = "/models/tiny/predict", {"content-type": "application/json"}
NASTY = [
    "CCO",
    "not a molecule",
    "",
    "[Na+].[Cl-]",
    "CC(=O)[O-].[Na+]",
    "*CCO",
    "C" * 3_000,
    'C"C',
    "\u00e4",
    "c1ccccc1O",
]


def written(models: Path, source: Path, out: Path, **options: Any) -> list[dict[str, str]]:
    molgraph.predict_file(models / "tiny.mgm", source, out, **options)
    with open(out, newline="") as file:
        return list(csv.DictReader(file))


def as_text(row: dict[str, Any]) -> dict[str, str | float]:
    return {name: "" if value is None else value for name, value in row.items()}


def finished(service: Any, id: str) -> dict[str, Any]:
    for _ in range(600):
        state = call(service, ("GET", f"/jobs/{id}")).json()
        if state["state"] in ("done", "failed"):
            return state
        time.sleep(0.1)
    raise AssertionError(state)


def test_rows_are_those_of_predict(service: Any, models: Path, tmp_path: Path) -> None:
    with open(tmp_path / "in.csv", "w", newline="") as file:
        csv.writer(file).writerows([["smiles"], *([text] for text in NASTY)])
    expected = written(models, tmp_path / "in.csv", tmp_path / "out.csv")
    answer = call(service, ("POST", PREDICT, {"json": {"smiles": NASTY}}))
    rows = answer.json()["rows"]
    assert answer.status_code == 200 and [[*row] for row in rows] == [[*row] for row in expected]
    for row, other in zip(map(as_text, rows), expected, strict=True):
        for name, value in row.items():
            same = float(other[name]) == pytest.approx(value, rel=1e-5) if isinstance(value, float) else 0
            assert same or other[name] == value, (name, row, other)
    assert {row["status"] for row in rows} >= {"ok", "unreadable", "missing", "not a molecule"}
    assert rows[0]["domain"] in ("inside", "edge", "outside") and rows[0]["pActivity_low"] < rows[0]["pActivity_high"]


def test_requests_at_the_same_time_are_each_answered(service: Any) -> None:
    texts = [f"{'C' * n}O" for n in range(1, 41)]
    bodies = [{"smiles": [text], "ids": [f"id {i}"]} for i, text in enumerate(texts)]
    bodies[7] = {"smiles": ["no molecule"], "ids": ["id 7"]}
    many = call(service, *(("POST", PREDICT, {"json": body}) for body in bodies))
    rows = [answer.json()["rows"] for answer in many]
    assert [[row["id"] for row in each] for each in rows] == [[f"id {i}"] for i in range(40)]
    whole = call(service, ("POST", PREDICT, {"json": {"smiles": [body["smiles"][0] for body in bodies]}})).json()[
        "rows"
    ]
    for (alone,), beside in zip(rows, whole, strict=True):
        assert (alone["status"], alone["reason"]) == (beside["status"], beside["reason"])
        assert alone["status"] != "ok" or alone["pActivity"] == pytest.approx(beside["pActivity"], rel=1e-5)
    assert [row[0]["status"] for row in rows].count("ok") == 39


def test_columns_and_large_requests(service: Any) -> None:
    body = {"columns": {"id": ["a", "b"], "smiles": ["CCO", None]}}
    rows = call(service, ("POST", PREDICT, {"json": body})).json()["rows"]
    assert [(row["id"], row["status"]) for row in rows] == [("a", "ok"), ("b", "missing")]
    rows = call(service, ("POST", PREDICT, {"json": {"smiles": ["CCO", "C"] * 300}})).json()["rows"]
    assert [row["id"] for row in rows] == [str(i) for i in range(600)] and rows[599]["smiles"] == "C"


def test_a_molecule_is_explained_drawn_and_compared(service: Any) -> None:
    found = call(service, ("POST", "/models/tiny/explain", {"json": {"smiles": "CCOc1ccccc1"}})).json()
    assert found["by"] == "infill" and found["svg"].startswith("<svg") and found["values"]
    svgs = call(service, ("POST", "/draw", {"json": {"smiles": ["CCO", "C1CC"]}})).json()["svgs"]
    assert len(svgs) == 2 and "cannot be read" in svgs[1]
    measured = molgraph.read_table({"smiles": NASTY}).smiles[0]
    near = call(service, ("POST", "/nearest", {"json": {"smiles": measured, "k": 3}})).json()
    assert [row["rank"] for row in near["rows"]] == [1, 2, 3] and float(near["rows"][0]["values"]["pActivity"]) > 0
    assert call(service, ("POST", "/nearest", {"json": {"smiles": "C1CC"}})).status_code == 422


def test_the_page_and_what_describes_the_server(service: Any) -> None:
    page, health, models, openapi = call(service, *(("GET", p) for p in ("/", "/health", "/models", "/openapi.json")))
    nonce = page.headers["content-security-policy"].partition("'nonce-")[2].partition("'")[0]
    assert f'<script nonce="{nonce}">' in page.text and "http://" not in page.text and "https://" not in page.text
    assert health.json()["status"] == "ok"
    (model,) = models.json()["models"]
    assert (model["name"], model["targets"][0]["columns"], model["coverage"]) == ("tiny", ["pActivity"], 0.9)
    assert {"/models/{model}/predict", "/jobs/{job}/result"} <= {*openapi.json()["paths"]}


@pytest.mark.parametrize(
    ("path", "options", "status", "code"),
    [
        (PREDICT, {"content": b'{"smiles": ["CCO"', "headers": JSON}, 400, "bad-json"),
        (PREDICT, {"content": b"\xff\xfe", "headers": JSON}, 400, "bad-json"),
        (PREDICT, {"json": {"smiles": []}}, 422, "bad-request"),
        (PREDICT, {"json": {"smiles": ["C"], "ids": []}}, 422, "bad-request"),
        (PREDICT, {"json": {"columns": {"a": ["x"], "b": []}}}, 422, "bad-request"),
        (PREDICT, {"json": {"columns": {"a": ["x"], "b": ["y"]}}}, 422, ""),
        (PREDICT, {"json": [1]}, 422, "bad-request"),
        (PREDICT, {"json": {"smiles": ["C"] * 21}}, 413, "too-many-rows"),
        (PREDICT, {"content": b"x" * 3_000, "headers": JSON}, 413, "too-large"),
        ("/models/tine/predict", {"json": {"smiles": ["C"]}}, 404, "no-such-model"),
        ("/models/tiny/jobs?name=x.csv", {"content": b"smiles\n" + b"C\n" * 5_000}, 413, "too-large"),
        ("/models/tiny/jobs?name=x.docx", {"content": b"smiles\nC\n"}, 415, "unknown-ending"),
        ("/models/tiny/jobs?name=x.csv", {"content": b""}, 422, "empty"),
        ("/nowhere", {}, 404, "not-found"),
        ("/models", {}, 405, "method-not-allowed"),
    ],
)
def test_what_cannot_be_answered_is_said(service: Any, path: str, options: Any, status: int, code: str) -> None:
    few = changed(service, limits=Limits(rows=20, bytes=2_000, upload=9_000))
    answer = call(few, ("POST", path, options))
    said = answer.json()["error"]
    assert (answer.status_code, said["code"] if code else "") == (status, code) and said["message"]
    assert not [job for job in few.jobs.jobs.values() if not job.over]


def test_a_body_without_a_length_is_counted_and_a_slow_one_is_not_waited_for(service: Any) -> None:
    async def pieces(pause: float) -> Any:
        for _ in range(50):
            await asyncio.sleep(pause)
            yield b'{"smiles": ["C"], "x": "' + b"y" * 100

    few = changed(service, limits=Limits(bytes=2_000, seconds=0.3))
    assert call(few, ("POST", PREDICT, {"content": pieces(0)})).status_code == 413
    started = time.monotonic()
    assert call(few, ("POST", PREDICT, {"content": pieces(0.1)})).json()["error"]["code"] == "too-slow-to-arrive"
    assert time.monotonic() - started < 2


def test_a_server_with_too_much_to_do_says_when_to_come_again(service: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    one = ("POST", PREDICT, {"json": {"smiles": ["CCO"]}})
    answers = call(changed(service, limits=Limits(requests=2)), *[one] * 6)
    refused = [answer for answer in answers if answer.status_code == 503]
    assert len(answers) - len(refused) == 2 and all(int(answer.headers["retry-after"]) >= 1 for answer in refused)
    monkeypatch.setattr(service.engine, "limits", Limits(waiting=3))
    statuses = [answer.status_code for answer in call(service, *[one] * 30)]
    assert {*statuses} == {200, 503} and statuses[:3] == [200] * 3
    assert service.engine.waiting == 0


@pytest.mark.parametrize(
    ("header", "status"), [("", 401), ("Bearer wrong", 401), ("Basic x", 401), ("bearer x\u00e9", 200)]
)
def test_the_token_is_asked_for(service: Any, header: str, status: int) -> None:
    guarded = changed(service, token="x\u00e9")
    headers = {"authorization": header.encode()} if header else {}
    answers = call(guarded, ("GET", "/models"), ("POST", PREDICT, {"json": {"smiles": ["C"]}}), headers=headers)
    assert [answer.status_code for answer in answers] == [status] * 2
    if status == 401:
        assert answers[0].headers["www-authenticate"] == "Bearer"
    assert [answer.status_code for answer in call(guarded, ("GET", "/"), ("GET", "/health"))] == [200, 200]


def test_without_a_token_only_names_of_this_machine_are_answered(service: Any) -> None:
    local = changed(service, local=True)
    hosts = {"localhost:8000": 200, "[::1]:8000": 200, "elsewhere.example": 421}
    found = [call(local, ("GET", "/models", {"headers": {"host": host}})).status_code for host in hosts]
    assert found == [*hosts.values()]


def test_a_killed_process_loses_no_request(service: Any) -> None:
    (before,) = service.engine.processes
    os.kill(before, signal.SIGKILL)
    answers = call(service, *(("POST", PREDICT, {"json": {"smiles": ["C" * n]}}) for n in range(1, 9)))
    assert [answer.status_code for answer in answers] == [200] * 8
    assert service.engine.processes != [before] and call(service, ("GET", "/health")).json()["status"] == "ok"


class Bomb:
    """What a process does when it reads this."""

    def __init__(self, does: Any, *given: Any) -> None:
        self.does, self.given = does, given

    def __reduce__(self) -> Any:
        return self.does, self.given


@pytest.mark.slow
def test_a_request_that_ends_its_process_or_takes_too_long_fails_alone(
    service: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service.engine, "limits", Limits(seconds=2.0))
    asked: list[Any] = [["CCO"], Bomb(os._exit, 1), ["CCN"], Bomb(time.sleep, 60), ["CCC"]]
    waiting = [service.engine.submit(Call("draw", "", {"smiles": smiles})) for smiles in asked]
    replies = [each.exception(120) or each.result() for each in waiting]
    assert [reply.status for reply in replies] == [200, 500, 200, 504, 200]
    assert [replies[i].code for i in (1, 3)] == ["worker-ended", "too-slow"] and service.engine.waiting == 0


@pytest.mark.slow
def test_a_file_whose_process_is_killed_has_the_bytes_of_predict(
    service: Any, models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [f"n{i},{'C' * (1 + i % 50)}{'O' if i % 9 else '('}\n" for i in range(2_000)]
    (tmp_path / "in.csv").write_text("name,smiles\n" + "".join(rows))
    written(models, tmp_path / "in.csv", tmp_path / "out.csv", keep_columns=True)
    how = {"name": "in.csv", "keep_columns": True}
    job = call(service, ("POST", "/models/tiny/jobs", {"params": how, "content": (tmp_path / "in.csv").read_bytes()}))
    assert job.status_code == 202 and job.json()["rows"] == 2_000
    id = job.json()["id"]
    assert call(service, ("GET", f"/jobs/{id}/result")).status_code == 409
    while not service.jobs.rows_done(service.jobs.jobs[id]):
        time.sleep(0.02)
    worker = service.jobs._worker
    if worker is not None:
        worker.process.kill()
    state = finished(service, id)
    assert (state["state"], state["rows"], state["failed"]) == ("done", 2_000, len(rows[::9]))
    assert call(service, ("GET", f"/jobs/{id}/result")).content == (tmp_path / "out.csv").read_bytes()
    assert call(service, ("DELETE", f"/jobs/{id}")).status_code == 204
    assert call(service, ("GET", f"/jobs/{id}")).status_code == 404


def test_a_workbook_is_answered_with_a_workbook(service: Any, tmp_path: Path) -> None:
    pd.DataFrame({"Compound": ["a-1", "a-2"], "SMILES": ["CCO", "C(C"]}).to_excel(tmp_path / "in.xlsx", index=False)
    how = {"name": "in.xlsx", "id": "Compound"}
    content = (tmp_path / "in.xlsx").read_bytes()
    job = call(service, ("POST", "/models/tiny/jobs", {"params": how, "content": content})).json()
    assert job["rows"] == 2 and finished(service, job["id"])["failed"] == 1
    answer = pd.read_excel(BytesIO(call(service, ("GET", f"/jobs/{job['id']}/result")).content))
    assert answer["id"].tolist() == ["a-1", "a-2"] and answer["status"].tolist() == ["ok", "unreadable"]
    broken = call(service, ("POST", "/models/tiny/jobs", {"params": how, "content": b"PK no workbook"})).json()
    assert finished(service, broken["id"])["state"] == "failed"


@pytest.mark.slow
def test_files_are_kept_within_their_number_and_survive_a_restart(models: Path, tmp_path: Path) -> None:
    async def body() -> Any:
        yield b"smiles\nCCO\nC(C\n"

    paths = {"tiny": str(models / "tiny.mgm")}
    kept = Jobs(tmp_path / "files", paths, {}, Limits(jobs=1)).start()
    job = asyncio.run(kept.add(body(), "tiny", "a.smi"))
    with pytest.raises(Exception, match="files are kept already") as refused:
        asyncio.run(kept.add(body(), "tiny", "b.csv"))
    assert (refused.value.status, "Retry-After" in refused.value.headers) == (429, True)
    kept.close()
    again = Jobs(tmp_path / "files", paths, {}, Limits(jobs=1)).start()
    for _ in range(400):
        if again.jobs[job.id].over:
            break
        time.sleep(0.1)
    assert (again.jobs[job.id].state, again.jobs[job.id].failed) == ("done", 1)
    again.close()


def test_names_and_options_that_cannot_be(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConflictError, match="two models are called m"):
        named_models(["m.mgm", "other/m.mgm"])
    with pytest.raises(UnknownNameError, match="no limit 'row'"):
        read_limits(["row=5"])
    monkeypatch.setitem(__import__("sys").modules, "uvicorn", None)
    with pytest.raises(NotInstalledError, match=r"pip install 'molgraph-platform\[serve\]'"):
        molgraph.serve("m.mgm")
