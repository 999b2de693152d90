-- True when migration 4 did what it says.
SELECT
    (SELECT count(*) FROM information_schema.tables WHERE table_schema = current_schema AND table_name IN
        ('instruments','charges','charge_attempts')) = 3
    AND to_regclass('charge_attempts_one') IS NOT NULL
    AND to_regclass('charges_unscheduled') IS NOT NULL
    AND to_regclass('operations_one_authorize') IS NOT NULL
    AND (SELECT count(*) FROM pg_constraint WHERE conname IN ('operations_subject','operations_execution',
        'operations_instrument','operations_kind_check','executions_cancel_reason_check')) = 5
    AND NOT EXISTS (SELECT FROM pg_constraint WHERE conrelid = to_regclass('operations')
        AND pg_get_constraintdef(oid) LIKE '%createSession%OR%execution_id IS NOT NULL%') AS holds;
