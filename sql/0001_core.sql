-- The first schema: keys, checkouts, executions with their facts, operations, notifications, the feed.
--
-- Integrity is the database's: UNIQUE for what may happen once, CHECK for ranges and legal states. Times are
-- timestamptz (microseconds) for our own clock; what the provider stamps keeps its nanoseconds in two columns.
-- Lock order, everywhere: advisory lock of an execution, then its checkout row, then executions, then operations.

CREATE TABLE schema_migrations (
    version    integer PRIMARY KEY,
    name       text NOT NULL,
    applied_at timestamptz NOT NULL
);

CREATE TABLE merchant_keys (
    id           uuid PRIMARY KEY,
    name         text NOT NULL UNIQUE CHECK (length(name) BETWEEN 1 AND 128),
    key_hash     bytea NOT NULL UNIQUE CHECK (length(key_hash) = 32),
    scopes       text[] NOT NULL CHECK (scopes <@ ARRAY['checkouts','payments','subscriptions','instruments','ops']),
    created_at   timestamptz NOT NULL,
    last_used_at timestamptz,
    revoked_at   timestamptz
);

CREATE TABLE checkouts (
    id                      uuid PRIMARY KEY,
    merchant_reference      text NOT NULL,
    holder_reference        text NOT NULL,
    workflow_code           text NOT NULL,
    status                  text NOT NULL
        CHECK (status IN ('open','processing','paid','failed','expired','cancelled','refunded')),
    amount_minor            bigint NOT NULL CHECK (amount_minor BETWEEN 1 AND 999999999999999),
    currency                text NOT NULL CHECK (currency ~ '^[A-Z]{3}$'),
    amount_version          bigint NOT NULL CHECK (amount_version >= 1),
    amount_state            text NOT NULL CHECK (amount_state IN ('inStep','moving','unknown')),
    basket_version          text CHECK (length(basket_version) <= 128),
    client_may_update       boolean NOT NULL,
    minimum_minor           bigint CHECK (minimum_minor >= 0),
    maximum_minor           bigint CHECK (maximum_minor >= minimum_minor),
    allowed_payment_methods text[],
    meta                    jsonb,
    -- Who asked for it and under which key, so that the same request goes on where it stopped.
    created_by              uuid NOT NULL,
    creation_key            text NOT NULL,
    current_execution_id    uuid,
    -- The execution that paid. Set once, never changed (M1); a trigger holds it.
    kept_execution_id       uuid,
    lease_execution_id      uuid,
    lease_until             timestamptz,
    -- A definite refusal of the first session frees the reference for another checkout.
    released_at             timestamptz,
    created_at              timestamptz NOT NULL,
    expires_at              timestamptz NOT NULL,
    -- When time alone changes something: expiry, a failure that settles, a lease that ends.
    due_at                  timestamptz,
    CHECK ((lease_execution_id IS NULL) = (lease_until IS NULL)),
    CHECK (kept_execution_id IS NULL OR status IN ('paid','cancelled','refunded')),
    CHECK (status NOT IN ('paid','refunded') OR kept_execution_id IS NOT NULL)
);
-- One checkout per order.
CREATE UNIQUE INDEX checkouts_merchant_reference ON checkouts (merchant_reference) WHERE released_at IS NULL;
CREATE INDEX checkouts_due ON checkouts (due_at) WHERE due_at IS NOT NULL;

CREATE FUNCTION keep_paying_execution() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the execution that paid checkout % is not replaced', OLD.id USING ERRCODE = 'check_violation';
END $$;
CREATE TRIGGER checkouts_kept_once BEFORE UPDATE OF kept_execution_id ON checkouts FOR EACH ROW
    WHEN (OLD.kept_execution_id IS NOT NULL AND NEW.kept_execution_id IS DISTINCT FROM OLD.kept_execution_id)
    EXECUTE FUNCTION keep_paying_execution();

