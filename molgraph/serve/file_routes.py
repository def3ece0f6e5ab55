"""Add the routes of files: upload one, ask how far it is, fetch the result, delete it."""

from typing import Annotated, Any
from urllib.parse import quote

from molgraph.base.printable import printable
from molgraph.serve import schemas as form
from molgraph.serve.job import ENDINGS, Job
from molgraph.serve.refusal import RefusedError
from molgraph.serve.responses import BOUNDS, said
from molgraph.serve.service import Service

BYTES = "application/octet-stream"
_BODY = {"required": True, "content": {BYTES: {"schema": {"type": "string", "format": "binary"}}}}


def add_file_routes(app: Any, service: Service) -> None:
    """Add them to a FastAPI application."""
    from fastapi import Path, Query, Request, Response
    from fastapi.responses import FileResponse

    jobs = service.jobs
    ModelName = Annotated[str, Path(description="As /models lists it.")]
    JobId = Annotated[str, Path(description="As the upload's answer has it.")]
    Name = Annotated[str, Query(description=f"The file's name; ends in {', '.join(ENDINGS)}.", max_length=200)]
    Column = Annotated[str | None, Query(description="Its column of SMILES, or of ids; found if not given.")]
    Keep = Annotated[bool, Query(description="Write the file's own columns before the predictions.")]

    @app.post(
        "/models/{model}/jobs",
        status_code=202,
        responses=said(404, 415, 429, *BOUNDS),
        openapi_extra={"requestBody": _BODY},
    )
    async def upload(
        request: Request,
        response: Response,
        model: ModelName,
        name: Name = "upload.csv",
        smiles: Column = None,
        id: Column = None,
        keep_columns: Keep = False,
    ) -> form.JobAnswer:
        """Upload a file, whose bytes are the body; each of its rows becomes a row of the result, in order."""
        columns = {key: value for key, value in (("smiles", smiles), ("id", id)) if value}
        how = {"keep_columns": keep_columns, "columns": columns}
        job = await jobs.add(request.stream(), service.known(model), printable(name), **how)
        response.headers["Location"] = f"/jobs/{job.id}"
        return _told(job, service)

    @app.get("/jobs/{job}", responses=said(404, *BOUNDS))
    async def state(job: JobId) -> form.JobAnswer:
        """How far a file is."""
        return _told(jobs.find(job), service)

    @app.get(
        "/jobs/{job}/result",
        response_class=FileResponse,
        responses=said(404, 409, *BOUNDS) | {200: {"description": "The result.", "content": {BYTES: {}}}},
    )
    async def result(job: JobId) -> FileResponse:
        """The result of a file, with the columns that `molgraph predict` writes."""
        record = jobs.find(job)
        if record.state != "done":
            words = f"the file is not predicted: it is {record.state}"
            raise RefusedError(409, "not-done", words, hint=f"ask for /jobs/{record.id} until its state is done")
        record.fetched = True
        name = quote(f"{record.name.rpartition('.')[0] or 'molecules'}-predicted{record.out.suffix}")
        shown = {"Content-Disposition": f"attachment; filename*=utf-8''{name}"}
        return FileResponse(record.out, media_type=BYTES, headers=shown)

    @app.delete("/jobs/{job}", status_code=204, responses=said(404, *BOUNDS))
    async def remove(job: JobId) -> Response:
        """Stop a file's prediction and forget it."""
        jobs.remove(job)
        return Response(status_code=204)


def _told(job: Job, service: Service) -> form.JobAnswer:
    shown = {"id": job.id, "model": job.model, "name": job.name, "state": job.state, "rows": job.rows}
    more = {"failed": job.failed, "reasons": job.reasons, "error": job.error}
    return form.JobAnswer.model_validate({**shown, **more, "rows_done": service.jobs.rows_done(job)})
