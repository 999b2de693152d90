-- True when migration 8 did what it says.
SELECT
    -- Each notification is in exactly one of the two.
    (SELECT count(*) FROM notifications) =
        (SELECT count(*) FROM waiting_notifications) + (SELECT count(*) FROM notification_outcomes)
    AND NOT EXISTS (SELECT FROM notifications AS stored
        WHERE NOT EXISTS (SELECT FROM notification_states WHERE id = stored.id))
    AND NOT EXISTS (SELECT FROM waiting_notifications JOIN notification_outcomes USING (id))
    AND NOT EXISTS (SELECT FROM notifications JOIN notification_states USING (id)
        WHERE body IS NULL AND state IN ('received','dead'))
    AND NOT EXISTS (SELECT FROM information_schema.columns WHERE table_schema = current_schema
        AND table_name = 'notifications' AND column_name = 'state')
    AND EXISTS (SELECT FROM pg_trigger WHERE tgname = 'notifications_keep_body'
        AND tgrelid = to_regclass('notifications'))
    AND to_regclass('notification_outcomes_parked') IS NOT NULL
    AND to_regclass('notification_outcomes_open') IS NOT NULL
    AND to_regclass('executions_of_checkout') IS NOT NULL
    AND to_regclass('executions_of_charge') IS NOT NULL
    AND to_regclass('executions_payload') IS NOT NULL AS holds;
