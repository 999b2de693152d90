-- True when migration 3 did what it says.
SELECT
    (SELECT is_nullable FROM information_schema.columns WHERE table_schema = current_schema
        AND table_name = 'notifications' AND column_name = 'body') = 'YES'
    AND EXISTS (SELECT FROM information_schema.columns WHERE table_schema = current_schema
        AND table_name = 'checkouts' AND column_name = 'personal_data_removed_at')
    AND to_regclass('checkouts_personal_data') IS NOT NULL AS holds;
