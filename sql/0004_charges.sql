-- Saved instruments, and charges without the customer: one charge for each period of a subscription, or an unscheduled
-- one, with its attempts inside. An attempt is one execution at the provider.
--
-- Lock order: advisory lock of an execution, then instruments, then checkout rows, then charge rows, then executions,
-- then operations.

-- What the provider showed of each instrument when it was last read; the shop was told of every difference since it
-- became known here.
CREATE TABLE instruments (
    -- The provider's own id.
    id                uuid PRIMARY KEY,
    holder_reference  text NOT NULL,
    payment_method    text NOT NULL,
    -- As the provider names it: created, enabled, disabled, deleted, transient.
    status            text NOT NULL,
    is_default        boolean NOT NULL,
    display_name      text,
    network           text,
    suffix            text CHECK (length(suffix) <= 4),
    -- As printed on the card; a missing one is unknown, which isn't expired.
    expiry_month      smallint CHECK (expiry_month BETWEEN 1 AND 12),
    expiry_year       smallint CHECK (expiry_year BETWEEN 1000 AND 9999),
    has_network_token boolean NOT NULL,
    future_usage      text,
    -- The expiry of which the shop was told ahead of time, so that it is told once.
    told_expiry_month smallint CHECK (told_expiry_month BETWEEN 1 AND 12),
    told_expiry_year  smallint CHECK (told_expiry_year BETWEEN 1000 AND 9999),
    read_at           timestamptz NOT NULL,
    CHECK ((told_expiry_month IS NULL) = (told_expiry_year IS NULL))
);
CREATE INDEX instruments_holder ON instruments (holder_reference);

CREATE TABLE charges (
    id                 uuid PRIMARY KEY,
    -- Null, as the period, for an unscheduled one.
    subscription_id    uuid,
    period_index       integer CHECK (period_index >= 1),
    period_start       date,
    period_end         date CHECK (period_end > period_start),
    -- The subscription's, or the charge's own; what the provider gets is on each attempt.
    merchant_reference text NOT NULL,
    holder_reference   text NOT NULL,
    instrument_id      uuid NOT NULL,
    workflow_code      text NOT NULL,
    amount_minor       bigint NOT NULL CHECK (amount_minor BETWEEN 1 AND 999999999999999),
    currency           text NOT NULL CHECK (currency ~ '^[A-Z]{3}$'),
    expiry_policy      text NOT NULL CHECK (expiry_policy IN ('block','allow','allowWithNetworkToken')),
    meta               jsonb,
    state              text NOT NULL CHECK (state IN ('scheduled','processing','succeeded','failed','unknown',
        'needsCustomer','skipped')),
    reason             text,
    -- When an attempt may begin.
    next_attempt_at    timestamptz,
    -- How often an attempt couldn't begin since the last one that did: nothing was sent.
    postponements      integer NOT NULL DEFAULT 0 CHECK (postponements >= 0),
    -- When time alone changes something: a failure after which no other provider was tried.
    settle_at          timestamptz,
    -- Who begins the next attempt, until when; one claim's own, so that a slow one begins nothing.
    lease_owner        uuid,
    lease_until        timestamptz,
    -- Which request of the shop's asked for an unscheduled one.
    created_by         uuid,
    creation_key       text,
    created_at         timestamptz NOT NULL,
    -- A charge's personal data goes once it is long over; the holder's reference becomes empty.
    personal_data_removed_at timestamptz
        CHECK (personal_data_removed_at IS NULL OR (holder_reference = '' AND meta IS NULL)),
    -- A period is charged once.
    UNIQUE (subscription_id, period_index),
    CHECK (num_nulls(subscription_id, period_index, period_start, period_end) IN (0, 4)),
    CHECK ((next_attempt_at IS NOT NULL) = (state = 'scheduled')),
    CHECK ((lease_owner IS NULL) = (lease_until IS NULL)),
    CHECK ((created_by IS NULL) = (creation_key IS NULL))
);
CREATE UNIQUE INDEX charges_unscheduled ON charges (merchant_reference) WHERE subscription_id IS NULL;
-- Two small indexes of what is to come: a renewal run never looks over unscheduled ones, nor a worker over periods.
CREATE INDEX charges_due_unscheduled ON charges (next_attempt_at)
    WHERE next_attempt_at IS NOT NULL AND subscription_id IS NULL;
CREATE INDEX charges_due_periods ON charges (next_attempt_at)
    WHERE next_attempt_at IS NOT NULL AND subscription_id IS NOT NULL;
CREATE INDEX charges_personal_data ON charges (created_at)
    WHERE personal_data_removed_at IS NULL AND state IN ('succeeded','failed','needsCustomer','skipped');
