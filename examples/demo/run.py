"""The main job: text -> tokenizer -> datasets -> training on a mixture, killed and resumed -> proof that it is exact.

python examples/demo/run.py --out demo-output [--quick]
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import corpus
import penstock
import report
from rich.console import Console
from rich.table import Table
from settings import ROWS_PER_STEP, SHARES, SOURCES, Settings, settings

HERE = Path(__file__).resolve().parent
console = Console(width=None if sys.stdout.isatty() else 120)


@contextmanager
def stage(title: str) -> Iterator[None]:
    console.rule(f"[bold]{title}", align="left")
    begin = time.monotonic()
    yield
    console.print(f"[dim]{time.monotonic() - begin:.1f} s")


def penstock_write(s: Settings, name: str, shard_size: str) -> None:
    command = ["write", str(s.folder / f"{name}.jsonl"), "--out", str(s.folder / name)]
    command += ["--tokenizer", s.tokenizer, "--append", "<|endoftext|>", "--text-column", "text"]
    run_penstock(s, *command, "--metadata", "path,kind,size", "--shard-size", shard_size, "--workers", "2")


def run_penstock(s: Settings, *arguments: str) -> None:
    command = ["penstock", *arguments]
    console.print("$ " + " ".join(command).replace(str(s.folder), s.folder.name), highlight=False)
    # The command of this environment, activated or not.
    subprocess.run(command, executable=Path(sys.executable).parent / "penstock", check=True)


def show_batch(s: Settings) -> None:
    """One batch as text, with the names of the documents that its rows are cut from."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(s.tokenizer)
    mixture = penstock.Mixture.from_file(s.mixture)
    table = Table("row", "source", "document", "from token", "text", show_lines=True)
    with penstock.Loader(mixture, batch_size=3, seed=1, rank="env") as loader:
        batch = next(iter(loader))
        for span in batch.spans:
            ids = batch.inputs[span.row, span.start : span.stop].tolist()
            text = tokenizer.decode(ids, skip_special_tokens=False)
            row = f"{span.row}: window {int(batch.indices[span.row]):,}"
            start = str(span.offset) if not span.begins else "its beginning"
            table.add_row(row, mixture.names[span.source], span.metadata["path"], start, text[:160].strip())
    console.print(table)


def launch(s: Settings, run: str, processes: int, until: int, resume_from: Path | None) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)]
    command += [str(HERE / "train.py"), "--settings", str(s.folder / "settings.json")]
    command += ["--name", run, "--until", str(until)]
    if resume_from:
        command += ["--resume-from", str(resume_from)]
    environment = dict(os.environ, OMP_NUM_THREADS="1", PYTHONWARNINGS="ignore")
    with (s.folder / f"{run}.log").open("wb") as log:
        return subprocess.Popen(command, env=environment, stdout=log, stderr=subprocess.STDOUT)


def train(s: Settings, run: str, processes: int, until: int, resume_from: Path | None = None) -> None:
    begin = f" from {resume_from.name}" if resume_from else ""
    with stage(f"{run}: {SHARES[processes]}{begin} to step {until}"):
        if launch(s, run, processes, until, resume_from).wait() != 0:
            console.print((s.folder / f"{run}.log").read_text()[-4000:], markup=False)
            raise SystemExit(f"{run} failed")


def train_and_kill(s: Settings, run: str, processes: int) -> None:
    """Starts as if to train to the end; once process 2 has logged step `kill_at`, kills it as a dying machine would."""
    with stage(f"{run}: {SHARES[processes]}, one killed after step {s.kill_at}"):
        job = launch(s, run, processes, s.steps, None)
        victim = s.folder / "runs" / run / "rank-2.jsonl"
        while job.poll() is None:
            written = victim.read_text() if victim.exists() else ""
            lines = written[: written.rfind("\n") + 1].splitlines()  # without one that is being written
            if len(lines) > 1 and json.loads(lines[-1]).get("step", 0) >= s.kill_at:
                pid = json.loads(lines[0])["pid"]
                os.kill(pid, signal.SIGKILL)
                break
            time.sleep(0.02)
        code = job.wait()
        last = newest_checkpoint(s, run)
        console.print(f"process 2 (pid {pid}) killed; torchrun ended with code {code}; last checkpoint: {last.name}")
        if code == 0 or int(last.name.split("-")[1]) > s.kill_at + s.save_every:
            raise SystemExit("the run was not killed in its middle")


def newest_checkpoint(s: Settings, run: str) -> Path:
    """The last checkpoint that is whole: DCP writes .metadata at the end."""
    whole = (s.folder / "runs" / run / "checkpoints").glob("step-*/.metadata")
    return max(path.parent for path in whole)


def refuse_other_weights(s: Settings) -> str:
    """The state at the end, given to a mixture with another second stage: the message that one then reads."""
    state = penstock.Job(penstock.Mixture.from_file(s.mixture), global_batch_size=ROWS_PER_STEP, seed=1)
    s.save_mixture({"packages": 2, "modules": 1})
    other = penstock.Mixture.from_file(s.mixture)
    s.save_mixture()
    try:
        loader = penstock.Loader(other, batch_size=ROWS_PER_STEP, seed=1)
        loader.load_state_dict(state.state_dict(s.steps * ROWS_PER_STEP))
    except penstock.StateMismatchError as error:
        return str(error)
    raise SystemExit("a state of another mixture was accepted")


def prepare(s: Settings) -> None:
    with stage("text: the sources of Python's standard library"):
        count, total = corpus.write_corpus(s.folder, s.corpus_bytes)
        console.print(f"{count:,} documents, {total / 1e6:.1f} MB")
    with stage(f"tokenizer: BPE, {s.vocabulary:,} tokens"):
        corpus.train_tokenizer(s.folder, s.vocabulary)
    with stage("datasets"):
        for name in (*SOURCES, "valid"):
            penstock_write(s, name, "4M")
    with stage("mixture: both alike, then three of the packages to one"):
        s.save_mixture()
        run_penstock(s, "mix", s.mixture, "--dry-run", "--until", str(s.steps * ROWS_PER_STEP))
    with stage("one batch as text"):
        show_batch(s)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("demo-output"))
    parser.add_argument("--quick", action="store_true", help="a tiny model and few steps, for a test")
    arguments = parser.parse_args()
    begin = time.monotonic()
    shutil.rmtree(arguments.out, ignore_errors=True)
    arguments.out.mkdir(parents=True)
    s = settings(arguments.out.resolve(), arguments.quick)
    s.save()
    prepare(s)

    train(s, "reference", 4, s.steps)
    train_and_kill(s, "killed", 4)
    last = newest_checkpoint(s, "killed")
    at = int(last.name.split("-")[1])
    train(s, "resumed-on-4", 4, min(at + 2 * s.save_every, s.steps), last)
    train(s, "resumed-on-2", 2, s.switch_at, last)
    train(s, "resumed-on-3", 3, s.steps, newest_checkpoint(s, "resumed-on-2"))
    with stage("other weights of a stage that was trained on"):
        console.print(refuse_other_weights(s), style="yellow", highlight=False)

    with stage("compared with the run that was never killed"):
        good = report.compare_and_show(s, console)
    console.print(f"the whole demo: {time.monotonic() - begin:.0f} s; plot: {arguments.out / 'demo.png'}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
