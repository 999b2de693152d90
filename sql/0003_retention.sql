-- What has outlived its retention goes; what money needs (ids, amounts, facts, events' places) stays.
--
-- A notification's row stays without its body: its hash still tells a late duplicate from something new.
ALTER TABLE notifications ALTER COLUMN body DROP NOT NULL;
-- What wasn't applied, or could not be, keeps its body: it may have to be applied again.
ALTER TABLE notifications ADD CHECK (body IS NOT NULL OR state NOT IN ('received','dead'));

-- A closed checkout's personal data goes once; the holder's reference becomes empty.
ALTER TABLE checkouts ADD COLUMN personal_data_removed_at timestamptz
    CHECK (personal_data_removed_at IS NULL OR (holder_reference = '' AND meta IS NULL AND basket_version IS NULL
        AND allowed_payment_methods IS NULL));
CREATE INDEX checkouts_personal_data ON checkouts (expires_at)
    WHERE personal_data_removed_at IS NULL AND status NOT IN ('open','processing');
