-- True when migration 11 did what it says.
SELECT EXISTS (SELECT FROM pg_indexes WHERE schemaname = current_schema() AND indexname = 'instruments_expiry'
    AND indexdef LIKE '%disabled%deleted%') AS holds;
