"""Places in a bucket of moto for datasets that are written there, and what is compared with local ones."""

import json
import traceback
from pathlib import Path
from typing import Any

import penstock
import pytest
from penstock import Storage

boto3 = pytest.importorskip("boto3")

ACCESS, SECRET = "AKIDEXAMPLE", "Pa55word/with+odd=characters0000000000000"
SHARD_BYTES = 20_000


class Place:
    """A prefix of the bucket for one test."""

    def __init__(self, server: str, name: str) -> None:
        self.server, self.name = server, name
        self.url = f"s3://data/{name}"
        self.storage = Storage(endpoint=server, region="us-east-1")
        keys = {"aws_access_key_id": "access", "aws_secret_access_key": "secret", "region_name": "us-east-1"}
        self.client = boto3.client("s3", endpoint_url=server, **keys)

    def files(self) -> dict[str, bytes]:
        """All that is there, by name."""
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket="data", Prefix=f"{self.name}/")
        keys = [each["Key"] for page in pages for each in page.get("Contents", [])]
        return {
            key[len(self.name) + 1 :]: self.client.get_object(Bucket="data", Key=key)["Body"].read() for key in keys
        }

    def put(self, name: str, data: bytes) -> None:
        self.client.put_object(Bucket="data", Key=f"{self.name}/{name}", Body=data)

    def writer(self, **options: Any) -> penstock.Writer:
        options = {"storage": self.storage, "shard_size": SHARD_BYTES, **options}
        return penstock.Writer(self.url, fields={"token": "u2"}, metadata="json", **options)

    def uploads(self) -> list[str]:
        """Of objects here whose parts were begun and not ended."""
        keys = [each["Key"] for each in self.client.list_multipart_uploads(Bucket="data").get("Uploads", [])]
        return [key for key in keys if f"s3://data/{key}".startswith(f"{self.url}/")]


def tree(folder: Path) -> dict[str, bytes]:
    return {
        str(file.relative_to(folder)): file.read_bytes()
        for file in folder.rglob("*")
        if file.is_file() and not file.name.startswith(".")
    }


def plain(files: dict[str, bytes]) -> dict[str, bytes]:
    """With the shards' folders named as a local writer names them, and without dataset.json, which names them."""
    assert len({name.split("/")[0] for name in files}) == len({name.split("-")[0].split("/")[0] for name in files})
    return {f"{n.split('/')[0].split('-')[0]}/{n.split('/')[1]}": data for n, data in files.items() if "/" in n}


def without_names(manifest: bytes) -> Any:
    said = json.loads(manifest)
    del said["crc32c"]
    for each in said["shards"]:
        del each["name"]
    return said


def chain(error: BaseException) -> str:
    """All that a user may see of an error."""
    return "".join(traceback.format_exception(error)) + repr(error) + repr(error.__cause__) + repr(error.__context__)
