-- A notification without a time of its own is dated by its arrival, which says little about its place among the others.

ALTER TABLE facts ADD COLUMN is_dated boolean NOT NULL DEFAULT true;
