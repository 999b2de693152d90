-- True when migration 7 did what it says.
SELECT EXISTS (SELECT FROM information_schema.columns
    WHERE table_schema = current_schema() AND table_name = 'executions' AND column_name = 'told_disputes') AS holds;
