-- Subscriptions: charges that repeat by a calendar. What becomes of each period is a charge (one for each, by the
-- constraint of migration 4); here stands what the next one is made from.
--
-- Lock order: advisory lock of an execution, then instruments, then checkout rows, then subscription rows, then charge
-- rows, then executions, then operations.

CREATE TABLE subscriptions (
    id                     uuid PRIMARY KEY,
    merchant_reference     text NOT NULL UNIQUE,
    holder_reference       text NOT NULL,
    instrument_id          uuid NOT NULL,
    workflow_code          text NOT NULL,
    -- Of the periods that have no charge yet.
    amount_minor           bigint NOT NULL CHECK (amount_minor BETWEEN 1 AND 999999999999999),
    currency               text NOT NULL CHECK (currency ~ '^[A-Z]{3}$'),
    every                  text NOT NULL CHECK (every ~ '^P[1-9][0-9]{0,2}[DWMY]$'),
    -- The day that periods are counted from, and the index of the period that begins there.
    starts_on              date NOT NULL,
    anchor_index           integer NOT NULL,
    timezone               text NOT NULL,
    ends_on                date,
    max_charges            integer CHECK (max_charges >= 1),
    expiry_policy          text NOT NULL CHECK (expiry_policy IN ('block','allow','allowWithNetworkToken')),
    meta                   jsonb,
    status                 text NOT NULL
        CHECK (status IN ('active','paused','pastDue','needsInstrument','cancelled','ended')),
    -- The first period that has no charge.
    next_index             integer NOT NULL CHECK (next_index >= 1),
    -- The instrument that was declined for good, and what it looked like then: it isn't tried again until it changes.
    declined_instrument_id uuid,
    declined_appearance          text,
    -- When a period is due, or a run has to look; retries stand on their charges. Null when nothing is to come by time.
    due_at                 timestamptz,
    -- The run that took it, until when. The run stays when it is done, so that none looks at one twice.
    lease_owner            uuid,
    lease_until            timestamptz,
    -- Why a run could not read it: it is left out until somebody has mended it.
    set_aside              text CHECK (length(set_aside) <= 200),
    created_by             uuid NOT NULL,
    creation_key           text NOT NULL,
    created_at             timestamptz NOT NULL,
    CHECK ((declined_instrument_id IS NULL) = (declined_appearance IS NULL)),
    CHECK (lease_owner IS NOT NULL OR lease_until IS NULL),
    CHECK (due_at IS NULL OR status IN ('active','pastDue','needsInstrument'))
);
-- What is due, and nothing else: it doesn't grow with what is not.
CREATE INDEX subscriptions_due ON subscriptions (due_at, id) WHERE due_at IS NOT NULL AND set_aside IS NULL;
CREATE INDEX subscriptions_holder ON subscriptions (holder_reference, id);
CREATE INDEX subscriptions_instrument ON subscriptions (instrument_id);

-- A charge of a period that never was can't be.
ALTER TABLE charges ADD CONSTRAINT charges_subscription FOREIGN KEY (subscription_id) REFERENCES subscriptions;
-- The charges of a subscription that aren't over, or wait for an instrument.
CREATE INDEX charges_open_periods ON charges (subscription_id)
    WHERE subscription_id IS NOT NULL
        AND (state IN ('scheduled','processing','unknown') OR (state = 'skipped' AND reason LIKE 'instrument-%'));
-- What a network counts: declined attempts with one card.
CREATE INDEX charge_attempts_declined ON charge_attempts (instrument_id, begun_at) WHERE outcome = 'failed';
-- Cards by their month, to tell of those that will be expired soon.
CREATE INDEX instruments_expiry ON instruments ((expiry_year * 12 + expiry_month)) WHERE status = 'enabled';
-- Attempts that aren't over, for a run's look-ups.
CREATE INDEX charge_attempts_unsettled ON charge_attempts (execution_id) WHERE outcome IN ('processing','unknown');

-- When the next call to a provider may go, for all processes together.
CREATE TABLE call_pace (
    provider text PRIMARY KEY,
    next_at  timestamptz NOT NULL
);
