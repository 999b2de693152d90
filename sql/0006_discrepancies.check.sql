-- True when migration 6 did what it says.
SELECT
    to_regclass('discrepancies') IS NOT NULL
    AND to_regclass('discrepancies_once') IS NOT NULL
    AND to_regclass('discrepancies_checkout') IS NOT NULL
    AND to_regclass('discrepancies_charge') IS NOT NULL
    AND to_regclass('operations_age') IS NOT NULL
    AND to_regclass('executions_in_flight') IS NOT NULL
    AND (SELECT pg_get_expr(indpred, indrelid) LIKE '%finished_at IS NULL%' FROM pg_index
        WHERE indexrelid = to_regclass('operations_one_cancel')) AS holds;
