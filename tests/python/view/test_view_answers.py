"""What the server of `penstock view` answers of tables, search, rows of training, steps, shares and duplicates."""

from __future__ import annotations

import json
import math
import threading
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import numpy as np
import penstock
import pytest
from _datasets import LENGTHS, NUMBERS, compact, ids, opaque, raw_tokens
from _views import ATTACK, ask, cells, get, lines, one_long, refusal, serving
from penstock._data import reading
from penstock._view import exhibit
from penstock._view.sorting import order_of

LANGUAGES = ("en", "de", None, "fr's")


def corpus(folder: Path, documents: int = 300, seed: int = 0) -> tuple[penstock.Dataset, list[dict[str, Any]]]:
    """Documents with columns, in two shards; some are copies, some have no records."""
    random = np.random.default_rng(seed)
    rows: list[dict[str, Any]] = []
    columns = {"lang": "category", "score": "f4", "stars": "i2", "good": "bool", "vector": ("f4", (2,))}
    with penstock.Writer(
        folder / "corpus", {"token": "u2"}, metadata="json", columns=columns, shard_size=12_000
    ) as writer:
        for number in range(documents):
            tokens = random.integers(0, 50, random.integers(0, 30))
            if number % 7 == 3 and number > 10:
                tokens = rows[number - 9]["tokens"]
            values = {
                "lang": LANGUAGES[number % 4],
                "score": float("nan") if number % 11 == 0 else np.float32(random.integers(0, 20) / 8),
                "stars": int(random.integers(-3, 4)),
                "good": bool(number % 3),
                "vector": [number, 1],
            }
            metadata = {"url": f"pages/{number}", "title": f"Straße {number}"}
            writer.append(token=tokens, metadata=metadata, columns=values)
            rows.append({"tokens": tokens, "metadata": metadata, **values})
    return penstock.open(folder / "corpus"), rows


# ---- the table


def table(server: Any, **query: Any) -> list[int]:
    """Numbers of all documents of a table, read page by page."""
    found: list[int] = []
    while True:
        page = ask(server, "table", first=len(found), count=70, **query)
        found += [row["document"] for row in page["rows"]]
        if not page["rows"]:
            assert page["count"] == len(found)
            return found


def test_the_table_has_each_document_with_its_columns_and_metadata(tmp_path: Path) -> None:
    dataset, rows = corpus(tmp_path)
    with serving(dataset) as server:
        assert table(server) == list(range(len(rows)))
        page = ask(server, "table", first=100, count=50)["rows"]
        for shown, row in zip(page, rows[100:], strict=False):
            assert shown["length"] == len(row["tokens"])
            assert shown["metadata"] == [[name, value] for name, value in row["metadata"].items()]
            assert shown["columns"][0] == (row["lang"] or "null") and shown["columns"][3] == str(row["good"]).lower()
            assert float(shown["columns"][1]) == row["score"] or math.isnan(row["score"])
            assert shown["text"] == " ".join(map(str, row["tokens"]))


@pytest.mark.parametrize("descending", ["", "1"])
def test_the_table_is_sorted_by_any_column_and_stays_in_order_where_equal(tmp_path: Path, descending: str) -> None:
    dataset, rows = corpus(tmp_path)
    sign = -1 if descending else 1
    keys = {
        "document": lambda number: sign * number,
        "length": lambda number: sign * len(rows[number]["tokens"]),
        "column.score": lambda number: (
            math.isnan(score := rows[number]["score"]),
            0 if math.isnan(score) else sign * score,
        ),
        "column.stars": lambda number: sign * rows[number]["stars"],
        "column.good": lambda number: sign * rows[number]["good"],
        "column.lang": lambda number: (
            (lang := rows[number]["lang"]) is None,
            0 if lang is None else sign * sorted(filter(None, LANGUAGES)).index(lang),
        ),
    }
    with serving(dataset) as server:
        for sort, key in keys.items():
            wanted = sorted(range(len(rows)), key=key)
            assert table(server, sort=sort, descending=descending) == wanted, sort
            chosen = [number for number in wanted if rows[number]["stars"] > 0]
            assert table(server, sort=sort, descending=descending, where="stars > 0") == chosen, sort


