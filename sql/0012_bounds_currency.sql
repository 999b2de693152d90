-- The bounds within which a client token may move the amount are of the currency that they were given in. Where a
-- merchant key has moved the amount to another one since, they are none of its business. NULL: from before this column,
-- the checkout's own.
ALTER TABLE checkouts ADD COLUMN bounds_currency text CHECK (bounds_currency ~ '^[A-Z]{3}$');