CREATE TABLE client_tokens (
    token_hash  bytea PRIMARY KEY CHECK (length(token_hash) = 32),
    id          uuid NOT NULL UNIQUE,
    checkout_id uuid NOT NULL REFERENCES checkouts,
    created_at  timestamptz NOT NULL,
    expires_at  timestamptz NOT NULL
);
CREATE INDEX client_tokens_expiry ON client_tokens (expires_at);

CREATE TABLE executions (
    -- The provider's own id.
    id                  uuid PRIMARY KEY,
    checkout_id         uuid NOT NULL REFERENCES checkouts,
    ordinal             integer NOT NULL CHECK (ordinal >= 1),
    workflow_code       text NOT NULL,
    merchant_reference  text NOT NULL UNIQUE,
    state               text NOT NULL CHECK (state IN ('created','processing','needsCustomer','authorized',
        'partiallyCaptured','captured','partiallyRefunded','refunded','cancelled','failed','unknown')),
    -- The amount that the provider confirmed for it.
    amount_minor        bigint NOT NULL CHECK (amount_minor >= 0),
    currency            text NOT NULL CHECK (currency ~ '^[A-Z]{3}$'),
    -- What the facts add up to; kept so that a change can be seen, and so that a report needs no fold.
    authorized_minor    bigint CHECK (authorized_minor >= 0),
    captured_minor      bigint CHECK (captured_minor >= 0),
    refunded_minor      bigint CHECK (refunded_minor >= 0),
    -- What the payload hands the app; a secret that is dropped when it is no longer fresh.
    init_version        text,
    init_data           text,
    cancel_reason       text CHECK (cancel_reason IN ('duplicate','mismatch','checkoutCancelled','requested')),
    cancel_reported     boolean NOT NULL DEFAULT false,
    created_at          timestamptz NOT NULL,
    -- When the provider is asked next; null when nothing is to come.
    check_at            timestamptz,
    checks              integer NOT NULL DEFAULT 0,
    changed_at          timestamptz NOT NULL,
    UNIQUE (checkout_id, ordinal)
);
CREATE INDEX executions_check ON executions (check_at) WHERE check_at IS NOT NULL;

-- No foreign key to executions: what is told of an execution that isn't known yet waits here for it.
CREATE TABLE facts (
    execution_id        uuid NOT NULL,
    identity            bytea NOT NULL CHECK (length(identity) = 16),
    kind                text NOT NULL CHECK (kind IN ('status','action','payment','dispute')),
    code                text,
    action              text,
    action_id           text,
    phase               text CHECK (phase IN ('requested','pending','completed')),
    success             boolean,
    amount_minor        bigint CHECK (amount_minor >= 0),
    captured_minor      bigint CHECK (captured_minor >= 0),
    refunded_minor      bigint CHECK (refunded_minor >= 0),
    currency            text CHECK (currency ~ '^[A-Z]{3}$'),
    reason              text,
    action_required     text,
    payment_id          text,
    payment_method_code text,
    instrument_id       text,
    dispute_id          text,
    at_seconds          bigint NOT NULL,
    at_nanoseconds      integer NOT NULL CHECK (at_nanoseconds BETWEEN 0 AND 999999999),
    source              text NOT NULL CHECK (source IN ('notification','read','answer','report')),
    learned_at          timestamptz NOT NULL,
    PRIMARY KEY (execution_id, identity)
);

