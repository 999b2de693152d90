-- A card that was never enabled is charged all the same, so the shop hears of its last month too.
DROP INDEX instruments_expiry;
CREATE INDEX instruments_expiry ON instruments ((expiry_year * 12 + expiry_month))
    WHERE status NOT IN ('disabled','deleted');