def test_the_table_is_filtered_as_where_does_and_by_length(tmp_path: Path) -> None:
    dataset, rows = corpus(tmp_path)
    condition = "score > 1 and lang in ('en', 'fr''s') or not good"
    lengths = np.array([len(row["tokens"]) for row in rows])
    with serving(dataset) as server:
        chosen = dataset.where(condition).numbers
        assert table(server, where=condition) == chosen.tolist() and 0 < len(chosen) < len(rows)
        some = chosen[(lengths[chosen] >= 4) & (lengths[chosen] <= 12)]
        assert table(server, where=condition, shortest=4, longest=12) == some.tolist()
        assert table(server, shortest=29) == np.flatnonzero(lengths >= 29).tolist()
        assert table(server, longest=0) == np.flatnonzero(lengths == 0).tolist()
        assert "no column" in refusal(server, "table", where="colour = 1")
        assert "which have no order" in refusal(server, "table", sort="column.vector")
        assert 'must be "document"' in refusal(server, "table", sort="column.colour")
        assert "1 to 200 rows" in refusal(server, "table", count=201)


def test_values_of_each_type_are_put_in_order() -> None:
    random = np.random.default_rng(0)
    for dtype in ("u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f2", "f4", "f8"):
        if dtype[0] == "f":
            values = random.normal(size=200).round(1).astype(dtype)
            values[random.random(200) < 0.2] = np.nan
            values[:4] = 0.0, -0.0, np.inf, -np.inf
        else:
            kind = np.iinfo(dtype)
            values = random.integers(kind.min, kind.max, 200, dtype=np.dtype(dtype)) // 5 * 5
        for sign in (1, -1):
            plain = [(bool(each != each), 0 if each != each else sign * each) for each in values.tolist()]
            wanted = sorted(range(200), key=plain.__getitem__)
            assert order_of(values, sign < 0).tolist() == wanted, dtype


def test_the_last_answers_are_kept_within_bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset, _ = corpus(tmp_path, 10)
    shown = exhibit.Exhibit(("corpus",), dataset, None)
    made: list[int] = []

    def make(number: int, size: int) -> np.ndarray:
        return shown.kept(number, lambda: made.append(number) or np.zeros(size, np.uint8))

    for number in (*range(8), *range(8), 8, 0, 7):
        make(number, 10)
    assert made == [*range(9), 0]
    monkeypatch.setattr(exhibit, "_KEPT_BYTES", 100)
    for number in (20, 21, 20, 22):
        assert len(make(number, 60)) == 60
    assert made[-4:] == [20, 21, 20, 22] and len(make(30, 1000)) == 1000


def test_tables_of_entries_and_of_cells(tmp_path: Path) -> None:
    (entries, _), of_cells = opaque(tmp_path, 13), cells(tmp_path)
    with serving(entries, of_cells) as server:
        page = ask(server, "table", dataset=0)
        assert page["count"] == 13 and page["rows"][12]["metadata"] == [["number", "12"], ["list", "[0, 1]"]]
        assert "have no lengths" in refusal(server, "table", dataset=0, sort="length")
        assert "cells are not compared" in refusal(server, "duplicates", dataset=1)
        assert "no field of ids" in refusal(server, "duplicates", dataset=0)
        shown = ask(server, "table", dataset=1, where="line = 'A549'")
        assert shown["count"] == 15 and shown["rows"][1]["document"] == 2
        assert shown["rows"][1]["text"].split(", ")[0] == of_cells.features.names[of_cells.documents()[2]["gene"][0]]


def test_datasets_without_documents_have_no_table(tmp_path: Path) -> None:
    (stream, _), (by_ids, _) = raw_tokens(tmp_path / "tokens.bin", 500), ids(tmp_path, NUMBERS)
    with serving(stream, by_ids) as server:
        assert refusal(server, "table", dataset=0) == ask(server, "facts", dataset=0)["no_documents"] != ""
        assert refusal(server, "table", dataset=1) == ask(server, "facts", dataset=1)["no_documents"] != ""


# ---- search


