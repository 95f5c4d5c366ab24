"""Short transactions on a real PostgreSQL, and what is told where it fails."""

import pytest
import structlog
from sqlalchemy import text
from sqlalchemy.engine import make_url

from app.database import DatabaseDown, DatabaseUrls, create_engine
from app.observability.metrics import Metrics
from app.setting_sections import DatabaseSettings
from app.transaction import Transactions
from tests.fixtures.postgres import TIMEOUT_MS

WRONG = "not-the-password"


async def test_what_the_server_says_is_told_once_and_to_operators_alone(database_urls: DatabaseUrls):
    """A refused connection is logged with the server's own line and without the password; whoever called hears no more than that it failed."""
    url = make_url(database_urls.registry).set(password=WRONG).render_as_string(hide_password=False)
    engine = create_engine(url, DatabaseSettings())
    transactions = Transactions(engine, Metrics(), call="test", timeout_ms=TIMEOUT_MS)
    with structlog.testing.capture_logs() as told:
        for _ in range(2):
            with pytest.raises(DatabaseDown) as down:
                await transactions.run(lambda connection: connection.execute(text("SELECT 1")))
            assert down.value.message == "PostgreSQL: OperationalError"
    await engine.dispose()

    (line,) = told
    assert (line["event"], line["log_level"], line["call"]) == ("database.down", "warning", "test")
    assert 'password authentication failed for user "sluice_registry"' in line["problem"]
    assert WRONG not in str(told)
