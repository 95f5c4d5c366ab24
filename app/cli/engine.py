"""`sluice engine`: the stand-in engine, for demonstrations, tests and benchmarks."""

from typing import TYPE_CHECKING, Annotated, Literal

import typer

if TYPE_CHECKING:
    from app.simulator.engine import EngineConfig

app = typer.Typer(help="The stand-in inference engine.")


@app.callback(invoke_without_command=True)
def engine(
    *,
    model: Annotated[list[str], typer.Option(help="id of the model it serves; further ones are aliases of it")],
    port: Annotated[int, typer.Option(min=1, max=65535, help="port to listen on")] = 9001,
    host: Annotated[str, typer.Option(help="address to listen on")] = "127.0.0.1",
    blocks: Annotated[int, typer.Option(min=1, help="KV blocks of the cache")] = 32_768,
    block_size: Annotated[int, typer.Option(min=1, help="tokens in one block")] = 16,
    max_num_seqs: Annotated[int, typer.Option(min=1, help="most sequences in one batch")] = 64,
    ttft_ms: Annotated[float, typer.Option(min=1, help="milliseconds from admission to the first token")] = 50.0,
    itl_ms: Annotated[float, typer.Option(min=1, help="milliseconds between two tokens")] = 10.0,
    kind: Annotated[
        Literal["vllm", "sglang", "llamacpp", "tgi", "triton", "trtllm"], typer.Option(help="whose metrics page it has")
    ] = "vllm",
    names: Annotated[Literal["v1", "v0"], typer.Option(help="names on vLLM's page: v1, or v0 for those before")] = "v1",
    gpu_memory_mib: Annotated[
        int | None,
        typer.Option(min=1, help="memory of its card, told at /dcgm/metrics as a DCGM exporter does; without it there is no card"),
    ] = None,
    gpu_uuid: Annotated[str, typer.Option(help="id of its card")] = "GPU-00000000-0000-4000-8000-000000000000",
    weights_mib: Annotated[int, typer.Option(min=1, help="memory of the model's weights")] = 15_360,
    kv_kib_per_token: Annotated[float, typer.Option(min=0.001, help="memory of one token in the KV cache")] = 128.0,
    preallocates: Annotated[
        bool,
        typer.Option(
            help="takes its whole cache as it starts; with --no-preallocates blocks take memory as they are used, and it may run out"
        ),
    ] = True,
    restart_ms: Annotated[float, typer.Option(min=0, help="how long it is down after it ran out of memory")] = 30_000.0,
) -> None:
    """Run one stand-in engine: OpenAI completions, an engine's metrics page, its batch over POST /control, faults over /faults and /load."""
    from app.simulator.device import Device
    from app.simulator.engine import EngineConfig

    try:
        device = Device(gpu_memory_mib, preallocates, weights_mib, kv_kib_per_token, gpu_uuid) if gpu_memory_mib else None
        config = EngineConfig(
            model[0],
            aliases=tuple(model[1:]),
            blocks=blocks,
            block_size=block_size,
            max_num_seqs=max_num_seqs,
            ttft_ms=ttft_ms,
            itl_ms=itl_ms,
            kind=kind,
            names=names,
            device=device,
            restart_ms=restart_ms,
        )
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    print(f"stand-in engine {', '.join(model)} on http://{host}:{port}", flush=True)
    _run(config, host, port)


def _run(config: "EngineConfig", host: str, port: int) -> None:
    import uvicorn

    from app.clock import SystemClock
    from app.simulator.completions import build_app
    from app.simulator.engine import Engine

    served = build_app(Engine(config, SystemClock()))
    uvicorn.run(served, host=host, port=port, log_level="warning", access_log=False, timeout_graceful_shutdown=1)