def found(server: Any, **query: Any) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    *between, last = lines(server, "search", **query)
    return [each["hit"] for each in between if "hit" in each], last["end"]


def first_places(rows: list[Any], wanted: list[int]) -> dict[int, int]:
    """By document the first record at which the ids stand."""
    places = {}
    for number, row in enumerate(rows):
        tokens = list(row)
        for at in range(len(tokens) - len(wanted) + 1):
            if tokens[at : at + len(wanted)] == wanted:
                places[number] = at
                break
    return places


@pytest.mark.parametrize("piece", [1 << 20, 64])
def test_ids_are_found_where_they_stand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, piece: int) -> None:
    monkeypatch.setattr(reading, "_RECORDS", piece)
    dataset, rows = corpus(tmp_path)
    with serving(dataset) as server:
        for wanted in ([7], [int(each) for each in rows[20]["tokens"][2:4]], [49, 49, 49]):
            places = first_places([row["tokens"] for row in rows], wanted)
            hits, end = found(server, look="ids", text=" ".join(map(str, wanted)))
            start = 0
            seen = {hit["document"]: hit["record"] for hit in hits}
            while not end["all"]:  # it stops after 100 documents and goes on there
                assert len(hits) == 100 and end["done"] > start
                start = end["done"]
                hits, end = found(server, look="ids", text=" ".join(map(str, wanted)), start=start)
                seen |= {hit["document"]: hit["record"] for hit in hits}
            assert seen == places
            chosen = {number: at for number, at in places.items() if rows[number]["stars"] > 1}
            hits, _ = found(server, look="ids", text=" ".join(map(str, wanted)), where="stars > 1")
            assert {hit["document"]: hit["record"] for hit in hits} == chosen
        assert "whole numbers" in refusal(server, "search", look="ids", text="1 two")
        assert "tokenizer" in refusal(server, "search", look="text", text="a")
        assert "type what" in refusal(server, "search", look="ids", text=" ")


@pytest.mark.parametrize("piece", [1 << 20, 16])
def test_cells_are_found_by_a_genes_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, piece: int) -> None:
    monkeypatch.setattr(reading, "_RECORDS", piece)
    dataset = cells(tmp_path)
    genes = [cell["gene"].tolist() for cell in dataset.documents()]
    with serving(dataset) as server:
        for text, case in (("GENE17", 0), (" gene17 ", 1)):
            hits, end = found(server, look="text", text=text, case=case)
            assert {hit["document"]: hit["record"] for hit in hits} == first_places(genes, [17]) and end["all"]
            assert all(hit["text"] == "GENE17" for hit in hits)
        at = genes[hits[0]["document"]].index(17)
        beside = [f"GENE{gene}" if gene else ATTACK for gene in genes[hits[0]["document"]]]
        assert hits[0]["before"].split() == " ".join(beside[max(at - 3, 0) : at]).split()
        assert hits[0]["after"].split() == beside[at + 1 : at + 4]
        hits, _ = found(server, look="text", text="GENE17", where="line = 'A549'")
        assert {hit["document"] for hit in hits} == {n for n in first_places(genes, [17]) if n % 2 == 0}
        assert "no gene is called GENE1x" in refusal(server, "search", look="text", text="GENE1x")
        assert "is GENE1 or GENE10 or GENE11 or" in refusal(server, "search", look="text", text="ene1", case=0)


@pytest.mark.parametrize("piece", [1 << 20, 512])
def test_long_documents_and_streams_are_searched_in_pieces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, piece: int
) -> None:
    monkeypatch.setattr(reading, "_RECORDS", piece)
    (long, tokens), (stream, model) = one_long(tmp_path), raw_tokens(tmp_path / "tokens.bin", 20_000)
    with serving(long, stream) as server:
        for at in (0, 3, 509, 510, 511, 1023, 4096, 19_990):
            wanted = tokens[3 + at : 3 + at + 3]
            hits, _ = found(server, dataset=0, look="ids", text=" ".join(map(str, wanted)))
            assert [(hit["document"], hit["record"]) for hit in hits] == [(1, at)]
            wanted = model[at : at + 3]
            hits, end = found(server, dataset=1, look="ids", text=" ".join(map(str, wanted)))
            assert [(hit["document"], hit["record"]) for hit in hits] == [(None, at)] and end["noun"] == "records"


