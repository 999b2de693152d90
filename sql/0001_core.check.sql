-- True when migration 1 did what it says.
SELECT
    (SELECT count(*) FROM information_schema.tables WHERE table_schema = current_schema AND table_name IN
        ('merchant_keys','checkouts','client_tokens','executions','facts','operations','idempotency_keys',
         'notifications','events')) = 9
    AND to_regclass('operations_one_move') IS NOT NULL
    AND to_regclass('operations_one_cancel') IS NOT NULL
    AND EXISTS (SELECT FROM pg_trigger WHERE tgname = 'checkouts_kept_once') AS holds;
