"""Make the ASGI application of a server: the page, its health, the models, and the routes of molecules and files."""

# Annotations are values here and in the modules of routes: FastAPI reads them, and it is imported in functions alone.
import secrets
from typing import Any

from molgraph.base.errors import MolgraphError
from molgraph.base.version import __version__
from molgraph.serve import responses
from molgraph.serve import schemas as form
from molgraph.serve.file_routes import add_file_routes
from molgraph.serve.guard import Guard
from molgraph.serve.molecule_routes import add_molecule_routes
from molgraph.serve.page import page, policy
from molgraph.serve.service import Service


def make_app(service: Service) -> Any:
    """The application (``fastapi.FastAPI``) of a service that was started; ``/openapi.json`` describes it."""
    from fastapi import FastAPI, HTTPException
    from fastapi.exceptions import RequestValidationError

    app = FastAPI(
        title="molgraph",
        version=__version__,
        description="Predictions of molecules. Every error is an object `error` with `code`, `message` and `hint`.",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    app.add_middleware(Guard, limits=service.limits, token=service.token, local=service.local)
    app.add_exception_handler(MolgraphError, responses.refused)
    app.add_exception_handler(RequestValidationError, responses.invalid)
    for known in (404, 405, HTTPException):
        app.add_exception_handler(known, responses.other)
    app.add_exception_handler(Exception, responses.fault)
    _add_own_routes(app, service)
    add_molecule_routes(app, service)
    add_file_routes(app, service)
    return app


def _add_own_routes(app: Any, service: Service) -> None:
    from fastapi import Response
    from fastapi.responses import HTMLResponse

    engine = service.engine

    @app.get("/", include_in_schema=False)
    async def index() -> HTMLResponse:
        nonce = secrets.token_urlsafe(12)
        return HTMLResponse(page(nonce, bool(service.token)), headers={"Content-Security-Policy": policy(nonce)})

    @app.get("/health", responses=responses.said(503, answer=form.HealthAnswer))
    async def health() -> Response:
        """Whether a process that holds the models is up; 503 while it is started again."""
        up = engine.ready > 0
        answer = form.HealthAnswer(
            status="ok" if up else "restarting",
            models=len(engine.models),
            waiting=engine.waiting,
            version=__version__,
        )
        headers = {} if up else {"Retry-After": "5"}
        return Response(answer.model_dump_json(), 200 if up else 503, headers, media_type=responses.JSON)

    @app.get("/models", responses=responses.said(*responses.BOUNDS))
    async def models() -> form.ModelsAnswer:
        """The models, what each predicts and reads, and the limits."""
        answer = {"models": engine.models, "limits": vars(service.limits), "measured": service.measured is not None}
        return form.ModelsAnswer.model_validate(answer)
