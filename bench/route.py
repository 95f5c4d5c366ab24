"""The second peer: a FastAPI route that reads nothing and answers a constant. Run under uvicorn as Sluice is."""

from fastapi import FastAPI

app = FastAPI()


@app.post("/decide")
async def decide() -> dict[str, bool]:
    """The constant."""
    return {"allow": True}