CREATE INDEX charges_settle ON charges (settle_at) WHERE settle_at IS NOT NULL;

CREATE TABLE charge_attempts (
    charge_id          uuid NOT NULL REFERENCES charges,
    number             integer NOT NULL CHECK (number BETWEEN 1 AND 1000),
    -- What the provider gets: the charge's own, or `<reference>~<period>~<attempt>`.
    merchant_reference text NOT NULL UNIQUE,
    instrument_id      uuid NOT NULL,
    payment_method     text NOT NULL,
    amount_minor       bigint NOT NULL CHECK (amount_minor BETWEEN 1 AND 999999999999999),
    currency           text NOT NULL CHECK (currency ~ '^[A-Z]{3}$'),
    -- Null until the provider has made it.
    execution_id       uuid UNIQUE,
    outcome            text NOT NULL CHECK (outcome IN ('processing','unknown','succeeded','failed','needsCustomer',
        'cancelled')),
    reason             text,
    begun_at           timestamptz NOT NULL,
    PRIMARY KEY (charge_id, number)
);
-- A charge succeeds once: while one attempt has succeeded, runs, or may have succeeded, there is no other (M2).
CREATE UNIQUE INDEX charge_attempts_one ON charge_attempts (charge_id)
    WHERE outcome IN ('processing','unknown','succeeded');

-- Executions belong to a checkout or to a charge.
ALTER TABLE executions ALTER COLUMN checkout_id DROP NOT NULL;
ALTER TABLE executions ADD COLUMN charge_id uuid REFERENCES charges;
ALTER TABLE executions ADD CHECK (num_nonnulls(checkout_id, charge_id) = 1);
-- For a charge, the number of the attempt.
ALTER TABLE executions ADD UNIQUE (charge_id, ordinal);
ALTER TABLE executions DROP CONSTRAINT executions_cancel_reason_check;
ALTER TABLE executions ADD CONSTRAINT executions_cancel_reason_check
    CHECK (cancel_reason IN ('duplicate','mismatch','checkoutCancelled','attemptOver','requested'));

-- Operations belong to a checkout, to a charge, or are about an instrument or a tokenization.
ALTER TABLE operations ALTER COLUMN checkout_id DROP NOT NULL;
ALTER TABLE operations ADD COLUMN charge_id uuid REFERENCES charges;
-- Of an instrument's change: which. Of a tokenization: whose security code.
ALTER TABLE operations ADD COLUMN instrument_id uuid;
ALTER TABLE operations DROP CONSTRAINT operations_kind_check;
ALTER TABLE operations ADD CONSTRAINT operations_kind_check
    CHECK (kind IN ('createSession','moveAmount','capture','cancel','refund','createExecution','authorize',
        'tokenization','changeInstrument','deleteInstrument'));
ALTER TABLE operations DROP CONSTRAINT operations_check3;
ALTER TABLE operations ADD CONSTRAINT operations_execution
    CHECK (execution_id IS NOT NULL OR kind NOT IN ('moveAmount','capture','cancel','refund','authorize'));
ALTER TABLE operations ADD CONSTRAINT operations_subject
    CHECK (CASE
        WHEN kind IN ('createSession','moveAmount') THEN checkout_id IS NOT NULL AND charge_id IS NULL
        WHEN kind IN ('createExecution','authorize') THEN checkout_id IS NULL AND charge_id IS NOT NULL
        WHEN kind IN ('capture','cancel','refund') THEN num_nonnulls(checkout_id, charge_id) = 1
        ELSE num_nonnulls(checkout_id, charge_id) = 0 END);
ALTER TABLE operations ADD CONSTRAINT operations_instrument
    CHECK (instrument_id IS NOT NULL OR kind NOT IN ('changeInstrument','deleteInstrument'));
CREATE INDEX operations_charge ON operations (charge_id, created_at) WHERE charge_id IS NOT NULL;
CREATE INDEX operations_instrument ON operations (instrument_id) WHERE instrument_id IS NOT NULL;
-- One maker of an execution at a time for each charge, and an execution is authorized by one intent.
CREATE UNIQUE INDEX operations_one_execution ON operations (charge_id)
    WHERE kind = 'createExecution' AND finished_at IS NULL;
CREATE UNIQUE INDEX operations_one_authorize ON operations (execution_id) WHERE kind = 'authorize';

-- What is told of one thing is sent in its order: of a checkout, or of a subscription, a charge, an instrument.
ALTER TABLE events ADD COLUMN subject_id uuid CHECK (subject_id IS NULL OR checkout_id IS NULL);
