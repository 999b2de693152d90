-- True when migration 9 did what it says.
SELECT
    (SELECT count(*) FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r'
        AND relname IN ('subscriptions','charges','charge_attempts','operations','executions')
        AND array_to_string(reloptions, ',') LIKE '%fillfactor=%') = 5
    AND to_regclass('subscriptions_set_aside') IS NOT NULL
    AND to_regclass('subscriptions_personal_data') IS NOT NULL
    AND NOT EXISTS (SELECT FROM subscriptions WHERE status IN ('cancelled','ended') AND closed_at IS NULL) AS holds;
