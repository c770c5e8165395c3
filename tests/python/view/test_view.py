"""`penstock view`: what its server answers, and to whom."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import numpy as np
import penstock
import pytest
from _datasets import LENGTHS, NUMBERS, compact, ids, opaque, raw_tokens, token_stream
from _servers import nginx
from _views import ATTACK, ask, cells, get, hostile, one_long, refusal, serving
from penstock._cli.main import main
from penstock._view.samples import run_starts

# ---- what is shown


@pytest.mark.parametrize("make", [lambda at: compact(at, LENGTHS), lambda at: ids(at, NUMBERS)], ids=["compact", "ids"])
def test_each_window_is_what_the_dataset_has(make: Any, tmp_path: Path) -> None:
    dataset, model = make(tmp_path)
    with serving(dataset) as server:
        for index in range(len(dataset.windows(7))):
            row = ask(server, "row", kind="window", window=7, index=index)
            assert row["count"] == len(dataset.windows(7)) and row["first_record"] == index * 7
            wanted = model.window(index, 7)
            shown = [(s["start"], s["stop"], s["begins"], s["ends"], s["offset"]) for s in row["spans"]]
            spans = model.window_spans(index, 7)
            assert shown == [span[:5] for span in spans]
            assert [(s["shard"], s["entry"]) for s in row["spans"]] == [span[5] for span in spans]
            for span, (start, stop, *_, metadata) in zip(row["spans"], spans, strict=True):
                assert span["ids"] == " ".join(map(str, wanted["token"][start:stop]))
                said = {name: value if name == "text" else json.loads(value) for name, value in span["metadata"]}
                assert said == metadata
            assert [json.loads(each) for each in np.transpose(row["table"]["rows"])[0]] == wanted["token"].tolist()


def test_each_document_is_found_by_the_number_that_its_span_tells(tmp_path: Path) -> None:
    dataset, model = compact(tmp_path, LENGTHS)
    with serving(dataset) as server:
        for number, entry in enumerate(model.spans):
            row = ask(server, "row", kind="document", index=number)
            (span,) = row["spans"]
            assert span["document"] == number and (span["shard"], span["entry"]) == (entry.shard, entry.number)
            assert row["first_record"] == entry.start and row["records"] == entry.stop - entry.start
            assert span["ids"] == " ".join(map(str, model.records["token"][entry.start : entry.stop]))
        for span in ask(server, "row", kind="window", window=20, index=1)["spans"]:
            document = ask(server, "row", kind="document", index=span["document"])["spans"][0]
            assert document["metadata"] == span["metadata"]


def test_a_dataset_that_was_annotated_meanwhile_is_opened_anew(tmp_path: Path) -> None:
    dataset = cells(tmp_path)
    with serving(dataset) as server:
        assert ask(server, "facts")["column_list"][0]["example"] == "A549"
        penstock.annotate(dataset.path, {"plate": ["p1"] + [None] * 29})
        query = "kind=document&index=1"
        status, _, body = get(server, f"api/row?{query}")
        words = json.loads(body)["error"]
        assert status == 409 and words.startswith(f"{dataset.path}: was changed") and words.endswith("reload the page")
        assert [each["name"] for each in ask(server, "facts")["column_list"]] == ["line", "plate"]
        (span,) = ask(server, "row", kind="document", index=1)["spans"]
        assert span["columns"] == [["line", "MCF7"], ["plate", "null"]]  # missing, as a condition says it
        penstock.annotate(dataset.path, {"batch": np.arange(30)})
        _, _, body = get(server, "api/search?look=metadata&text=x")
        assert "error" in json.loads(body.splitlines()[-1])
        shutil.rmtree(dataset.path)
        assert "cannot be opened" in refusal(server, "row", kind="document", index=1)


def test_a_mixture_whose_source_was_annotated_says_to_start_again(tmp_path: Path) -> None:
    dataset = cells(tmp_path)
    mixture = penstock.Mixture({"cells": dataset.documents()}, [penstock.Stage({"cells": 1})])
    with serving(dataset, mixture=("mix.json", mixture)) as server:
        penstock.annotate(dataset.path, {"plate": ["p1"] * 30})
        status, _, body = get(server, "api/row?kind=document&index=1")
        assert (status, "start penstock view again" in json.loads(body)["error"]) == (409, True)


def test_a_long_document_comes_in_parts_of_which_only_the_shown_is_read(tmp_path: Path) -> None:
    dataset, tokens = one_long(tmp_path)
    with serving(dataset) as server:
        part = ask(server, "facts")["part"]
        found: list[str] = []
        for number in range(-(-20_000 // part)):
            row = ask(server, "row", kind="document", index=1, part=number)
            assert row["records"] == 20_000 and row["begin"] == number * part and row["first_record"] == 3
            assert row["spans"][0]["metadata"] == [["length", "20000"]]
            assert len(row["spans"][0]["ids"].split()) <= part
            found += row["spans"][0]["ids"].split()
        assert found == list(map(str, tokens[3:20_003]))
        assert refusal(server, "row", kind="document", index=1, part=3) == (
            "document 1 has 20,000 records: there is no part 3 of 8,192 records"
        )


def test_positions_are_those_of_a_loader_of_this_seed(tmp_path: Path) -> None:
    dataset, _ = compact(tmp_path, LENGTHS)
    view = dataset.windows(7)
    with penstock.Loader(view, batch_size=1, seed=5, epochs=3) as loader, serving(dataset) as server:
        for position, batch in enumerate(loader):
            row = ask(server, "row", kind="window", window=7, seed=5, position=position)
            assert row["index"] == batch.indices[0] and row["epoch"] == str(position // len(view))
        for index in range(len(view)):
            position = ask(server, "row", kind="window", window=7, seed=5, index=index)["position"]
            assert ask(server, "row", kind="window", window=7, seed=5, position=position)["index"] == index


def test_a_cell_is_its_genes_by_name_with_their_counts(tmp_path: Path) -> None:
    dataset = cells(tmp_path)
    with serving(dataset) as server:
        assert ask(server, "facts")["cells"] and ask(server, "facts")["features"] == 40
        row, wanted = ask(server, "row", kind="document", index=4), dataset.documents()[4]
        genes = row["genes"]
        shown = {each["gene"]: each["values"][0] for each in genes["rows"]}
        assert shown == dict(zip(wanted["gene"].tolist(), wanted["count"].tolist(), strict=True))
        assert [each["values"][0] for each in genes["rows"]] == sorted(shown.values(), reverse=True)
        assert all(each["name"] == dataset.features.names[each["gene"]] for each in genes["rows"])
        assert row["spans"][0]["columns"] == [["line", "A549"]]
        found = ask(server, "tokens")
        counts = np.bincount(dataset.documents().read(np.arange(30))["gene"], minlength=40)
        assert found["cells"] == found["of"] == 30 and found["most"][0]["count"] == counts.max()


def test_h5ad_files_are_shown_in_place(tmp_path: Path) -> None:
    anndata = pytest.importorskip("_anndata_files")
    made = anndata.make()
    path = anndata.write(made, tmp_path / "plate.h5ad")
    with serving(penstock.open(path)) as server:
        row = ask(server, "row", kind="document", index=7)
        shown = {each["name"]: each["values"][0] for each in row["genes"]["rows"]}
        line = made.X[7].tocoo()
        assert shown == {made.var_names[gene]: value for gene, value in zip(line.col, line.data, strict=True)}
        assert dict(row["spans"][0]["columns"])["line"] == made.obs["line"].iloc[7]
        assert sum(each["documents"] for each in ask(server, "lengths")["bins"]) == made.n_obs


def test_entries_without_records_and_records_without_documents_are_shown(tmp_path: Path) -> None:
    (entries, _), (stream, model) = opaque(tmp_path, 13), token_stream(tmp_path, 50)
    with serving(entries, stream) as server:
        assert ask(server, "datasets") == [entries.path, stream.path]
        row = ask(server, "row", dataset=0, kind="document", index=12)
        assert row["spans"][0]["metadata"] == [["number", "12"], ["list", "[0, 1]"]]
        assert "without records" in refusal(server, "row", dataset=0, kind="window")
        assert "have no lengths" in refusal(server, "lengths", dataset=0)
        assert "no field of whole numbers" in refusal(server, "tokens", dataset=0)
        row = ask(server, "row", dataset=1, kind="window", window=50)
        assert row["spans"][0]["ids"].split() == list(map(str, model.records["token"]))
        assert "a token stream has no documents" in ask(server, "facts", dataset=1)["no_documents"]


# ---- histograms


def test_the_histogram_of_lengths_counts_each_document_once(tmp_path: Path) -> None:
    dataset, model = compact(tmp_path, LENGTHS)
    lengths = np.array([span.stop - span.start for span in model.spans])
    with serving(dataset) as server:
        found = ask(server, "lengths")
    assert found["documents"] == found["sampled"] == len(lengths)
    for each in found["bins"]:
        assert each["documents"] == ((lengths >= each["from"]) & (lengths < each["to"])).sum()
    assert sum(each["documents"] for each in found["bins"]) == len(lengths)
    assert found["longest"] == lengths.max() and found["median"] == np.median(lengths)


def test_many_documents_are_sampled_in_runs_over_all_of_them(tmp_path: Path) -> None:
    count = 300_000
    with penstock.Writer(tmp_path / "many", {"token": "u1"}, metadata="boundaries") as writer:
        for _ in range(count // 50):
            writer.append(token=[1, 2])
    with serving(penstock.open(*[tmp_path / "many"] * 50)) as server:
        found, tokens = ask(server, "lengths"), ask(server, "tokens")
    assert found["documents"] == count and found["sampled"] == 64 * 4096
    assert found["bins"] == [{"from": 2, "to": 4, "documents": 64 * 4096}]
    assert tokens["records"] <= 64 * 4096 and tokens["of"] == 2 * count
    assert [(each["id"], each["count"]) for each in tokens["most"]] == [(n, tokens["records"] // 2) for n in (1, 2)]


def test_runs_are_spread_evenly_and_within_the_data() -> None:
    for count in (0, 1, 4096, 4097, 262_144, 262_145, 10**6, 10**12):
        starts = run_starts(count)
        ends = np.minimum(starts + 4096, count)
        assert (starts[1:] >= ends[:-1]).all() and (count == 0) == (len(starts) == 0)
        if count:
            assert starts[0] == 0 and ends[-1] == count and len(starts) <= 64


def test_a_trillion_tokens_are_looked_at_as_quickly_as_a_few(tmp_path: Path) -> None:
    tokens = 1_100_000_000_000
    path = tmp_path / "tokens.bin"
    with path.open("wb") as file:
        file.truncate(tokens * 2)
        file.seek(tokens * 2 - 2)
        file.write(b"\x07\x00")
    with serving(penstock.open(path, dtype="u2")) as server:
        assert ask(server, "facts")["records"] == tokens
        row = ask(server, "row", kind="window", window=4000, index=tokens // 4000 - 1)
        assert row["spans"][0]["ids"].endswith(" 0 7")
        found = ask(server, "tokens")
        assert found["records"] == 64 * 4096 and found["of"] == tokens
        assert found["most"][0]["id"] == 0
    assert path.stat().st_blocks * 512 < 1 << 20  # nothing here wrote a trillion tokens


# ---- wrong questions, and wrong data


def test_wrong_questions_are_answered_in_words(tmp_path: Path) -> None:
    dataset, _ = compact(tmp_path, LENGTHS)
    questions = [
        ("row", {"kind": "document", "index": 99}, "there is no document 99: documents are from 0 to 13"),
        ("row", {"kind": "window", "window": 7, "index": 99}, "no window 99: windows of 7 records are from 0 to 9"),
        ("row", {"kind": "window", "window": 1000}, "000"),
        ("row", {"kind": "window", "window": 7, "record": 71}, "last whole window of 7 records"),
        ("row", {"window": 7, "record": 73}, "there is no record 73: they are from 0 to 72"),
        ("row", {"kind": "window", "window": 0}, "window=0: this page shows windows of 1 to 65,536 records"),
        ("row", {"kind": "cell"}, 'kind=\'cell\': must be "window" or "document"'),
        ("row", {"index": "-1"}, "index '-1': must be a whole number from 0 to 2^64 - 1"),
        ("row", {"index": "one"}, "index 'one': must be a whole number from 0 to 2^64 - 1"),
        ("row", {"position": 1 << 64}, "position '18446744073709551616': must be a whole number from 0 to 2^64 - 1"),
        ("facts", {"dataset": 1}, "there is no dataset 1: there are 1"),
        ("nothing", {}, "there is no 'nothing' here"),
    ]
    with serving(dataset) as server:
        for name, query, words in questions:
            assert words in refusal(server, name, **query)


def test_a_damaged_entry_is_said_beside_the_others(tmp_path: Path) -> None:
    path = tmp_path / "damaged"
    with penstock.Writer(path, {"token": "u2"}, metadata="json") as writer:
        for number in range(3):
            writer.append(token=[number] * 4, metadata={"number": number})
    entries = path / "00000" / "metadata.bin"
    data = entries.read_bytes()
    entries.write_bytes(data.replace(b'{"number":1}', b'{"number":!}'))
    with serving(penstock.open(path, checks="none")) as server:
        spans = ask(server, "row", kind="window", window=12)["spans"]
    assert [span["metadata"] for span in spans] == [[["number", "0"]], None, [["number", "2"]]]
    assert "entry 1" in spans[1]["problem"] and spans[0]["problem"] is None


def test_files_that_are_gone_are_told_and_the_server_goes_on(tmp_path: Path) -> None:
    dataset, _ = raw_tokens(tmp_path / "tokens.bin", 1000)
    with serving(dataset) as server:
        (tmp_path / "tokens.bin").rename(tmp_path / "elsewhere")
        assert "tokens.bin" in refusal(server, "row", window=10)
        (tmp_path / "elsewhere").rename(tmp_path / "tokens.bin")
        assert ask(server, "row", window=10)["count"] == 100


# ---- to whom


def test_only_who_has_the_key_and_names_this_server_gets_an_answer(tmp_path: Path) -> None:
    dataset, _ = raw_tokens(tmp_path / "tokens.bin", 1000)
    with serving(dataset) as server:
        assert server.server_address[0] == "127.0.0.1"
        for host in (f"127.0.0.1:{server.port}", f"localhost:{server.port}"):
            assert get(server, "", Host=host)[0] == 200
        # A page of the web that has its own name point here sends that name.
        for host in ("evil.example", f"evil.example:{server.port}", "127.0.0.1", f"localhost:{server.port + 1}", ""):
            assert get(server, "api/facts", Host=host)[0] == 403, host
        keys = (f"/{server.key}", f"/{server.key[:-1]}/")
        for path in ("/", "/api/facts", "/wrong/api/facts", "//", "/%C3%A9/x", *keys):
            assert get(server, path)[0] == 403, path
        assert get(server, "", method="POST")[0] == 501
        for path in ("../server.py", "server.py", "..%2fserver.py", "%2e%2e/exhibit.py", "style.css/"):
            assert get(server, path)[0] == 404, path


def test_each_answer_forbids_scripts_of_others(tmp_path: Path) -> None:
    with serving(hostile(tmp_path)) as server:
        for path in ("", "page.js", "style.css", "api/row?window=40", "api/none"):
            _, headers, body = get(server, path)
            policy = headers["Content-Security-Policy"]
            assert "default-src 'none'" in policy and "unsafe" not in policy and "*" not in policy
            assert headers["X-Content-Type-Options"] == "nosniff" and headers["Cache-Control"] == "no-store"
            assert "Access-Control-Allow-Origin" not in headers
            if path.startswith("api/"):
                assert headers["Content-Type"] == "application/json"
            assert b"http://" not in body.replace(b"http://www.w3.org/2000/svg", b"") and b"https://" not in body
        span = ask(server, "row", window=40)["spans"][0]
        assert span["columns"] == [[ATTACK, ATTACK]] and span["metadata"][0] == [ATTACK, f"{ATTACK}!"]


# ---- the command


def test_the_command_shows_several_datasets_without_passwords_until_ctrl_c(tmp_path: Path) -> None:
    """A browser is connected as it ends; before a pipe none is opened. Those take the type that need it."""
    with penstock.Writer(tmp_path / "root" / "far", {"token": "u2"}, metadata="json") as writer:
        writer.append(token=np.arange(100), metadata={"n": 1})
    compact(tmp_path, LENGTHS)
    raw_tokens(tmp_path / "tokens.bin", 1000)
    variables, opened = browser_of(tmp_path)
    with nginx(tmp_path / "root", tmp_path / "nginx") as address:
        far = address.replace("http://", "http://user:secret@") + "/far"
        given = [far, str(tmp_path / "compact-0"), str(tmp_path / "tokens.bin"), "--dtype", "u2", "--json"]
        command, pipe = [sys.executable, "-m", "penstock", "view", *given], subprocess.PIPE
        with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=variables) as process:
            assert process.stdout is not None and process.stderr is not None
            page = json.loads(process.stdout.readline())["address"]
            with urlopen(f"{page}api/row?window=50&index=1") as answer:
                assert json.load(answer)["spans"][0]["ids"].startswith("50 51")
            with urlopen(f"{page}api/facts") as answer:
                assert "secret" not in answer.read().decode()
            with urlopen(f"{page}api/facts?dataset=2") as answer:
                assert json.load(answer)["records"] == 1000
            with socket.create_connection(("127.0.0.1", int(page.split(":")[2].split("/")[0]))) as idle:
                idle.sendall(b"GET / HT")
                process.send_signal(signal.SIGINT)
                assert process.wait(10) == 0
            assert process.stderr.read() == ""
    assert not opened.exists()


def test_the_file_of_a_mixture_shows_its_sources(tmp_path: Path, capsys: Any) -> None:
    for name in ("web", "code"):
        (tmp_path / name).mkdir()
        raw_tokens(tmp_path / name / "tokens.bin", 1000)
    content = {name: {"path": f"{name}/tokens.bin", "dtype": "u2", "window": 10} for name in ("web", "code")}
    file = tmp_path / "mix.json"
    file.write_text(json.dumps({"sources": content, "stages": [{"weights": {"web": 2, "code": 1}}], "end": 60}))
    command = [sys.executable, "-m", "penstock", "view", str(file), "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        page = json.loads(process.stdout.readline())["address"]
        with urlopen(f"{page}api/datasets") as answer:
            assert [each.split(":")[0] for each in json.load(answer)] == ["web", "code"]
        with urlopen(f"{page}api/step?step=1&batch=30") as answer:
            assert [each["rows"] for each in json.load(answer)["sources"]] == [20, 10]
        process.send_signal(signal.SIGINT)
        assert process.wait(10) == 0
    assert main(["view", str(file), str(tmp_path / "web")]) == 2
    assert "the file of a mixture stands alone" in capsys.readouterr().err
    file.write_text("{")
    assert main(["view", str(file)]) == 2
    assert "mix.json: no JSON" in capsys.readouterr().err


def browser_of(folder: Path) -> tuple[dict[str, str], Path]:
    """(an environment with a browser of its own, the file in which that notes what it was given)"""
    program, opened = folder / "browser", folder / "opened"
    program.write_text(f'#!/bin/sh\necho "$1" > {opened}\n')
    program.chmod(0o755)
    return {**os.environ, "BROWSER": f"{program} %s"}, opened


@pytest.mark.parametrize("more", [("--no-open",), ()], ids=str)
def test_a_browser_is_opened_before_a_terminal(tmp_path: Path, more: tuple[str, ...]) -> None:
    raw_tokens(tmp_path / "tokens.bin", 1000)
    variables, opened = browser_of(tmp_path)
    command = [sys.executable, "-m", "penstock", "view", str(tmp_path / "tokens.bin"), "--dtype", "u2", *more]
    ours, theirs = os.openpty()
    with subprocess.Popen(command, stdout=theirs, env=variables) as process:
        os.close(theirs)
        said = b""
        while b"Ctrl-C ends it" not in said:
            said += os.read(ours, 1000)
        while not more and not (opened.exists() and opened.read_text()):
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        assert process.wait(10) == 0
    os.close(ours)
    assert opened.exists() == (not more)
    assert more or opened.read_text().strip() == said.split()[0].decode()


def test_a_port_that_is_taken_and_files_that_are_not_there_are_wrong_use(tmp_path: Path, capsys: Any) -> None:
    raw_tokens(tmp_path / "tokens.bin", 1000)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["view", str(tmp_path / "tokens.bin"), "--dtype", "u2", "--port", str(port)]) == 2
    assert capsys.readouterr().err == (
        f"penstock: --port {port}: Address already in use: choose another, or 0 for any\n"
    )
    assert main(["view", str(tmp_path / "none")]) == 2
    said = capsys.readouterr()
    assert said.out == "" and "no such file or folder" in said.err
