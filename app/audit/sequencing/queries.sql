-- What the process of the log asks PostgreSQL, as sluice_sequencer. Comments go to the server with their statement.

-- name: lock_head
-- Where the log ends. Whoever holds this lock adds to it; anybody else waits here, or sees what was added.
SELECT log, size, chain, frontier FROM audit.head FOR UPDATE

-- name: waits
-- The oldest row, if anything is to do: a look that locks nothing, and by the index, since the table is full of rows that are gone.
SELECT id FROM audit.intake ORDER BY id LIMIT 1

-- name: take
-- The oldest rows of the intake, taken out of it: at least one, and no more once they have so many bytes.
-- A writer with wrong ideas of time may name an instant that no calendar has.
WITH oldest AS (
  SELECT id, octet_length(body) AS bytes FROM audit.intake ORDER BY id LIMIT %(most)s
), sized AS (
  SELECT id, sum(bytes) OVER (ORDER BY id) - bytes AS before FROM oldest
), taken AS (
  DELETE FROM audit.intake WHERE id = ANY (ARRAY(SELECT id FROM sized WHERE before < %(most_bytes)s))
  RETURNING id, retention, recorded, body
)
SELECT id, retention,
  CASE WHEN recorded BETWEEN '2000-01-01Z' AND '2999-12-31Z' THEN recorded END AS recorded,
  body
FROM taken ORDER BY id

-- name: known
-- Which of these ids the log has already.
SELECT id, seq, leaf_hash FROM audit.leaf WHERE id = ANY (%(ids)s)

-- name: make_shelf
-- A place for the bodies of one retention class and month; nothing where it is there.
SELECT audit.make_shelf(%(retention)s, %(month)s)

-- name: copy_leaves
-- New leaves, after all that are there.
COPY audit.leaf (seq, id, recorded, retention, body_hash, leaf_hash, chain_hash) FROM STDIN (FORMAT BINARY)

-- name: copy_bodies
-- Their bodies; PostgreSQL finds each one's shelf.
COPY audit.body (shelf, seq, recorded, kind, tenant, model, subject, decision, body) FROM STDIN (FORMAT BINARY)

-- name: copy_subtrees
-- The subtrees that they complete.
COPY audit.subtree (level, index, hash) FROM STDIN (FORMAT BINARY)

-- name: move_head
-- The new end of the log. A trigger refuses any step back.
UPDATE audit.head SET size = %(size)s, chain = %(chain)s, frontier = %(frontier)s

-- name: try_lead
-- Whether this session leads from now on, or another does.
SELECT pg_try_advisory_lock(%(lock)s)

-- name: tend
-- Shows that whoever leads gets on, for as long as this session lives; shared, since our last one may not be gone yet.
SELECT pg_advisory_lock_shared(%(lock)s)

-- name: root
-- The certificate under which the log was begun: it has that one for ever.
SELECT der FROM audit.certificate WHERE role = 'root' ORDER BY added, fingerprint LIMIT 1

-- name: head
-- Where the log ends, and the newest checkpoint of it.
SELECT log, head.size, frontier, newest.size AS signed, note
FROM audit.head LEFT JOIN (SELECT size, note FROM audit.checkpoint ORDER BY size DESC LIMIT 1) AS newest ON true

-- name: add_certificate
-- One certificate, where the log does not have it yet, with the newest of its role that it has.
WITH before AS (
  SELECT der FROM audit.certificate WHERE role = %(role)s ORDER BY added DESC LIMIT 1
), added AS (
  INSERT INTO audit.certificate (fingerprint, role, der, added) VALUES (%(fingerprint)s, %(role)s, %(der)s, %(added)s)
  ON CONFLICT DO NOTHING RETURNING fingerprint
)
SELECT (SELECT der FROM before) AS before FROM added

-- name: add_checkpoint
-- One checkpoint; of two for one size the first stays.
INSERT INTO audit.checkpoint (size, note, signed) VALUES (%(size)s, %(note)s, %(signed)s) ON CONFLICT DO NOTHING
