-- True when migration 5 did what it says.
SELECT
    EXISTS (SELECT FROM information_schema.tables WHERE table_schema = current_schema
        AND table_name = 'subscriptions')
    AND to_regclass('call_pace') IS NOT NULL
    AND to_regclass('subscriptions_due') IS NOT NULL
    AND to_regclass('subscriptions_holder') IS NOT NULL
    AND to_regclass('charges_open_periods') IS NOT NULL
    AND to_regclass('instruments_expiry') IS NOT NULL
    AND to_regclass('charge_attempts_declined') IS NOT NULL
    AND to_regclass('charge_attempts_unsettled') IS NOT NULL
    AND EXISTS (SELECT FROM pg_constraint WHERE conname = 'charges_subscription')
    -- What makes a period charged once.
    AND EXISTS (SELECT FROM pg_constraint WHERE conrelid = to_regclass('charges') AND contype = 'u'
        AND pg_get_constraintdef(oid) = 'UNIQUE (subscription_id, period_index)') AS holds;
