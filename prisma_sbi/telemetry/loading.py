"""Columns of a CSV or Parquet file as they stand there, broken lines told apart."""

import csv
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from prisma_sbi._errors import InputDataError
from prisma_sbi.telemetry.columns import EVED_CHANNELS, VED_CHANNELS

_NULLS = ["", "NaN", "nan", "-nan", "NA", "null", "NULL", "None"]


def column_names_of(file: Path) -> list[str]:
    """Column names of a file, without reading its rows."""
    if not file.is_file():
        raise InputDataError(f"Expected a file of trips; got {str(file)!r}. Check the path.")
    if file.stat().st_size == 0:
        raise InputDataError(f"Expected trips in {file.name}; got an empty file. Remove it.")
    try:
        if _is_parquet(file):
            names = list(pyarrow.parquet.read_schema(file).names)
        else:
            with file.open("rb") as stream:
                header = stream.readline().decode("utf-8-sig").rstrip("\r\n")
            names = next(csv.reader([header]), [])
    except (pa.ArrowException, OSError, UnicodeDecodeError, csv.Error) as error:
        raise _unreadable(file, error) from error
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise InputDataError(
            f"Expected each column once in {file.name}; got {', '.join(twice)} several times. "
            "Rename or remove them."
        )
    return names


def load_columns(file: Path, columns: Sequence[str]) -> tuple[dict[str, pd.Series], list[str]]:
    """Columns by name, and a note on each line with too few or too many fields."""
    malformed: list[str] = []
    try:
        if _is_parquet(file):
            table = pyarrow.parquet.read_table(file, columns=list(columns))
        else:
            table = _load_csv(file, list(columns), malformed)
    except (pa.ArrowException, OSError) as error:
        raise _unreadable(file, error) from error
    series: dict[str, pd.Series] = {}
    for name in columns:
        column = table.column(name)
        if pa.types.is_binary(column.type):
            raise _unreadable(file, f"text that is not UTF-8 in the column {name!r}")
        series[name] = pd.Series(column.to_pandas(), name=name)
    return series, malformed


def _is_parquet(file: Path) -> bool:
    """Whether the name says Parquet; anything else is taken for CSV."""
    return file.suffix.lower() in (".parquet", ".pq")


def _unreadable(file: Path, error: object) -> InputDataError:
    """The one sentence for files that do not open."""
    return InputDataError(
        f"Expected a CSV or Parquet file of trips in {file.name}; got {error}. "
        "Download or export it again."
    )


def _load_csv(file: Path, columns: list[str], malformed: list[str]) -> pa.Table:
    """CSV as numbers or, if a field of it is no number, all of it as text."""

    def note(row: pyarrow.csv.InvalidRow) -> str:
        malformed.append(f"line {row.number}: {row.text[:80]!r}")
        return "skip"

    def read(column_types: dict[str, pa.DataType]) -> pa.Table:
        malformed.clear()
        return pyarrow.csv.read_csv(
            file,
            read_options=pyarrow.csv.ReadOptions(use_threads=False),
            parse_options=pyarrow.csv.ParseOptions(invalid_row_handler=note),
            convert_options=pyarrow.csv.ConvertOptions(
                column_types=column_types,
                include_columns=columns,
                null_values=_NULLS,
                strings_can_be_null=True,
            ),
        )

    known = {**VED_CHANNELS, **EVED_CHANNELS}
    try:
        return read({name: pa.float64() for name in columns if name in known})
    except pa.ArrowInvalid:
        return read(dict.fromkeys(columns, pa.string()))
