-- What doesn't add up, until facts or a person resolve it; and no cancel stands in the way of a later one.
--
-- Lock order: discrepancies are the last. Those of a checkout or a charge are only written under its lock.

CREATE TABLE discrepancies (
    -- Grows with time: a list is in the order in which they were found.
    id                 uuid PRIMARY KEY,
    class              text NOT NULL CHECK (class IN ('missing-here','missing-there','state-mismatch',
        'amount-mismatch','captured-mismatch','refunded-mismatch','duplicate-payment','unresolved-operation',
        'overdue-final-state')),
    -- The execution, operation or whatever else it is about.
    subject            uuid NOT NULL,
    state              text NOT NULL CHECK (state IN ('open','resolved')),
    merchant_reference text,
    checkout_id        uuid REFERENCES checkouts,
    charge_id          uuid REFERENCES charges,
    execution_id       uuid,
    payment_id         text,
    amount_minor       bigint CHECK (amount_minor >= 0),
    currency           text CHECK (currency ~ '^[A-Z]{3}$'),
    -- Both sides of it, for a person.
    here               text,
    there              text,
    first_seen_at      timestamptz NOT NULL,
    last_seen_at       timestamptz NOT NULL CHECK (last_seen_at >= first_seen_at),
    resolved_at        timestamptz,
    -- What a person did about it; facts leave none.
    note               text CHECK (length(note) BETWEEN 1 AND 1000),
    CHECK (num_nonnulls(checkout_id, charge_id) <= 1),
    CHECK ((amount_minor IS NULL) = (currency IS NULL)),
    CHECK ((state = 'resolved') = (resolved_at IS NOT NULL)),
    CHECK (note IS NULL OR state = 'resolved')
);
-- Opened once: not again while it is open, nor after a person has dealt with it.
CREATE UNIQUE INDEX discrepancies_once ON discrepancies (class, subject) WHERE state = 'open' OR note IS NOT NULL;
CREATE INDEX discrepancies_checkout ON discrepancies (checkout_id) WHERE state = 'open' OR note IS NOT NULL;
CREATE INDEX discrepancies_charge ON discrepancies (charge_id) WHERE state = 'open' OR note IS NOT NULL;
CREATE INDEX discrepancies_open ON discrepancies (id) WHERE state = 'open';

-- What time alone makes a discrepancy.
CREATE INDEX operations_age ON operations (created_at) WHERE finished_at IS NULL;
CREATE INDEX executions_in_flight ON executions (changed_at) WHERE state IN ('processing','needsCustomer','unknown');

-- A cancel can be undone by the provider, or come before the authorization that is to be taken back: then another one
-- must be possible. One at a time is what money needs.
DROP INDEX operations_one_cancel;
CREATE UNIQUE INDEX operations_one_cancel ON operations (execution_id) WHERE kind = 'cancel' AND finished_at IS NULL;
