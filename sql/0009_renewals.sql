-- Room in the pages of what a charge writes again and again, so that its new version stands beside the old one, and
-- indexes of columns that stay needn't be touched: a period is written five times between due and paid.
ALTER TABLE subscriptions SET (fillfactor = 80);
ALTER TABLE charges SET (fillfactor = 70);
ALTER TABLE charge_attempts SET (fillfactor = 70);
ALTER TABLE operations SET (fillfactor = 70);
ALTER TABLE executions SET (fillfactor = 70);

-- Subscriptions that no run could read; there should be none.
CREATE INDEX subscriptions_set_aside ON subscriptions (id) WHERE set_aside IS NOT NULL;

-- When it was cancelled or had ended: from then on its personal data grows old. The holder's reference becomes empty.
ALTER TABLE subscriptions ADD COLUMN closed_at timestamptz;
ALTER TABLE subscriptions ADD COLUMN personal_data_removed_at timestamptz
    CHECK (personal_data_removed_at IS NULL OR (holder_reference = '' AND meta IS NULL));
UPDATE subscriptions SET closed_at = now() WHERE status IN ('cancelled','ended');
CREATE INDEX subscriptions_personal_data ON subscriptions (closed_at)
    WHERE closed_at IS NOT NULL AND personal_data_removed_at IS NULL;