def test_text_is_found_across_tokens_and_not_across_documents(tmp_path: Path, tokenizer_file: str) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    tokenizer = tokenizers.Tokenizer.from_file(tokenizer_file)
    texts = ["The naïve 東京 reader", "nothing", "a READER of 東京 and ", "Tokyo", "x" * 5000 + "needle", "needles"]
    with penstock.Writer(tmp_path / "text", {"token": "u2"}, metadata="json") as writer:
        for number, text in enumerate(texts):
            writer.append(token=tokenizer.encode(text).ids, metadata={"title": f"東 {number}", "number": number})
    with serving(penstock.open(tmp_path / "text"), tokenizer=tokenizer_file) as server:
        for wanted, any_case in (("東京", 0), ("京", 0), ("reader", 0), ("reader", 1), ("and Tokyo", 0), ("needle", 0)):
            hits, end = found(server, look="text", text=wanted, case=any_case)
            fold = str.lower if any_case else str
            assert [hit["document"] for hit in hits] == [
                n for n, text in enumerate(texts) if fold(wanted) in fold(text)
            ]
            for hit in hits:
                assert fold(hit["text"]) == fold(wanted) and hit["text"] in texts[hit["document"]]
                assert texts[hit["document"]].startswith(hit["before"]) or len(hit["before"].encode()) >= 58
            assert end["all"] and end["hits"] == len(hits)
        # Metadata, which JSON may write otherwise than it was typed.
        assert [hit["document"] for hit in found(server, look="metadata", text="東 3")[0]] == [3]
        assert len(found(server, look="metadata", text="TITLE", case=1)[0]) == 6
        assert [hit["document"] for hit in found(server, look="metadata", text='"number":5')[0]] == [5]


def test_any_case_is_of_all_scripts_and_excerpts_are_whole_characters(tmp_path: Path, tokenizer_file: str) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    tokenizer = tokenizers.Tokenizer.from_file(tokenizer_file)
    around = "東京" * 40
    texts = [f"{around}{'x' * n} ÉTÉ {around}" for n in range(3)] + ["Straße, ΣΟΦΟΣ", "STRASSE sei сИла 3 KB"]
    with penstock.Writer(tmp_path / "text", {"token": "u2"}, metadata="json") as writer:
        for text in texts:
            writer.append(token=tokenizer.encode(text).ids, metadata={"title": text})
    with serving(penstock.open(tmp_path / "text"), tokenizer=tokenizer_file) as server:
        for wanted, documents in (
            ("été", [0, 1, 2]), ("strasse", [3, 4]), ("Straße", [3, 4]), ("σοφος", [3]), ("сила", [4]), ("kb", [4])
        ):  # fmt: skip
            for look in ("text", "metadata"):
                hits, _ = found(server, look=look, text=wanted, case=1)
                assert [hit["document"] for hit in hits] == documents, (wanted, look)
            for hit in found(server, look="text", text=wanted, case=1)[0]:
                assert hit["before"] + hit["text"] + hit["after"] in texts[hit["document"]]
        hits, _ = found(server, look="text", text="été")
        assert hits == []
        # Ids are cut within a character where a token is: its bytes are told, and no character is made up.
        for document, text in enumerate(texts[:3]):
            for number in tokenizer.encode(text).ids[100:130]:
                hits, _ = found(server, look="ids", text=number)
                assert not any("\ufffd" in hit[part] for hit in hits for part in ("before", "text", "after")), document


def test_a_search_that_nobody_listens_to_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset, _ = corpus(tmp_path)
    looked: list[int] = []
    real = reading.document_pieces

    def slow(*arguments: Any) -> Any:
        while True:  # a dataset that does not end
            for piece in real(*arguments):
                looked.append(1)
                time.sleep(0.01)
                yield piece

    monkeypatch.setattr("penstock._view.search.document_pieces", slow)
    before = set(threading.enumerate())  # with those of servers of other tests
    with serving(dataset) as server:
        import http.client

        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
        connection.request("GET", f"/{server.key}/api/search?{urlencode({'look': 'ids', 'text': '65535'})}")
        answer = connection.getresponse()
        assert "progress" in json.loads(answer.readline())
        answer.close()
        connection.close()
        end = time.monotonic() + 20
        while any("process_request_thread" in each.name and each not in before for each in threading.enumerate()):
            assert time.monotonic() < end, "the search goes on"
            time.sleep(0.05)
        count = len(looked)
        time.sleep(0.1)
        assert len(looked) == count


