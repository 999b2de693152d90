-- A notification is written once. Whether it still waits, and what became of it, stands beside it in small rows.
--
-- A state in the notification's own row made each change write its body again, a kilobyte and a half, and its place in
-- the index of the hashes, where no two neighbours come one after the other.
--
-- Each notification is in exactly one of the two tables. Both are only ever written together with each other, or with
-- the notification; there are no foreign keys, since no notification is ever deleted, and a check for each row would
-- cost more than the row.
--
-- Lock order: the notification, then its outcome, then its place among those that wait.

-- What is to be applied, and nothing else. A row goes in the transaction that applies it.
CREATE TABLE waiting_notifications (
    id          bigint PRIMARY KEY,
    received_at timestamptz NOT NULL,
    -- How often it was tried, and failed or was applied, before somebody had it applied again.
    attempts    integer NOT NULL DEFAULT 0 CHECK (attempts >= 0)
);
-- Rows come at one end and go at the other: what has gone is cleared away often, so that the search for the first one
-- doesn't pass over it.
ALTER TABLE waiting_notifications SET (
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000, autovacuum_vacuum_cost_delay = 0);

CREATE TABLE notification_outcomes (
    id           bigint PRIMARY KEY,
    state        text NOT NULL CHECK (state IN ('applied','parked','ignored','dead')),
    event        text,
    execution_id uuid,
    attempts     integer NOT NULL CHECK (attempts >= 0),
    error        text,
    -- Null for one that is dead.
    applied_at   timestamptz
);

INSERT INTO waiting_notifications (id, received_at, attempts)
    SELECT id, received_at, attempts FROM notifications WHERE state = 'received' ORDER BY id;
INSERT INTO notification_outcomes (id, state, event, execution_id, attempts, error, applied_at)
    SELECT id, state, event, execution_id, attempts, error, applied_at FROM notifications
    WHERE state <> 'received' ORDER BY id;

-- What waits for its execution.
CREATE INDEX notification_outcomes_parked ON notification_outcomes (execution_id) WHERE state = 'parked';
-- What should empty: counted, listed, and brought back.
CREATE INDEX notification_outcomes_open ON notification_outcomes (state, id) WHERE state IN ('parked','dead');

-- Their indexes, and the rule that what isn't dealt with keeps its body, go with them; the rule comes back below.
ALTER TABLE notifications DROP COLUMN state, DROP COLUMN event, DROP COLUMN execution_id, DROP COLUMN attempts,
    DROP COLUMN error, DROP COLUMN applied_at;

-- Both as one, for lists and for people.
CREATE VIEW notification_states AS
    SELECT id, 'received'::text AS state, NULL::text AS event, NULL::uuid AS execution_id, attempts,
        NULL::text AS error, NULL::timestamptz AS applied_at
    FROM waiting_notifications
    UNION ALL
    SELECT id, state, event, execution_id, attempts, error, applied_at FROM notification_outcomes;

-- What wasn't applied, or could not be, keeps its body: it may have to be applied again.
CREATE FUNCTION keep_body_that_is_needed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM notification_states WHERE id = NEW.id AND state IN ('received','dead')) THEN
        RAISE EXCEPTION 'the body of notification % is still needed', NEW.id USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER notifications_keep_body BEFORE UPDATE OF body ON notifications FOR EACH ROW
    WHEN (NEW.body IS NULL) EXECUTE FUNCTION keep_body_that_is_needed();

-- Indexes that cost a write each time and are never read.
DROP INDEX events_checkout;
-- An execution is of a checkout or of a charge, and has no place in the index of the others.
ALTER TABLE executions DROP CONSTRAINT executions_checkout_id_ordinal_key;
ALTER TABLE executions DROP CONSTRAINT executions_charge_id_ordinal_key;
CREATE UNIQUE INDEX executions_of_checkout ON executions (checkout_id, ordinal) WHERE checkout_id IS NOT NULL;
CREATE UNIQUE INDEX executions_of_charge ON executions (charge_id, ordinal) WHERE charge_id IS NOT NULL;
-- A status in an index's condition makes each change of it write into all indexes of the table.
DROP INDEX checkouts_personal_data;
CREATE INDEX checkouts_personal_data ON checkouts (expires_at) WHERE personal_data_removed_at IS NULL;

-- Payloads that are to be dropped, found without looking over every execution that ever had one.
CREATE INDEX executions_payload ON executions (created_at) WHERE init_data IS NOT NULL;
