-- True when migration 10 did what it says.
SELECT EXISTS (SELECT FROM information_schema.columns
    WHERE table_schema = current_schema() AND table_name = 'facts' AND column_name = 'is_dated') AS holds;
