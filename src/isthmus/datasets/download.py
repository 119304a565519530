"""Download files, check them and keep them."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

from isthmus.errors import ArgumentError, DownloadError, MissingExtraError


def fetch(url: str, *, sha256: str, folder: str | Path | None = None) -> Path:
    """Download a file once, check its checksum and return its path.

    If the file is already in the folder and has this checksum, it is not downloaded again, so the
    second call works offline.

    Parameters
    ----------
    url
        Address of the file: ``http://…`` or ``https://…``.
    sha256
        Its SHA-256 checksum, 64 hexadecimal digits. The source of the data should publish it;
        otherwise compute it from a copy that you trust, for example by ``sha256sum FILE``.
    folder
        Folder to keep the file in. By default the cache folder of the operating system for
        ``isthmus``.

    Returns
    -------
    Path
        The file, whose name ends as that in the address.

    Raises
    ------
    DownloadError
        If the file cannot be downloaded, or has a different checksum. No file is kept then.
    """
    digest = str(sha256).strip().lower()
    if not re.fullmatch(r"[0-9a-f]{64}", digest):
        raise ArgumentError(
            f"sha256 is {sha256!r}; it must be the 64 hexadecimal digits of a SHA-256 checksum."
        )
    address = urlsplit(url)
    if address.scheme not in {"http", "https"} or not address.netloc:
        raise ArgumentError(f"url is {url!r}; it must begin with http:// or https://.")
    try:
        import pooch
        from requests import HTTPError, RequestException
    except ImportError:
        raise MissingExtraError("pooch", "datasets", "fetch()") from None
    place = Path(pooch.os_cache("isthmus") if folder is None else folder)
    # A checksum in the name keeps apart files that are called alike.
    name = re.sub(r"[^\w.-]", "_", unquote(address.path).rpartition("/")[2]) or "file"
    path = place.expanduser().resolve() / f"{digest[:12]}-{name}"

    def download(source: str, output: str, _: object) -> None:
        pooch.HTTPDownloader()(source, output, None)
        actual = pooch.file_hash(output)
        if actual != digest:
            raise DownloadError(
                f"{source} has the SHA-256 checksum {actual}, not {digest}: the file has changed "
                "or was damaged on its way. Use it only if its source confirms the new checksum."
            )

    try:
        pooch.retrieve(url, f"sha256:{digest}", path.name, path.parent, downloader=download)
    except HTTPError as error:
        if error.response is not None:
            error.response.close()  # pooch leaves it open
        raise DownloadError(
            f"{url} cannot be downloaded: the server answers {error}. Check the address, or save "
            f"the file as {path} by hand."
        ) from None
    except RequestException as error:
        raise DownloadError(
            f"{url} cannot be downloaded ({type(error).__name__}). Check the connection and the "
            f"proxy, or copy the file from another computer to {path}."
        ) from None
    return path
