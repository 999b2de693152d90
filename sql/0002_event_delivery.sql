-- Events on their way to the shop as webhooks. The feed (events) stays as it is, append-only; what becomes of each
-- event out there stands here.
--
-- Nothing of this is written by the transaction that writes an event: a cursor follows the feed by the feed's own rule
-- (only what is older than every running transaction), so none is missed, and none is queued twice.
--
-- Lock order: the cursor, then lanes by their id, then deliveries.

-- Up to where events are queued. There is no row until a service first runs with an address to send to; it begins there,
-- and what was written before is in the feed.
CREATE TABLE delivery_cursor (
    is_only        boolean PRIMARY KEY DEFAULT true CHECK (is_only),
    transaction_id xid8 NOT NULL,
    number         bigint NOT NULL
);

CREATE TABLE event_deliveries (
    event_id        uuid PRIMARY KEY REFERENCES events (id) ON DELETE CASCADE,
    -- The event's place in the feed.
    transaction_id  xid8 NOT NULL,
    number          bigint NOT NULL,
    -- What is in one lane is sent one after the other, in the feed's order: the checkout, or else the event itself.
    lane            uuid NOT NULL,
    state           text NOT NULL CHECK (state IN ('pending','delivered','dead')),
    -- Since it was queued, or sent again by hand.
    attempts        integer NOT NULL DEFAULT 0 CHECK (attempts >= 0),
    queued_at       timestamptz NOT NULL,
    last_attempt_at timestamptz,
    last_status     integer CHECK (last_status BETWEEN 100 AND 999),
    last_failure    text CHECK (length(last_failure) <= 64),
    finished_at     timestamptz,
    CHECK ((finished_at IS NOT NULL) = (state <> 'pending'))
);
-- The first of a lane.
CREATE INDEX event_deliveries_lane ON event_deliveries (lane, transaction_id, number) WHERE state = 'pending';
-- What is listed and counted.
CREATE INDEX event_deliveries_open ON event_deliveries (state, transaction_id, number) WHERE state <> 'delivered';

-- The lanes that have something pending, and only those. A lane is taken as a whole: so the second event of a checkout
-- isn't sent before the first was accepted or is dead.
CREATE TABLE delivery_lanes (
    lane        uuid PRIMARY KEY,
    -- When its first delivery is tried; while somebody tries, the end of the lease.
    due_at      timestamptz NOT NULL,
    -- One attempt's claim; the effect checks it.
    lease_owner uuid,
    -- Somebody asked for it while it was taken: what comes after the attempt is due at once.
    is_hastened boolean NOT NULL DEFAULT false
);
CREATE INDEX delivery_lanes_due ON delivery_lanes (due_at);
