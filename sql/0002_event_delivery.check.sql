-- True when migration 2 did what it says.
SELECT
    (SELECT count(*) FROM information_schema.tables WHERE table_schema = current_schema AND table_name IN
        ('delivery_cursor','event_deliveries','delivery_lanes')) = 3
    AND to_regclass('event_deliveries_lane') IS NOT NULL
    AND to_regclass('event_deliveries_open') IS NOT NULL
    AND to_regclass('delivery_lanes_due') IS NOT NULL
    AND (SELECT count(*) FROM delivery_cursor) = 0 AS holds;
