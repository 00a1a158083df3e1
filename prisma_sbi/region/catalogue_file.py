"""Opening a vehicle list: CSV in any of the encodings met in the wild, or a workbook."""

import csv
import io
import warnings
from pathlib import Path

import pandas as pd

from prisma_sbi._errors import InputDataError
from prisma_sbi._optional import optional_import

_BYTE_ORDER_MARK = "\ufeff"


def read_text_table(path: Path) -> tuple[pd.DataFrame, int]:
    """Read a table with every cell as text, and count the rows that have too many cells.

    Parameters
    ----------
    path
        ``.csv`` in UTF-8 (a byte-order mark is allowed) or latin-1, lines ended by LF, CR LF or
        CR alone; or ``.xlsx``, of which the first sheet is read.

    Returns
    -------
    table : pandas.DataFrame
        Column names without surplus blanks; empty cells are missing.
    n_malformed : int
        Rows left out.

    Raises
    ------
    InputDataError
        If the file is missing, empty, not a table, or of another kind.
    """
    if not path.is_file():
        raise InputDataError(f"Expected a vehicle list; got {path}, which does not exist.")
    if path.stat().st_size == 0:
        raise InputDataError(f"Expected a vehicle list in {path.name}; got an empty file.")
    if path.suffix.lower() == ".xlsx":
        table, n_malformed = _read_workbook(path), 0
    elif path.suffix.lower() in (".csv", ".txt"):
        table, n_malformed = _read_csv(path)
    else:
        raise InputDataError(
            f"Expected a vehicle list that ends in .csv or .xlsx; got {path.name!r}. Convert it."
        )
    table.columns = [" ".join(str(name).split()) for name in table.columns]
    return table, n_malformed


def _read_csv(path: Path) -> tuple[pd.DataFrame, int]:
    """Read comma-separated text; rows with more cells than columns are counted only."""
    content = path.read_bytes()
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        text = content.decode("latin-1")
    text = text.removeprefix(_BYTE_ORDER_MARK).replace("\r\n", "\n").replace("\r", "\n")
    try:
        rows = [row for row in csv.reader(io.StringIO(text)) if row]
    except csv.Error as error:
        raise InputDataError(
            f"Expected comma-separated rows in {path.name}; got {error}. Fetch it again."
        ) from error
    header, *body = rows or [[]]
    fitting = [row + [""] * (len(header) - len(row)) for row in body if len(row) <= len(header)]
    return pd.DataFrame(fitting, columns=header, dtype=str), len(body) - len(fitting)


def _read_workbook(path: Path) -> pd.DataFrame:
    """Read the first sheet of a workbook."""
    optional_import("openpyxl", extra="geo")
    with warnings.catch_warnings():
        # Styles and extensions that openpyxl does not know do not touch the cells.
        warnings.filterwarnings("ignore", category=UserWarning, module="openpyxl")
        try:
            return pd.read_excel(path, dtype=str, engine="openpyxl")
        except Exception as error:  # openpyxl raises whatever the damaged part happens to raise
            raise InputDataError(
                f"Expected a readable workbook; got {path.name}: {error}. Fetch it again."
            ) from error
