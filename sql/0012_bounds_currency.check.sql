-- True when migration 12 did what it says.
SELECT EXISTS (SELECT FROM information_schema.columns WHERE table_schema = current_schema()
    AND table_name = 'checkouts' AND column_name = 'bounds_currency') AS holds;