def test_a_server_is_closed_in_the_middle_of_a_search(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset, _ = corpus(tmp_path)

    def endless(*arguments: Any) -> Any:
        while True:
            time.sleep(0.01)
            yield from reading.document_pieces(*arguments)

    monkeypatch.setattr("penstock._view.search.document_pieces", endless)
    begun = threading.Event()
    said: list[dict[str, Any]] = []
    with serving(dataset) as server:

        def listen() -> None:
            import http.client

            connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
            connection.request("GET", f"/{server.key}/api/search?look=ids&text=65535")
            answer = connection.getresponse()
            while line := answer.readline():
                said.append(json.loads(line))
                begun.set()

        thread = threading.Thread(target=listen)
        thread.start()
        assert begun.wait(20)
        begin = time.monotonic()
    assert time.monotonic() - begin < 10
    thread.join(10)
    assert not thread.is_alive() and all("progress" in each for each in said)


# ---- what training sees


def test_rows_of_training_are_those_of_a_loader(tmp_path: Path) -> None:
    dataset, rows = corpus(tmp_path)
    kept = {"order": "sequential", "framework": "numpy"}
    views = {
        "windows": dataset.windows(64, lookahead=1),
        "packed": dataset.packed(64),
        "padded": dataset.documents().padded(to=64),
    }
    with serving(dataset) as server:
        for kind, view in views.items():
            with penstock.Loader(view, 1, epochs=1, **kept) as loader:
                for index, batch in enumerate(loader):
                    seen = ask(server, "sees", **{"as": kind, "window": 64, "index": index})
                    assert seen["count"] == len(view)
                    assert seen["labels"] == batch.labels[0].tolist()
                    assert seen["ids"] == batch["token"][0][:64].tolist()
                    spans = batch.spans.of_row(0)
                    assert [(each["start"], each["stop"]) for each in seen["spans"]] == [
                        (s.start, s.stop) for s in spans
                    ]
                    places = np.full(64, -1)
                    for number, span in enumerate(spans):
                        places[span.start : span.stop] = number
                    assert seen["documents"] == places.tolist()
                    if index == 20:
                        break
        assert ask(server, "sees", **{"as": "packed", "window": 64})["waste"] == views["packed"].waste
        first = next(
            number for number, row in enumerate(rows) if sum(len(each["tokens"]) for each in rows[:number]) > 200
        )
        seen = ask(server, "sees", **{"as": "windows", "window": 64, "document": first})
        assert first in [span["document"] for span in seen["spans"]]
        before = sum(len(each["tokens"]) for each in rows[:first])
        for record in (0, len(rows[first]["tokens"]) - 1):
            seen = ask(server, "sees", **{"as": "windows", "window": 4, "document": first, "record": record})
            assert seen["index"] == (before + record) // 4
        assert "there is no row" in refusal(server, "sees", index=10**6)
        assert "must be one of" in refusal(server, "sees", **{"as": "heaps"})


def test_labels_across_documents_and_infilling_are_shown_as_they_are_asked_for(tmp_path: Path) -> None:
    dataset, _ = corpus(tmp_path)
    columns = [penstock.columns.Labels(cross_document=False)]
    fim = penstock.columns.FillInTheMiddle(60_001, 60_002, 60_003, rate=1)
    view = dataset.windows(64, lookahead=1)
    with serving(dataset) as server:
        for given, query in (
            (columns, {"cross": 0}),
            ([fim], {"middle": "60001 60002 60003", "seed": 5}),
            ([*columns, fim], {"middle": "60001, 60002, 60003", "seed": 5, "cross": 0}),
        ):
            with penstock.Loader(view, 1, seed=5, order="sequential", framework="numpy", columns=given) as loader:
                batch = next(loader)
                seen = ask(server, "sees", window=64, **query)
                assert seen["labels"] == batch.labels[0].tolist() and seen["ids"] == batch["token"][0][:64].tolist()
        assert "three ids are wanted" in refusal(server, "sees", window=64, middle="1 2")


def test_a_loss_field_is_the_mask(tmp_path: Path) -> None:
    with penstock.Writer(tmp_path / "chat", {"token": "u2", "loss": "u1"}, metadata="json") as writer:
        writer.append(token=np.arange(1, 11), loss=[0, 0, 0, 1, 1, 0, 0, 1, 1, 1], metadata=None)
    with serving(penstock.open(tmp_path / "chat")) as server:
        assert ask(server, "facts")["has_loss"]
        assert ask(server, "sees", **{"as": "padded", "window": 12})["labels"] == [
            *(-100, -100, 4, 5, -100, -100, 8, 9, 10, -100, -100, -100)
        ]


def test_an_id_is_told_with_its_bytes_and_how_often_it_occurs(tmp_path: Path, tokenizer_file: str) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    tokenizer = tokenizers.Tokenizer.from_file(tokenizer_file)
    text = "naïve 東京 \n\t🚰"
    ids = tokenizer.encode(text).ids
    special = next(number for number, each in tokenizer.get_added_tokens_decoder().items() if each.special)
    with penstock.Writer(tmp_path / "text", {"token": "u2"}, metadata="json") as writer:
        for _ in range(3):
            writer.append(token=[*ids, special], metadata=None)
    with serving(penstock.open(tmp_path / "text"), tokenizer=tokenizer_file) as server:
        (span,) = ask(server, "row", kind="document", index=1)["spans"]
        assert len(span["pieces"]) == len(ids) + 1 and span["special"] == [len(ids)]
        told = [ask(server, "token", id=each) for each in ids]
        assert bytes.fromhex("".join(each["bytes"] for each in told)) == text.encode()
        assert all(each["count"] == 3 * ids.count(each["id"]) and not each["special"] for each in told)
        assert ask(server, "token", id=special)["special"] and ask(server, "token", id=65535)["count"] == 0
        assert ask(server, "token", id=65535)["bytes"] is None


# ---- steps


def test_a_step_is_what_locate_says(tmp_path: Path) -> None:
    dataset, rows = corpus(tmp_path)
    firsts = np.cumsum([0, *(shard.spans for shard in dataset.shards)])
    views = {
        "windows": dataset.windows(16, lookahead=1),
        "documents": dataset.documents(),
        "packed": dataset.packed(16),
    }
    with serving(dataset) as server:
        for kind, view in views.items():
            job = penstock.Job(view, global_batch_size=12, seed=3)
            for step in (0, 1, 40):
                query = {"as": kind, "window": 16, "batch": 12, "ranks": 4, "seed": 3, "step": step}
                told = ask(server, "step", **query)
                located = job.locate(step, world_size=4)
                shown = [(r["position"], r["rank"], r["row"], r["epoch"], r["index"]) for r in told["rows"]]
                assert shown == [(str(r.position), r.rank, r.row, r.epoch, r.index) for r in located]
                for one, other in zip(told["rows"], located, strict=True):
                    spans = [int(firsts[span.id.shard]) + span.id.entry for span in other.spans]
                    assert [span["document"] for span in one["spans"]] == spans
                    if kind == "documents":
                        assert one["text"] == " ".join(map(str, rows[spans[0]]["tokens"]))
                mine = ask(server, "step", **query, rank=2)["rows"]
                assert [r["position"] for r in mine] == [str(r.position) for r in located if r.rank == 2]
        assert "ranks are from 0 to 3" in refusal(server, "step", ranks=4, rank=4)
        assert "1 to 65,536 rows" in refusal(server, "step", batch=1 << 17)


def test_a_mixture_is_its_sources_and_its_steps(tmp_path: Path) -> None:
    for name in ("web", "code"):
        (tmp_path / name).mkdir()
        corpus(tmp_path / name, 100, len(name))
    file = tmp_path / "mix.json"
    source = {"window": 16, "lookahead": 1}
    content = {"sources": {name: {"path": f"{name}/corpus", **source} for name in ("web", "code")}}
    file.write_text(json.dumps({**content, "stages": [{"weights": {"web": 3, "code": 1}}], "end": 64}))
    mixture = penstock.Mixture.from_file(file)
    with serving(*(view.dataset for view in mixture.sources.values()), mixture=(str(file), mixture)) as server:
        said = ask(server, "mixture")
        assert said["names"] == ["web", "code"] and said["end"] == "64"
        assert [each.split(":")[0] for each in ask(server, "datasets")] == ["web", "code"]
        told = ask(server, "step", step=2, batch=16, ranks=2)
        located = penstock.Job(mixture, global_batch_size=16).locate(2, world_size=2)
        assert [(r["source"], r["index"]) for r in told["rows"]] == [(r.source, r.index) for r in located]
        assert told["sources"] == [{"name": "web", "rows": 12}, {"name": "code", "rows": 4}]
        assert "the run has 4 batches" in refusal(server, "step", step=4, batch=16)


# ---- shares and duplicates


def test_each_bar_has_the_documents_that_its_condition_chooses(tmp_path: Path) -> None:
    dataset, rows = corpus(tmp_path)
    lengths = np.array([len(row["tokens"]) for row in rows])
    with serving(dataset) as server:
        for where in ("", "stars > 0"):
            chosen = dataset.where(where).numbers if where else np.arange(len(rows))
            for by in ("lang", "score", "stars", "good"):
                bars = ask(server, "shares", by=by, where=where)["bars"]
                for bar in bars:
                    condition = f"({where}) and {bar['where']}" if where else bar["where"]
                    numbers = dataset.where(condition).numbers
                    assert bar["documents"] == len(numbers), (by, bar)
                    assert bar["records"] == lengths[numbers].sum()
                assert sum(bar["documents"] for bar in bars) == len(chosen)
        assert ask(server, "shares")["bars"][0]["documents"] == len(rows)
        assert "cannot be counted" in refusal(server, "shares", by="vector")
        assert "no column" in refusal(server, "shares", by="colour")


@pytest.mark.parametrize("piece", [1 << 20, 8])
def test_duplicates_are_all_documents_with_equal_records(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, piece: int
) -> None:
    monkeypatch.setattr(reading, "_RECORDS", piece)
    dataset, rows = corpus(tmp_path)
    same: dict[tuple[int, ...], list[int]] = {}
    for number, row in enumerate(rows):
        same.setdefault(tuple(map(int, row["tokens"])), []).append(number)
    empty = same.pop((), [])
    groups = [numbers for numbers in same.values() if len(numbers) > 1]
    with serving(dataset) as server:
        *_, said = lines(server, "duplicates")
        assert sorted(group["documents"] for group in said["groups"]) == sorted(groups) and groups
        assert said["count"] == len(groups) and said["extra"] == sum(len(each) - 1 for each in groups)
        assert said["empty"] == len(empty)
        *_, said = lines(server, "duplicates", where="good")
        some = [[n for n in group if rows[n]["good"]] for group in groups]
        assert sorted(group["documents"] for group in said["groups"]) == sorted(each for each in some if len(each) > 1)


def test_answers_are_for_those_with_the_key_alone(tmp_path: Path) -> None:
    dataset, _ = compact(tmp_path, LENGTHS)
    with serving(dataset) as server:
        for name in ("table", "search?look=ids&text=1", "sees", "step", "shares", "duplicates", "mixture", "token"):
            status, _, body = get(server, f"/wrong/api/{name}")
            assert status == 403 and b"no valid key" in body
            status, headers, body = get(server, f"api/{name}", Host="evil.example")
            assert status == 403 and b"127.0.0.1" in body
        status, headers, _ = get(server, "api/search?look=ids&text=1")
        assert status == 200 and "default-src 'none'" in headers["Content-Security-Policy"]
        assert headers["X-Content-Type-Options"] == "nosniff" and headers["Content-Type"] == "application/x-ndjson"