CREATE TABLE operations (
    id               uuid PRIMARY KEY,
    kind             text NOT NULL CHECK (kind IN ('createSession','moveAmount','capture','cancel','refund')),
    checkout_id      uuid NOT NULL REFERENCES checkouts,
    execution_id     uuid,
    workflow_code    text NOT NULL,
    -- Under which the provider keeps the answer. One intent, one key (M12).
    idempotency_key  uuid NOT NULL UNIQUE,
    state            text NOT NULL
        CHECK (state IN ('prepared','sent','acknowledged','succeeded','failed','unknown')),
    amount_minor     bigint CHECK (amount_minor >= 0),
    currency         text CHECK (currency ~ '^[A-Z]{3}$'),
    final_capture    boolean,
    intent_reason    text,
    -- Which request of the shop's asked for it, so that the same request sent again finds it.
    requested_by     uuid,
    request_key      text,
    basket_version   text,
    -- The number of the session that a createSession makes.
    ordinal          integer,
    action_id        text,
    reason           text,
    attempts         integer NOT NULL DEFAULT 0,
    created_at       timestamptz NOT NULL,
    sent_at          timestamptz,
    finished_at      timestamptz,
    -- Who works on it, until when; the effect checks the owner.
    lease_owner      uuid,
    lease_until      timestamptz,
    -- When it is looked at next; null when it is final.
    due_at           timestamptz,
    CHECK ((finished_at IS NOT NULL) = (state IN ('succeeded','failed'))),
    CHECK ((amount_minor IS NULL) = (currency IS NULL)),
    CHECK ((requested_by IS NULL) = (request_key IS NULL)),
    CHECK (kind = 'createSession' OR execution_id IS NOT NULL)
);
CREATE INDEX operations_due ON operations (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX operations_checkout ON operations (checkout_id, created_at);
CREATE INDEX operations_execution ON operations (execution_id, created_at);
CREATE UNIQUE INDEX operations_request ON operations (requested_by, request_key) WHERE request_key IS NOT NULL;
CREATE INDEX operations_request_age ON operations (created_at) WHERE request_key IS NOT NULL;
-- One mover of the amount and one maker of a session at a time, for each checkout.
CREATE UNIQUE INDEX operations_one_move ON operations (checkout_id)
    WHERE kind = 'moveAmount' AND finished_at IS NULL;
CREATE UNIQUE INDEX operations_one_session ON operations (checkout_id)
    WHERE kind = 'createSession' AND finished_at IS NULL;
CREATE UNIQUE INDEX operations_one_cancel ON operations (execution_id)
    WHERE kind = 'cancel' AND state <> 'failed';

-- Answers to our own callers' idempotency keys, kept for a day at least.
CREATE TABLE idempotency_keys (
    credential    uuid NOT NULL,
    key           text NOT NULL CHECK (length(key) BETWEEN 1 AND 255),
    request_hash  bytea NOT NULL CHECK (length(request_hash) = 32),
    -- Null while the first request runs; the lease tells a running one from a dead one.
    status        integer CHECK (status BETWEEN 200 AND 499),
    headers       jsonb,
    body          bytea,
    lease_until   timestamptz NOT NULL,
    created_at    timestamptz NOT NULL,
    PRIMARY KEY (credential, key)
);
CREATE INDEX idempotency_keys_age ON idempotency_keys (created_at);

CREATE TABLE notifications (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    -- SHA-256 of the body: there is no other identity.
    body_hash    bytea NOT NULL UNIQUE CHECK (length(body_hash) = 32),
    endpoint     text NOT NULL,
    body         bytea NOT NULL,
    received_at  timestamptz NOT NULL,
    state        text NOT NULL DEFAULT 'received'
        CHECK (state IN ('received','applied','parked','ignored','dead')),
    event        text,
    execution_id uuid,
    attempts     integer NOT NULL DEFAULT 0,
    error        text,
    applied_at   timestamptz
);
CREATE INDEX notifications_received ON notifications (id) WHERE state = 'received';
CREATE INDEX notifications_parked ON notifications (execution_id) WHERE state = 'parked';
CREATE INDEX notifications_dead ON notifications (id) WHERE state = 'dead';

-- The feed. A number alone would let a reader skip what commits late; so its order is (transaction, number), and a
-- reader sees only what is older than every transaction that still runs (M11).
CREATE TABLE events (
    transaction_id xid8 NOT NULL DEFAULT pg_current_xact_id(),
    number         bigint GENERATED ALWAYS AS IDENTITY,
    id             uuid NOT NULL UNIQUE,
    type           text NOT NULL,
    scope          text NOT NULL CHECK (scope IN ('checkouts','payments','subscriptions','instruments','ops')),
    checkout_id    uuid,
    execution_id   uuid,
    data           jsonb NOT NULL,
    time           timestamptz NOT NULL,
    PRIMARY KEY (transaction_id, number)
);
CREATE INDEX events_checkout ON events (checkout_id, transaction_id, number);
