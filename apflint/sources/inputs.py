"""Reads the sources that the arguments of a command name.

Commands, hooks and the language server get all their configurations from `read_inputs`. A source argument (`word`) names a
source, such as a path or a git revision. A source contains files with names and bytes. `_read_sources` lists the kinds
of sources.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING

from apflint.finding import SkippedDocuments
from apflint.load.source_text import GIT_PREFIX, STDIN
from apflint.sources.discovery import FoundFile, InputFile, discover_entries, discover_files, is_dangling
from apflint.sources.files import CONTEXT_REASON, ReadError, SourceFiles, is_same_file, join_sources, read_files
from apflint.sources.input_types import InputConfiguration, Inputs
from apflint.sources.source_arguments import BUILDERS, BUILT_IN_PREFIX, CLUSTER_PREFIX, suggest_word
from apflint.user_error import UserError
from apflint.wording import join_some, join_words, quote

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from apflint.sources.input_types import InputRequest
    from apflint.sources.kubectl import LiveConfiguration
    from apflint.sources.source_arguments import Words

    Track = Callable[[Sequence[FoundFile]], Iterable[FoundFile]]
    """Function that takes the files to read, and returns all or some of them. The function may show the progress."""


def read_inputs(request: InputRequest, track: Track = iter) -> Inputs:
    """Read the sources of an input request. Errors about sources and files are in `Inputs.errors`.

    If the purpose of the request is `analyze`, all sources are needed, so the first error is raised as UserError.
    UserError is also raised for contradictory source arguments, for an unknown cluster, and if git or the running
    cluster cannot be read.
    """
    if request.purpose == "analyze":
        return _read_configurations(request)
    if not request.clusters:
        return _read_manifests(request, track)
    from apflint.sources.files_by_cluster import read_clusters

    # Do not omit context files yet, because a context file of one cluster may be a manifest of another
    # cluster. `read_clusters` assigns the files to the clusters.
    return read_clusters(request, _read_sources(request, request.parsed, _read_paths(request, (), track)))


def _read_sources(request: InputRequest, words: Words, *files: SourceFiles) -> SourceFiles:
    """Return the files of the built sources and of the git revisions in `words`, followed by `files`.

    The manifests of a built source are the output of a program, such as Kustomize for
    `kustomize:overlays/prod`. The order matters, because the last definition of an object is effective.
    """
    return join_sources(
        (
            *(_read_built(request, word) for word in words.built),
            *(_read_revision(request, word) for word in words.revisions),
            *files,
        )
    )


def _read_built(request: InputRequest, word: str) -> SourceFiles:
    """Return the objects of a source argument that a program has to build, such as `kustomize:overlays/prod`."""
    module = next(module for prefix, module in BUILDERS.items() if word.startswith(prefix))
    try:
        return import_module(module).read_source(request, word)  # type: ignore[no-any-return]  # see `BUILDERS`
    except UserError as error:
        return SourceFiles(errors=(ReadError(str(error)),))


def _read_revision(request: InputRequest, word: str) -> SourceFiles:
    from apflint.sources.git import read_revision

    return read_revision(word, (), request.settings.exclude)


def _read_paths(request: InputRequest, context: tuple[str, ...], track: Track) -> SourceFiles:
    """Return the files below the paths of an input request, except the baseline file and files below `context`."""
    exclude = request.settings.exclude
    entries = list(discover_entries(request.paths, exclude, request.force_exclude))
    skipped = [entry for entry in entries if isinstance(entry, SkippedDocuments)]
    found = [entry for entry in entries if isinstance(entry, FoundFile)]
    found = [file for file in found if not _is_baseline(request, file)]
    if context:
        others = {os.path.realpath(file.path) for file in discover_files(context, exclude) if not file.problem}
        is_context = [not file.problem and os.path.realpath(file.path) in others for file in found]
        skipped += (
            SkippedDocuments(file.name, CONTEXT_REASON)
            for file, is_other in zip(found, is_context, strict=True)
            if is_other
        )
        found = [file for file, is_other in zip(found, is_context, strict=True) if not is_other]
    read = read_files(track(found))
    if request.stdin_filename:
        files = (file._replace(name=request.stdin_filename) if file.name == STDIN else file for file in read.files)
        read = read._replace(files=tuple(files))
    return read._replace(skipped=(*skipped, *read.skipped))


def _read_manifests(request: InputRequest, track: Track) -> Inputs:
    """Read the manifests for a command that checks or edits manifests but reads no clusters in the settings."""
    words = request.parsed
    found = discover_files(request.context, request.settings.exclude)
    context = read_files(track([file for file in found if not _is_baseline(request, file)]))
    live = _read_running_cluster(request, words)
    read = _read_sources(request, words, _read_paths(request, request.context, track))
    if live is not None and not words.has_manifests:
        objects = (InputFile.from_bytes(name, name, data, may_hold_apf=True) for name, data in live.files)
        read = read._replace(files=(*objects, *read.files))
    files: dict[str, InputFile] = {}
    for file in read.files:
        if file.name in files and request.purpose == "fix":
            raise UserError(f'"{file.name}" names both standard input and a file. Fix them in two separate runs')
        if file.name not in files or file.path == "-":  # standard input replaces the file that --stdin-filename names
            files[file.name] = file
    settings = request.settings if words.release is None else request.settings._replace(kubernetes=words.release)
    further = {file.name: file for file in context.files}
    whole = InputConfiguration("", settings, tuple(files), tuple(further), words, live)
    return Inputs(
        request,
        tuple(_split_by_built(whole)) if len(words.built) > 1 and live is None else (whole,),
        {**further, **files},
        tuple(files),
        read.skipped,
        (*context.errors, *read.errors),
        (*context.notes, *read.notes),
        kustomizations=words.kustomizations,
    )


def _split_by_built(whole: InputConfiguration) -> Iterator[InputConfiguration]:
    """Yield a configuration for each source that a program builds, such as a kustomization.

    Each configuration consists of the objects of one such source, and of all files that no program builds.
    """
    from apflint.sources.build_commands import name_rendered

    names = {word: name_rendered(word.partition(":")[2]) for word in whole.words.built}
    for word, name in names.items():
        members = tuple(file for file in whole.members if file == name or file not in names.values())
        yield whole._replace(name=word, members=members, words=whole.words._replace(built=(word,)))


def _read_running_cluster(request: InputRequest, words: Words) -> LiveConfiguration | None:
    if not words.is_live:
        return None
    from apflint.sources.kubectl import KubectlOptions, read_live_configuration

    return request.recorded or read_live_configuration(request.kubectl or KubectlOptions(), request.kubernetes)


def _read_configurations(request: InputRequest) -> Inputs:
    """Read the configurations to analyze.

    If the run reads clusters of the settings, each cluster is a configuration. Otherwise, each source
    that a program builds is a configuration, together with the files that no program builds. Without
    clusters and built sources, all sources together are the only configuration.
    """
    words = request.parsed
    named = (*map(CLUSTER_PREFIX.__add__, words.clusters), *words.built)
    if len(named) > 1 and request.is_single:
        raise UserError(f"{join_words(named, 'and')} are {len(named)} clusters: name one")
    clusters = request.clusters
    if len(clusters) > 1 and request.is_single:
        raise select_one_cluster(clusters)
    choices = [words._replace(clusters=(name,)) for name in clusters]
    choices = choices or [words._replace(built=(word,)) for word in words.built] or [words]
    read = [_read_configuration(request, choice) for choice in choices]
    files = {file.name: file for _, source in read for file in source.files}
    configurations = tuple(configuration for configuration, _ in read)
    return Inputs(request, configurations, files, tuple(files))


def select_one_cluster(names: Iterable[str]) -> UserError:
    """Return the error of a command that analyzes one cluster, if the settings define several clusters.

    `names` are the names of these clusters.
    """
    from apflint.settings.clusters import MAX_NAMED_CLUSTERS

    listed = join_some([*names], MAX_NAMED_CLUSTERS)
    return UserError(f"the settings define the clusters {listed}: select one with --cluster NAME")


def _read_configuration(request: InputRequest, words: Words) -> tuple[InputConfiguration, SourceFiles]:
    """Return the configuration that `words` name, and its files.

    Raises UserError for the first source or file that cannot be read.
    """
    if words.release is not None and not request.defaults:
        raise UserError(f"--no-defaults and {BUILT_IN_PREFIX}{words.release.name} cannot be combined")
    cluster, settings = None, request.settings
    if words.clusters:
        from apflint.settings.clusters import apply_cluster, find_cluster

        cluster = find_cluster(settings, words.clusters[0])
        settings = apply_cluster(settings, cluster)
    if words.release is not None:
        settings = settings._replace(kubernetes=words.release)
    own = () if cluster is None else (*settings.context, *cluster.included_paths(settings.exclude))
    paths = request.paths if cluster is None else words.paths
    found = discover_files((*(() if words.revisions else own), *paths), settings.exclude)
    if request.ignored:
        found = (file for file in found if os.path.realpath(file.path) not in request.ignored)
    files = read_files(found)
    if cluster is None:
        read = _read_sources(request, words, files)
    elif words.revisions or cluster.is_rendered:
        from apflint.sources.built_clusters import read_cluster_of_revision, read_rendered_cluster

        copies = (read_cluster_of_revision(request, settings, cluster, word, own) for word in words.revisions)
        read = join_sources(
            (*copies, *(() if words.revisions else (read_rendered_cluster(request, settings, cluster),)), files)
        )
    else:
        read = files
    notes = (*read.notes, *_require_all(request, words, read.errors))
    names = tuple(file.name for file in read.files)
    context = tuple(name for name in names if cluster is not None and _is_below(name, settings.context))
    members = tuple(name for name in names if name not in context)
    live = _read_running_cluster(request, words)
    name = "" if cluster is None else cluster.name
    configuration = InputConfiguration(
        name, settings, members, context, words, live, request.defaults, read.skipped, notes
    )
    return configuration, read


def _require_all(request: InputRequest, words: Words, errors: Iterable[ReadError]) -> Iterator[str]:
    """Raise UserError for the first error about a needed file or source. Yield a clause about each other error.

    A file that the user named is always needed. Any other file is not needed if it is a link without a target, or if
    the user analyzes a log.
    """
    is_default = not request.words and not words.clusters
    for message, file in errors:
        if file is None:
            raise UserError(message)
        is_named = file.path in words.paths
        # `request.ignored` contains files that the user analyzes, such as a log. If the user then names no manifests,
        # apflint also reads the current directory. An unreadable file in this directory is not an error.
        is_unrelated = is_default and bool(request.ignored)
        if not is_named and (is_unrelated or is_dangling(file.path)):
            yield f"{message} apflint ignores the file"
            continue
        owner = f"cluster {quote(words.clusters[0])}: " if words.clusters and not is_named else ""
        hint = "" if os.path.lexists(file.path) else suggest_word(file.path, request.cluster_names)
        raise UserError(f"{owner}{message}{hint}")


def _is_below(name: str, roots: Iterable[str]) -> bool:
    """Return whether the file `name` is one of the paths in `roots`, or is inside one of these directories.

    If the file is in a git revision, its path in the repository is compared.
    """
    path = name.split(":", 2)[2] if name.startswith(GIT_PREFIX) else name
    normal = (os.path.normpath(root) for root in roots)
    return any(path == root or path.startswith(f"{root}/") or root == "." for root in normal)


def _is_baseline(request: InputRequest, file: FoundFile) -> bool:
    """Return whether a file is the baseline file of the run."""
    return request.baseline is not None and is_same_file(request.baseline, file.path)
